"""Learners side by side: each with its default settings, all for the same few CPU minutes in an environment, then all
for three; and PPO without each of the things that steady it.

    python -m paper.learners [--seeds 3] [--only 'couriers-*'] [--list | --pair | --markdown]

A run is one `muster train` in runs/learners, resumed if it was cut short, then evaluated on fixed test episodes. What
it leaves: paper/learners/record.json with one line a run, and the run's policy, settings and log beside it. Runs in the
record are not made again. `linear`, the linear model by ES, is what `muster train` does without flags where there is a
prior; its runs of three minutes are those of `python -m paper train outside`. Where it is, `--pair` evaluates all runs
of three minutes on the same episodes, at home and at five times the size: paper/learners/paired.json. `--markdown`
prints the medians over seeds from the record, how the learners rank by them, and the paired differences.
"""

from __future__ import annotations

import argparse
import csv
import fnmatch
import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median_low

import muster
from muster.data import Floats
from muster.envs.size import resized
from muster.evaluation.statistics import bootstrap_interval
from paper.run_names import PAPER, RunName, policy_files
from paper.tables.engine import COMMITS, Record, clean_commit, evaluate_side_by_side, read_record
from paper.train import as_recorded, keep, train

RUNS = Path("runs") / "learners"
RECORD = PAPER / "learners" / "record.json"
PAIRED = RECORD.with_name("paired.json")


@dataclass(frozen=True, slots=True)
class Place:
    """An environment to learn and evaluate in."""

    name: str
    inference: str
    baseline: str
    """The best baseline that comes with it and looks no further than the policies do."""
    episodes: int
    minutes: float
    """The few CPU minutes of every learner: more where none learns much sooner."""
    teacher: str = ""
    """Whom imitation learns from: a baseline that is better than what is learned; "": imitation is left out."""
    lower: bool = False
    """Whether less is better."""
    linear: str = ""
    """The folder of its default policies in paper/outside/policies; "": there is no prior to correct."""
    larger: tuple[int, int, int] = (0, 0, 0)
    """Agents and tasks of the larger size where there is a prior, and evaluation episodes there."""
    fixed_sizes: bool = True
    """Whether updates have the sizes of the older records; else the measured speed decides, as it does by default."""


ENVS = {
    "rescue-2x4": Place("rescue:2x4", "quad", "lp-distance", 1000, 1.0, "topline", lower=True),
    "rescue-5x10": Place("rescue:5x10", "quad", "lp-distance", 1000, 1.5, "topline", lower=True),
    "m10v10": Place("battle:m10v10", "lp", "c", 400, 1.5),
    "w15v17": Place("battle:w15v17", "quad", "wcnoks", 400, 1.5),
    "zh10v10": Place("battle:zh10v10", "lp", "c", 400, 2.0),
    "couriers": Place(
        "examples.couriers:Couriers", "quad", "nearest", 500, 0.5, lower=True, linear="couriers", larger=(15, 30, 200)
    ),
    "warehouse": Place(
        "examples.warehouse:Warehouse", "quad", "worth", 500, 0.5, linear="warehouse", larger=(20, 60, 100)
    ),
    "field-service": Place(
        "examples.field_service:FieldService",
        "lp",
        "match",
        300,
        0.5,
        linear="field",
        larger=(30, 90, 60),
        fixed_sizes=False,
    ),
}
LONG = 3.0
"""CPU minutes of every learner in every environment, the second time."""
SEED = 0
"""Names the test episodes. Training and validation draw from sets far away."""
LEARNERS = ("a2c", "ppo", "es", "srl", "imitation")
LINEAR = "linear"
EVERYWHERE = LEARNERS[:-1]
"""Those that need no teacher."""
STEADY: dict[str, list[str] | None] = {
    "half": [],
    "no-clip": ["--ppo.clip-range", "0"],
    "one-batch": ["--ppo.minibatches", "1"],
    "no-entropy": ["--ppo.entropy-coef", "0"],
    "any-gradient": None,
    "no-trace": ["--ppo.gae-lambda", "1"],
    "constant-rate": None,
}
"""PPO with its default settings and with one thing less; None: in the record, and no setting any more."""
OTHER_INFERENCE = {
    "couriers": {
        "linear-quad": ["--inference", "quad"],
        "ppo-lp": ["--inference", "lp", "--learner", "ppo", "--model", "dm"],
    }
}
"""Runs of LONG minutes with the inference of the other, LP or QUAD."""
STEADY_MINUTES = 0.5
STEADY_ENVS = ("rescue-2x4", "m10v10")


