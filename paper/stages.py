"""Stages: is a network worth its time as a correction on top of a linear policy?

    python -m paper.stages [--only 'couriers-*'] [--list | --unfinished | --markdown]

A run starts from a recorded policy of `python -m paper train outside`, the linear model after three CPU minutes, whose
scores take the place of the environment's prior, and trains a direct model on top of them for one more. The last policy
(of a run that was interrupted, that of its best row) is evaluated on the same episodes as its start, at home and at
five times the size: paper/stages/record.json, with policies, settings and logs beside it.
"""

from __future__ import annotations

import argparse
import csv
import fnmatch
import json
import shutil
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import ClassVar

import numpy as np

from examples import couriers, field_service, warehouse
from muster.data import BatchObservation, Floats
from muster.envs.registry import make
from muster.envs.singles import BatchOfSingles
from muster.envs.size import resized
from muster.evaluation.evaluate import evaluate
from muster.evaluation.statistics import bootstrap_interval
from muster.policy.learned import LearnedPolicy
from paper.run_names import PAPER
from paper.tables.engine import COMMITS, Record, clean_commit, read_record
from paper.train import train

RUNS = Path("runs") / "stages"
RECORD = PAPER / "stages" / "record.json"
LEARNERS, SEEDS, MINUTES = ("ppo",), 3, 1.0
SEED = 16_001
"""Names the evaluation episodes, which nothing was tuned, trained or validated on."""
Difference = tuple[float, float, float]
"""A mean of paired differences and its 95 % interval."""


class Staged(BatchOfSingles):
    """An environment whose prior is the score of a linear policy that was trained in it."""

    start: ClassVar[str]
    """The recorded runs of the linear model: their name without the seed."""

    def __init__(self, n_envs: int = 1, seed: int = 0, n_agents: int = 0, n_tasks: int = 0) -> None:
        """`seed` of the linear policy; 0 agents and tasks: as many as it was trained with."""
        sizes = {"n_agents": n_agents, "n_tasks": n_tasks} if n_agents else {}
        super().__init__(n_envs, **sizes)
        self.linear, self.scale = LearnedPolicy.load(self.start_of(seed)), scale_of(type(self), seed)

    @classmethod
    def start_of(cls, seed: int) -> Path:
        """The file of the linear policy."""
        folder = PAPER / "outside" / "policies" / cls.start.partition("-")[0]
        return folder / f"{cls.start}-lp-linear-es-s{seed}.safetensors"

    def observe(self) -> BatchObservation:
        """The observation of the environment, with the scores of the linear policy as its prior.

        They vary about ten times as much as the environment's own prior, so that the noise of PPO would change no
        decision: they are scaled to its standard deviation, and so is the cost of a switch.
        """
        observation = super().observe()
        cost = None if observation.switch_cost is None else observation.switch_cost / self.scale
        prior = self.linear.scores(observation)[0] / np.float64(self.scale)
        return replace(observation, prior=prior, switch_cost=cost)

    @classmethod
    def baselines(cls) -> Mapping[str, object]:  # type: ignore[override]
        """None: those of the environment read its own prior."""
        return {}


class Couriers(Staged):
    """Couriers whose prior is a linear policy."""

    single, start = couriers.Couriers, "couriers-3x6"


class Warehouse(Staged):
    """A warehouse whose prior is a linear policy."""

    single, start = warehouse.Warehouse, "warehouse-4x12"


class FieldService(Staged):
    """Field service whose prior is a linear policy."""

    single, start = field_service.FieldService, "field-6x18"


@cache
def scale_of(staged: type[Staged], seed: int) -> float:
    """Standard deviation of a linear policy's scores over that of the environment's prior, at the start of episodes."""
    env = make(f"{staged.single.__module__}:{staged.single.__name__}", 16)
    linear = LearnedPolicy.load(staged.start_of(seed))
    scores, priors = [], []
    for _ in range(8):
        observation = env.observe()
        assert observation.prior is not None
        scores.append(linear.scores(observation)[0][observation.pairs])
        priors.append(observation.prior[observation.pairs])
        env.step(linear.act(observation))
    return float(np.concatenate(scores).std() / np.concatenate(priors).std())


@dataclass(frozen=True, slots=True)
class Problem:
    """Where stages are tried."""

    staged: type[Staged]
    sizes: Mapping[tuple[int, int], int]
    """Evaluation episodes by number of agents and tasks."""


PROBLEMS = {
    "couriers": Problem(Couriers, {(3, 6): 1000, (15, 30): 300}),
    "warehouse": Problem(Warehouse, {(4, 12): 500, (20, 60): 100}),
    "field-service": Problem(FieldService, {(6, 18): 300, (30, 90): 60}),
}


@dataclass(frozen=True, slots=True)
class Cell:
    """All seeds of a learner at one size, beside the linear policies that they started from."""

    env: str
    size: str
    learner: str
    episodes: int
    minutes: list[float]
    """CPU minutes of each run."""
    kept: list[str]
    """What validation would have kept of each run, "prior" if its start; "" of a run that was interrupted before."""
    start: float
    """Mean of the linear policies."""
    mean: float
    difference: Difference
    """From the linear policies, seed by seed and episode by episode."""
    seeds: list[Difference]
    """The same of each seed by itself."""


