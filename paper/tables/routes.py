"""The table of learned routes: PLAN-DM, learned on 2x4 and played larger, on dry ground and in mud.

On dry ground distances are all there is to know, and the yardstick is the optimum. In mud it is the gap between the
planner that goes by distances and the one that knows the true times: what share of it learned costs close.
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
from paper.tables.run_names import policy_files

MUD = 0.3
DRY, MUDDY = "dry", "mud"
RULES = {DRY: ("lp-distance", "routes-distance", "topline"), MUDDY: ("lp-distance", "routes-distance", "routes-known")}
"""The rules of each ground; the last is the bar."""
TESTS = {DRY: ("2x4", "5x10", "8x15"), MUDDY: ("2x4", "5x10", "20x40")}
VARIANTS = {DRY: "", MUDDY: "mud"}
"""The word for it in the names of runs."""
METHOD = "plan-dm"

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Cell:
    """One rule or policy, or all seeds together, on one size. An episode that hit the limit counts it."""

    policy: str
    ground: str
    seeds: list[int]
    """[] for a rule."""
    test: str
    mean: float
    """Steps until the last pick-up."""
    ci95: Interval
    failed: float
    """Share of the episodes that hit the limit."""
    above: float
    """Share by which the mean lies above that of the bar."""
    closed: float | None
    """In mud: the share of the gap between routes-distance and routes-known that is closed."""
    cpu_minutes: float | None

    @property
    def key(self) -> tuple[str, str, str]:
        """A record holds one cell of each key."""
        return self.policy, self.ground, self.test


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

    What is played replaces its cells in the record `before`, whose other cells stay as they are.
    """
    if episodes < 2:
        raise InputError(f"an interval needs at least 2 episodes, got {episodes}")
    for test in tests:
        if not any(test in sizes for sizes in TESTS.values()):
            raise UnknownNameError("test size in this table", test, sorted({*TESTS[DRY], *TESTS[MUDDY]}))
    if before is not None:
        before.check_episodes(episodes, seed)
    files = policy_files(policies, "rescue", only)
    if not files:
        raise InputError(f"nothing to play: no policy in {policies} is named {only!r}")
    cells = {cell.key: cell for cell in before.cells} if before else {}
    for ground, variant in VARIANTS.items():
        runs = {path: name.seed for path, name in files.items() if name.variant == variant}
        for test in TESTS[ground] if runs else ():
            if not tests or test in tests:
                cells |= {cell.key: cell for cell in play_size(ground, test, runs, episodes, seed, report)}
    return Record(episodes, seed, before.command if before else command, list(cells.values()))


def play_size(
    ground: str, test: str, runs: dict[Path, int], episodes: int, seed: int, report: Callable[[Cell], None]
) -> Iterable[Cell]:
    """The rules, every run, and all seeds together, on the same episodes."""
    env = f"rescue:{test}" + (f",mud={MUD}" if ground == MUDDY else "")

    def played(player: str) -> tuple[Floats, Floats]:
        records = evaluate(player, env, episodes, seed).records
        return records.outcome, records.truncated.astype(np.float64)

    rules = {rule: played(rule) for rule in RULES[ground]}
    bar, base = (float(rules[rule][0].mean()) for rule in (RULES[ground][-1], "routes-distance"))

    def cell(policy: str, figures: tuple[Floats, Floats], seeds: list[int], minutes: float | None) -> Cell:
        steps, failed = figures
        mean = float(steps.mean())
        made = Cell(
            policy=policy,
            ground=ground,
            seeds=seeds,
            test=test,
            mean=mean,
            ci95=bootstrap_interval(steps),
            failed=float(failed.mean()),
            above=mean / bar - 1,
            closed=(base - mean) / (base - bar) if ground == MUDDY and base > bar else None,
            cpu_minutes=minutes,
        )
        report(made)
        return made

    for rule, figures in rules.items():
        yield cell(rule, figures, [], None)
    learned = []
    for path, run_seed in runs.items():
        minutes = float(LearnedPolicy.load(path).header["cpu_minutes"])
        learned.append((run_seed, played(str(path)), minutes))
        yield cell(path.stem, learned[-1][1], [run_seed], minutes)
    # The mean over seeds, episode by episode: its interval is of the episodes, for these seeds.
    steps, failed = (np.mean([figures[k] for _, figures, _ in learned], axis=0) for k in range(2))
    yield cell(METHOD, (steps, failed), [one for one, _, _ in learned], learned[0][2])


def find(record: Record, policy: str, ground: str, test: str) -> Cell | None:
    """A rule, a run or all seeds together ("plan-dm"), if it was played."""
    return next((cell for cell in record.cells if cell.key == (policy, ground, test)), None)


def seeds_of(record: Record, ground: str, test: str) -> list[Cell]:
    """The single seeds."""
    found = [cell for cell in record.cells if (cell.ground, cell.test) == (ground, test) and len(cell.seeds) == 1]
    return sorted((cell for cell in found if cell.policy != METHOD), key=lambda cell: cell.seeds)


def as_json(record: Record) -> dict[str, Any]:
    """Every cell."""
    head = {"episodes": record.episodes, "seed": record.seed, "command": record.command}
    return head | {"cells": [asdict(cell) for cell in record.cells]}