@dataclass(frozen=True, slots=True)
class Run:
    """One line of the record."""

    env: str
    learner: str
    seed: int
    minutes: float
    """CPU minutes that were asked for; 0 for a baseline."""
    cpu_minutes: float
    steps: int
    mean: float | None
    ci95: tuple[float, float] | None
    failed: int
    rollbacks: int
    """How often the run went back to its best state."""


@dataclass(frozen=True, slots=True)
class Paired:
    """A baseline, a run, or all seeds of a learner (the mean over seeds of each episode) at one size."""

    env: str
    size: str
    """"home", or "larger": five times the size."""
    policy: str
    """The learner's name for all its seeds, as the baseline's."""
    learner: str
    """"" for a baseline."""
    seeds: list[int]
    episodes: int
    mean: float
    low: float
    high: float
    """Of the 95 % interval of the mean."""
    gains: dict[str, tuple[float, float, float]]
    """Mean difference from the linear model (the mean over its seeds) and from the best baseline, episode by episode,
    and its 95 % interval."""


def runs_of(seeds: int, only: str) -> dict[str, tuple[str, str, int, float, list[str]]]:
    """Environment, learner, seed, minutes and arguments of every run, by name.

    The short ones come first, and all environments and learners before the next seed.
    """
    found = {}
    usual = {learner: ["--learner", learner, "--model", "dm"] for learner in LEARNERS}
    less = {name: ["--learner", "ppo", "--model", "dm", *flags] for name, flags in STEADY.items() if flags is not None}
    for long in (False, True):
        for seed in range(seeds):
            for key, env in ENVS.items():
                more = OTHER_INFERENCE.get(key, {}) if long else less if key in STEADY_ENVS else {}
                for learner, flags in (usual | more).items():
                    name = f"{key}-{learner}-{'long-' if long else ''}s{seed}"
                    if not fnmatch.fnmatch(name, only) or (learner == "imitation" and not env.teacher):
                        continue
                    inference = [] if "--inference" in flags else ["--inference", env.inference]
                    arguments = [env.name, *inference, *flags]
                    arguments += ["--teacher", env.teacher] * (learner == "imitation")
                    minutes = LONG if long else STEADY_MINUTES if learner in STEADY else env.minutes
                    arguments += ["--minutes", f"{minutes:g}", "--seed", str(seed)]
                    # The linear model by default settings, as in `python -m paper train outside`.
                    sized = as_recorded(arguments) if env.fixed_sizes and "--learner" in flags else arguments
                    found[name] = key, learner, seed, minutes, sized
    return found


def evaluate(key: str, learner: str, seed: int, minutes: float, folder: Path, policy: Path | None = None) -> Run:
    """What the run's policy, by default the best one in its folder, does on the test episodes."""
    env = ENVS[key]
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    with (folder / "metrics.csv").open(newline="", encoding="utf-8") as lines:
        log = list(csv.DictReader(lines))
    found = muster.evaluate(str(policy or folder / "best.safetensors"), env.name, env.episodes, SEED)
    return Run(
        env=key,
        learner=learner,
        seed=seed,
        minutes=minutes,
        cpu_minutes=round(summary["cpu_minutes"], 3),
        steps=summary["steps"],
        mean=found.mean,
        ci95=found.ci95,
        failed=found.failed,
        rollbacks=max((int(float(row.get("rollbacks") or 0)) for row in log), default=0),
    )


def baseline(key: str) -> Run:
    """The environment's own baseline on the same episodes, as a line of the record."""
    env = ENVS[key]
    found = muster.evaluate(env.baseline, env.name, env.episodes, SEED)
    return Run(key, "baseline", 0, 0.0, 0.0, 0, found.mean, found.ci95, found.failed, 0)


def median_of(env: Place, group: Sequence[Run]) -> float | None:
    """Of the seeds' means, the worse of two; None if there is none."""
    sign = -1.0 if env.lower else 1.0
    means = [sign * run.mean for run in group if run.mean is not None]
    return sign * median_low(means) if means else None