def runs_of(only: str = "*") -> dict[str, tuple[str, str, int, list[str]]]:
    """Environment, learner, seed and arguments of every run, by name."""
    found = {}
    for seed in range(SEEDS):
        for key, problem in PROBLEMS.items():
            for learner in LEARNERS:
                name = f"{key}-{learner}-s{seed}"
                env = f"paper.stages:{problem.staged.__name__},seed={seed}"
                arguments = [env, "--inference", "lp", "--model", "dm", "--learner", learner]
                if fnmatch.fnmatch(name, only):
                    found[name] = key, learner, seed, [*arguments, "--minutes", f"{MINUTES:g}", "--seed", str(seed)]
    return found


def evaluate_learner(key: str, learner: str, folders: Mapping[int, Path]) -> Iterator[Cell]:
    """A cell for each size, of the runs in `folders` by seed."""
    staged = PROBLEMS[key].staged
    plain = f"{staged.single.__module__}:{staged.single.__name__}"
    for (n, m), episodes in PROBLEMS[key].sizes.items():
        outcomes = []
        for seed, folder in folders.items():
            start = evaluate(LearnedPolicy.load(staged.start_of(seed)), resized(plain, n, m), episodes, SEED)
            env = resized(f"paper.stages:{staged.__name__},seed={seed}", n, m)
            later = evaluate(LearnedPolicy.load(learned(folder)), env, episodes, SEED)
            outcomes.append((start.records.outcome, later.records.outcome))
        starts, laters = np.swapaxes(np.array(outcomes), 0, 1)
        yield Cell(
            key,
            f"{n}x{m}",
            learner,
            episodes,
            minutes=[minutes_of(folder) for folder in folders.values()],
            kept=[kept_by(folder) for folder in folders.values()],
            start=float(starts.mean()),
            mean=float(laters.mean()),
            difference=_difference((laters - starts).mean(axis=0)),
            seeds=[_difference(gaps) for gaps in laters - starts],
        )


def learned(folder: Path) -> Path:
    """The last policy of a run, or that of its best row if it was interrupted."""
    last = folder / "last.safetensors"
    return last if last.exists() else folder / "best.safetensors"


def minutes_of(folder: Path) -> float:
    """CPU minutes of training."""
    with (folder / "metrics.csv").open(newline="", encoding="utf-8") as lines:
        return round(max(float(row["cpu_seconds"]) for row in csv.DictReader(lines)) / 60, 2)


def kept_by(folder: Path) -> str:
    """What validation kept of a run; "" of an interrupted one."""
    summary = folder / "summary.json"
    return str(json.loads(summary.read_text(encoding="utf-8"))["kept"]) if summary.exists() else ""


def copy(folder: Path, name: str) -> None:
    """Copy settings, logs and what was learned to the record."""
    runs, policies = RECORD.parent / "runs" / name, RECORD.parent / "policies"
    runs.mkdir(parents=True, exist_ok=True)
    policies.mkdir(exist_ok=True)
    for file in ("config.toml", "metrics.csv", "summary.json"):
        if (folder / file).exists():
            shutil.copy(folder / file, runs / file)
    shutil.copy(learned(folder), policies / f"{name}.safetensors")


def _difference(gaps: Floats) -> Difference:
    return float(gaps.mean()), *bootstrap_interval(gaps)


def markdown(record: Record[Cell]) -> str:
    """A row for each environment, learner and size."""
    lines = [
        "| | size | linear | network on top | minus linear (95 %) | seeds | CPU min |",
        "|---|---|---|---|---|---|---|",
    ]
    for cell in record.cells:
        gap, low, high = cell.difference
        seeds = ", ".join(f"{mean:+.2f}" for mean, _, _ in cell.seeds)
        lines.append(
            f"| {cell.env}, {cell.learner} | {cell.size} | {cell.start:.2f} | {cell.mean:.2f} "
            f"| {gap:+.2f} ({low:+.2f} to {high:+.2f}) | {seeds} | {', '.join(map(str, cell.minutes))} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Train and evaluate what is asked for and not yet in the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="*", help="names to run, such as 'couriers-ppo-*'")
    parser.add_argument("--list", action="store_true", help="print the commands and stop")
    parser.add_argument("--unfinished", action="store_true", help="train nothing: evaluate the runs as they are")
    parser.add_argument("--markdown", action="store_true", help="print the record and stop")
    arguments = parser.parse_args()
    unfinished = " --unfinished" * arguments.unfinished
    head = {"seed": SEED, "command": f"python -m paper.stages{unfinished}", COMMITS: []}
    record: Record[Cell] = Record(head, [])
    if RECORD.exists():
        record = read_record(RECORD, Cell, ("seed", "command"), "run python -m paper.stages")
    if arguments.markdown:
        print(markdown(record))
        return
    folders: dict[tuple[str, str], dict[int, Path]] = defaultdict(dict)
    for name, (key, learner, seed, flags) in runs_of(arguments.only).items():
        if arguments.list:
            print("muster train", *flags)
        elif not record.find(env=key, learner=learner):
            folders[key, learner][seed] = RUNS / name if arguments.unfinished else train(RUNS / name, flags)
            copy(RUNS / name, name)
    for (key, learner), runs in folders.items():
        record.cells += evaluate_learner(key, learner, runs)
        record.head[COMMITS] = sorted({*record.head[COMMITS], clean_commit()})
        record.save(RECORD)


if __name__ == "__main__":
    main()
