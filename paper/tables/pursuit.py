"""The table of pursuit: learned on 4x2, played from 4x2 to 40x20 beside the rules.

The paper names pursuit and has no figures for it. What is asked here is its claim: that QUAD lets agents gather and
AMAX cannot. Two games: two pursuers are needed to catch, as many as there are for every evader; and three, more than
there are, so that pursuers must agree whom to hunt first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from muster.data import Floats
from muster.errors import InputError, UnknownNameError
from muster.evaluation.evaluate import evaluate
from muster.evaluation.statistics import bootstrap_interval
from muster.policy.learned import LearnedPolicy
from paper.tables.record_file import TableRecord
from paper.tables.run_names import RunName, policy_files

RULES = ("closest", "closest-pairs", "lp-distance")
TESTS = ("4x2", "8x4", "16x8", "20x10", "40x20")
METHODS = ("amax-dm", "lp-dm", "quad-dm")
GAMES = {2: "", 3: "three"}
"""Pursuers needed -> the word for it in the names of runs."""

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Cell:
    """One rule or policy, or all seeds of a method together, on one size. An episode that hit the limit counts it."""

    policy: str
    needed: int
    method: str
    """Such as "quad-dm", or the name of a rule."""
    learner: str
    """"" for a rule."""
    seeds: list[int]
    test: str
    mean: float
    """Steps until the last catch."""
    ci95: Interval
    failed: float
    """Share of the episodes that hit the limit."""
    best_rule: str
    """The rule with the least mean on these episodes; "" in its own cell and those of other rules."""
    difference: float | None
    """Mean minus that rule's, episode by episode."""
    difference_ci95: Interval | None
    cpu_minutes: float | None

    @property
    def key(self) -> tuple[str, int, str]:
        """A record holds one cell of each key."""
        return self.policy, self.needed, self.test

    @property
    def verdict(self) -> str:
        """Whether the whole interval of the difference is on one side of 0: "better", "worse", "even"; "" of a rule."""
        if self.difference_ci95 is None:
            return ""
        low, high = self.difference_ci95
        return "better" if high < 0 else "worse" if low > 0 else "even"


class Record(TableRecord[Cell]):
    """A run of the table."""

    cell_type = Cell


def run_table(
    episodes: int,
    seed: int,
    command: str,
    policies: Path,
    *,
    only: str = "*",
    tests: Sequence[str] = (),
    before: Record | None = None,
    report: Callable[[Cell], None] = lambda cell: None,
) -> Record:
    """Play the policies in a folder whose names match `only`, on `tests` (all if none are named), beside the rules.

    What is played replaces its cells in the record `before`, whose other cells stay as they are. A method's cell is of
    the seeds that were played.
    """
    if episodes < 2:
        raise InputError(f"an interval needs at least 2 episodes, got {episodes}")
    for test in tests:
        if test not in TESTS:
            raise UnknownNameError("test size in this table", test, TESTS)
    if before is not None:
        before.check_episodes(episodes, seed)
    files = policy_files(policies, "pursuit", only)
    if not files:
        raise InputError(f"nothing to play: no policy in {policies} is named {only!r}")
    cells = {cell.key: cell for cell in before.cells} if before else {}
    for needed, variant in GAMES.items():
        runs = {path: name for path, name in files.items() if name.variant == variant}
        for test in (tests or TESTS) if runs else ():
            for cell in play_size(needed, test, runs, episodes, seed, report):
                cells[cell.key] = cell
    return Record(episodes, seed, before.command if before else command, list(cells.values()))


def play_size(
    needed: int, test: str, runs: dict[Path, RunName], episodes: int, seed: int, report: Callable[[Cell], None]
) -> Iterable[Cell]:
    """The rules, every run, and every method's seeds together, on the same episodes."""
    env = f"pursuit:{test}" + (f",needed={needed}" if needed != 2 else "")

    def played(player: str) -> tuple[Floats, Floats]:
        records = evaluate(player, env, episodes, seed).records
        return records.outcome, records.truncated.astype(np.float64)

    def cell(
        policy: str, figures: tuple[Floats, Floats], best: str = "", rule: Floats | None = None, **facts: Any
    ) -> Cell:
        steps, failed = figures
        gain = None if rule is None else steps - rule
        made = Cell(
            policy=policy,
            needed=needed,
            test=test,
            mean=float(steps.mean()),
            ci95=bootstrap_interval(steps),
            failed=float(failed.mean()),
            best_rule=best,
            difference=None if gain is None else float(gain.mean()),
            difference_ci95=None if gain is None else bootstrap_interval(gain),
            **facts,
        )
        report(made)
        return made

    rules = {rule: played(rule) for rule in RULES}
    for rule, figures in rules.items():
        yield cell(rule, figures, method=rule, learner="", seeds=[], cpu_minutes=None)
    best = min(RULES, key=lambda rule: float(rules[rule][0].mean()))
    methods: dict[tuple[str, str], list[tuple[int, tuple[Floats, Floats], float]]] = {}
    for path, name in runs.items():
        minutes = float(LearnedPolicy.load(path).header["cpu_minutes"])
        figures = played(str(path))
        method = f"{name.inference}-{name.model}"
        methods.setdefault((method, name.learner), []).append((name.seed, figures, minutes))
        yield cell(
            path.stem, figures, best, rules[best][0],
            method=method, learner=name.learner, seeds=[name.seed], cpu_minutes=minutes,
        )  # fmt: skip
    for (method, learner), seeds in methods.items():
        # The mean over seeds, episode by episode: its interval is of the episodes, for these seeds.
        steps, failed = (np.mean([figures[k] for _, figures, _ in seeds], axis=0) for k in range(2))
        yield cell(
            f"{method}-{learner}", (steps, failed), best, rules[best][0],
            method=method, learner=learner, seeds=[one for one, _, _ in seeds], cpu_minutes=seeds[0][2],
        )  # fmt: skip


def find(record: Record, policy: str, needed: int, test: str) -> Cell | None:
    """A rule, a run ("pursuit-4x2-lp-dm-es-s0") or a method's seeds together ("lp-dm-es"), if it was played."""
    return next((cell for cell in record.cells if cell.key == (policy, needed, test)), None)


def rows_of(record: Record, needed: int) -> list[str]:
    """The rules and methods of one game that were played, in the table's order."""
    wanted = [*RULES, *(f"{method}-{learner}" for learner in ("es", "a2c") for method in METHODS)]
    return [name for name in wanted if any(find(record, name, needed, test) for test in TESTS)]


def runs_of(record: Record, name: str, needed: int, test: str) -> list[Cell]:
    """The single seeds of a method."""
    return [
        cell
        for cell in record.cells
        if (f"{cell.method}-{cell.learner}", cell.needed, cell.test) == (name, needed, test) and cell.policy != name
    ]


def as_json(record: Record) -> dict[str, Any]:
    """Every cell, with its verdict."""
    head = {"episodes": record.episodes, "seed": record.seed, "command": record.command}
    return head | {"cells": [asdict(cell) | {"verdict": cell.verdict} for cell in record.cells]}