def at(runs: Sequence[Run], minutes: float | None) -> dict[tuple[str, str], list[Run]]:
    """The runs of so many CPU minutes, or of each environment's own, by environment and learner; baselines always."""
    grouped: dict[tuple[str, str], list[Run]] = defaultdict(list)
    for run in sorted(runs, key=lambda run: run.seed):
        if run.minutes in (0.0, minutes or ENVS[run.env].minutes):
            grouped[run.env, run.learner].append(run)
    return grouped


def standing(runs: Sequence[Run], learners: Sequence[str], minutes: float) -> str:
    """Mean rank by the medians, where each learner is best, and how far behind the best it falls at the worst."""
    grouped = at(runs, minutes)
    ranks: dict[str, list[int]] = {learner: [] for learner in learners}
    behind: dict[str, dict[str, float]] = {learner: {} for learner in learners}
    for key, env in ENVS.items():
        medians = {learner: median_of(env, grouped[key, learner]) for learner in learners}
        known = {learner: value for learner, value in medians.items() if value is not None}
        order = sorted(known.values(), reverse=not env.lower)
        for learner, value in known.items():
            ranks[learner].append(1 + order.index(value))
            behind[learner][key] = abs(value - order[0]) / abs(order[0])
    lines = ["| | mean rank | best in | furthest behind the best |", "|---|---|---|---|"]
    for learner in (learner for learner in learners if ranks[learner]):
        best = ", ".join(key for key, gap in behind[learner].items() if gap == 0) or "none"
        worst = max(behind[learner], key=lambda key: behind[learner][key])
        mean = sum(ranks[learner]) / len(ranks[learner])
        lines.append(f"| {learner} | {mean:.1f} | {best} | {behind[learner][worst]:.1%} on {worst} |")
    return "\n".join(lines)


def markdown(runs: list[Run], columns: Sequence[str], envs: Collection[str], minutes: float | None = None) -> str:
    """The median seed of each learner in each environment (the worse of two), with the seeds in brackets; `minutes` are
    CPU minutes of all environments, or each environment's own.
    """
    grouped = at(runs, minutes)
    lines = [f"| | CPU min | {' | '.join(columns)} |", "|---|---|" + "---|" * len(columns)]
    for key in envs:
        env = ENVS[key]
        if not any(grouped[key, learner] for learner in columns if learner != "baseline"):
            continue
        cells = []
        for learner in columns:
            group = grouped[key, learner]
            digits = 3 if env.name.startswith("battle") else 2
            seeds = " ".join("–" if run.mean is None else f"{run.mean:.{digits}f}" for run in group)
            median = median_of(env, group)
            cells.append(f"{median:.{digits}f} ({seeds})" if len(group) > 1 and median is not None else seeds)
        lines.append(f"| {key} | {minutes or env.minutes:g} | {' | '.join(cells)} |")
    return "\n".join(lines)


def pair(key: str) -> Iterator[Paired]:
    """The baseline, every run of LONG minutes, and all runs of each learner, at home and at the larger size."""
    env = ENVS[key]
    runs = policy_files(PAPER / "outside" / "policies" / env.linear, env.linear)
    runs = {path: replace(run, learner=LINEAR) for path, run in runs.items()}
    for path in sorted((RECORD.parent / "policies").glob(f"{key}-*-long-s*")):
        learner, seed = path.stem.removeprefix(f"{key}-").split("-long-s")
        runs[path] = RunName(key, "", env.inference, "dm", "", learner, int(seed))
    agents, tasks, episodes = env.larger
    sizes = {"home": (env.name, env.episodes), "larger": (resized(env.name, agents, tasks), episodes)}
    for size, (text, count) in sizes.items():
        found = list(evaluate_side_by_side(text, [env.baseline], runs, count, SEED, lambda run: run.learner))
        references = {name: next(one for one in found if one.policy == name) for name in (LINEAR, env.baseline)}
        for one in found:
            others = [name for name in references if one.policy not in (name, env.baseline)]
            gains = {name: _mean(one.outcome - references[name].outcome) for name in others}
            yield Paired(key, size, one.policy, one.learner, one.seeds, count, *_mean(one.outcome), gains)


