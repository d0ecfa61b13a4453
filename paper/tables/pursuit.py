"""The table of pursuit: learned on 4x2, evaluated from 4x2 to 40x20 beside the baselines.

The paper names pursuit and prints nothing for it. What is asked here is its claim: that QUAD lets agents gather and
AMAX cannot. Two games: two pursuers are needed to catch, as many as there are for every evader; and three, more than
there are, so that pursuers must agree whom to hunt first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from muster.errors import InputError
from muster.evaluation.statistics import bootstrap_interval
from paper.run_names import policy_files
from paper.tables.engine import Asked, Grid, Interval, Outcomes, Record, Table, evaluate_side_by_side

BASELINES = ("closest", "closest-pairs", "lp-distance")
TESTS = ("4x2", "8x4", "16x8", "20x10", "40x20")
METHODS = ("amax-dm", "lp-dm", "quad-dm")
GAMES = {2: "", 3: "three"}
"""Pursuers needed -> the word for it in the names of runs."""
MARKS = {"better": "+", "even": "=", "worse": "-", "": ""}


@dataclass(frozen=True, slots=True)
class Cell:
    """A baseline, a policy, or all seeds of a method together, on one size. A failed episode counts the limit."""

    policy: str
    needed: int
    method: str
    """Such as "quad-dm", or the name of a baseline."""
    learner: str
    """"" for a baseline."""
    seeds: list[int]
    test: str
    mean: float
    """Steps until the last catch."""
    ci95: Interval
    failed: float
    """Share of the episodes that hit the limit."""
    best_baseline: str
    """The baseline with the least mean on these episodes; "" in the cells of baselines."""
    difference: float | None
    """Mean minus that baseline's, episode by episode."""
    difference_ci95: Interval | None
    cpu_minutes: float | None

    @property
    def verdict(self) -> str:
        """better, worse or even, by the side of 0 that the whole interval of the difference is on; "" of a baseline."""
        if self.difference_ci95 is None:
            return ""
        low, high = self.difference_ci95
        return "better" if high < 0 else "worse" if low > 0 else "even"


class Pursuit(Table[Cell]):
    """Pursuit."""

    name, cell, key, tests = "pursuit", Cell, ("policy", "needed", "test"), TESTS

    def evaluate(self, asked: Asked, record: Record[Cell]) -> Iterator[Cell]:
        """The games of the policies whose names match, size by size."""
        files = policy_files(self.policies(asked), "pursuit", asked.only)
        if not files:
            raise InputError(f"no policy in {self.policies(asked)} is named {asked.only!r}")
        for needed, variant in GAMES.items():
            runs = {path: run for path, run in files.items() if run.variant == variant}
            for test in (asked.tests or TESTS) if runs else ():
                env = f"pursuit:{test}" + (f",needed={needed}" if needed != 2 else "")
                found = evaluate_side_by_side(
                    env,
                    BASELINES,
                    runs,
                    asked.episodes,
                    asked.seed,
                    lambda run: f"{run.inference}-{run.model}-{run.learner}",
                )
                baselines: list[Outcomes] = []
                for one in found:
                    baselines += [one] if not one.learner else []
                    yield _cell(one, needed, test, min(baselines, key=lambda other: float(other.outcome.mean())))

    def line(self, cell: Cell) -> str:
        """A cell in a line."""
        return f"{cell.policy} on {cell.test}, {cell.needed} needed: {cell.mean:.3f} {cell.verdict}".rstrip()

    def show(self, record: Record[Cell], markdown: bool) -> Iterator[Grid | str]:
        """A grid for each game: baselines, then methods, over the sizes."""
        methods = [f"{method}-{learner}" for learner in ("es", "ppo", "a2c") for method in METHODS]
        for needed in GAMES:
            rows = []
            for name in (*BASELINES, *methods):
                cells = [record.find(policy=name, needed=needed, test=test) for test in TESTS]
                rows += [[name, *map(_value, cells)]] if any(cells) else []
                if any(cells) and name in methods and not markdown:
                    rows.append(["  each seed", *(_seeds(record, cell) for cell in cells)])
            title = f"Pursuit, {needed} needed: mean steps over {record.head['episodes']} episodes (95 %)"
            if rows:
                yield Grid(title, [f"{needed} needed" if markdown else "policy", *TESTS], [rows])
        yield "Learned on 4x2 only; a learned row is the mean over its seeds. An episode that hit the limit counts 200."
        yield "+ - =: better or worse than the best baseline of that size on the same episodes (paired, 95 %), or even."
        yield f"made with: {record.head['command']}"


def _cell(one: Outcomes, needed: int, test: str, best: Outcomes) -> Cell:
    gap = one.outcome - best.outcome if one.learner else None
    return Cell(
        policy=one.policy,
        needed=needed,
        method="-".join(one.method.split("-")[:2]) if one.learner else one.method,
        learner=one.learner,
        seeds=one.seeds,
        test=test,
        mean=float(one.outcome.mean()),
        ci95=bootstrap_interval(one.outcome),
        failed=float(one.failed.mean()),
        best_baseline="" if gap is None else best.policy,
        difference=None if gap is None else float(gap.mean()),
        difference_ci95=None if gap is None else bootstrap_interval(gap),
        cpu_minutes=one.cpu_minutes,
    )


def _value(cell: Cell | None) -> str:
    if cell is None:
        return "not run"
    failed = f", {cell.failed:.2%} fail" if cell.failed else ""
    return f"{cell.mean:.2f} ({cell.ci95[0]:.2f} to {cell.ci95[1]:.2f}{failed}) {MARKS[cell.verdict]}".rstrip()


def _seeds(record: Record[Cell], cell: Cell | None) -> str:
    if cell is None:
        return ""
    ones = record.where(method=cell.method, learner=cell.learner, needed=cell.needed, test=cell.test)
    ones = sorted((one for one in ones if one is not cell), key=lambda one: one.seeds)
    return ", ".join(f"{one.mean:.2f}{MARKS[one.verdict]}" for one in ones)