def read_paired() -> Record[Paired]:
    """The record of what `pair` evaluated, empty if there is none."""
    command = "python -m paper.learners --pair"
    if not PAIRED.exists():
        return Record({"seed": SEED, "command": command, COMMITS: []}, [])
    return read_record(PAIRED, Paired, ("seed", "command"), f"run {command}")


def paired_markdown(cells: Sequence[Paired]) -> str:
    """A row for each learner in each environment and size, less the linear model and less the baseline."""
    lines = [
        "| | learner | mean of each seed | minus linear (95 %) | minus the best baseline (95 %) |",
        "|---" * 5 + "|",
    ]
    for cell in (cell for cell in cells if cell.policy == cell.learner):
        ones = [one for one in cells if one.policy != one.learner == cell.learner]
        seeds = " ".join(f"{one.mean:.2f}" for one in ones if (one.env, one.size) == (cell.env, cell.size))
        gains = [cell.gains.get(name) for name in (LINEAR, ENVS[cell.env].baseline)]
        texts = ["" if gain is None else f"{gain[0]:+.2f} ({gain[1]:+.2f} to {gain[2]:+.2f})" for gain in gains]
        lines.append(f"| {cell.env}, {cell.size} | {cell.learner} | {seeds} | {' | '.join(texts)} |")
    return "\n".join(lines)


def _mean(values: Floats) -> tuple[float, float, float]:
    """A mean and its 95 % interval."""
    return float(values.mean()), *bootstrap_interval(values)


def main() -> None:
    """Run what is asked for and not yet in the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", default="*", help="names to run, such as 'couriers-es-*'")
    parser.add_argument("--list", action="store_true", help="print the commands and stop")
    parser.add_argument(
        "--pair", action="store_true", help="evaluate the runs of three minutes side by side, of envs --only, and stop"
    )
    parser.add_argument("--markdown", action="store_true", help="print the record and stop")
    asked = parser.parse_args()
    record: Record[Run] = Record({"seed": SEED}, [])
    if RECORD.exists():
        record = read_record(RECORD, Run, ("seed",), "run python -m paper.learners")
    runs = record.cells
    if asked.markdown:
        print(markdown(runs, ["baseline", *LEARNERS], ENVS))
        print(f"\n{markdown(runs, ['baseline', *LEARNERS, LINEAR], ENVS, LONG)}")
        print(f"\n{standing(runs, EVERYWHERE, LONG)}")
        print(f"\n{markdown(runs, list(STEADY), STEADY_ENVS, STEADY_MINUTES)}")
        print(f"\n{paired_markdown(read_paired().cells)}")
        return
    if asked.pair:
        paired = read_paired()
        for key in (key for key, env in ENVS.items() if env.linear and fnmatch.fnmatch(key, asked.only)):
            paired.cells = [cell for cell in paired.cells if cell.env != key] + list(pair(key))
            paired.head[COMMITS] = sorted({*paired.head[COMMITS], clean_commit()})
            paired.save(PAIRED)
        return
    for name, (key, learner, seed, minutes, arguments) in runs_of(asked.seeds, asked.only).items():
        if asked.list:
            print("muster train", *arguments)
            continue
        if not record.find(env=key, learner="baseline"):
            runs.append(baseline(key))
        if not record.find(env=key, learner=learner, seed=seed, minutes=minutes):
            folder = train(RUNS / name, arguments)
            keep(folder, RECORD.parent, name)
            runs.append(evaluate(key, learner, seed, minutes, folder))
            print(json.dumps({"run": name, "mean": runs[-1].mean, "failed": runs[-1].failed}), flush=True)
        record.save(RECORD)
    if not asked.list:
        add_linear(record, asked.only)


def add_linear(record: Record[Run], only: str) -> None:
    """Evaluate the policies of default runs that are not in the record yet."""
    outside = PAPER / "outside"
    for key, env in ((key, env) for key, env in ENVS.items() if env.linear):
        for path, run in policy_files(outside / "policies" / env.linear, env.linear).items():
            if not fnmatch.fnmatch(f"{key}-{LINEAR}-long-s{run.seed}", only):
                continue
            if not record.find(env=key, learner="baseline"):
                record.cells.append(baseline(key))
            if not record.find(env=key, learner=LINEAR, seed=run.seed):
                record.cells.append(evaluate(key, LINEAR, run.seed, LONG, outside / "runs" / path.stem, path))
                record.save(RECORD)


if __name__ == "__main__":
    main()
