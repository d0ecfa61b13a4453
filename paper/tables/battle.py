"""The paper's Tables 2 and 3 beside ours: battles, trained on one scenario of each kind of units and tested on all.

The paper's game and our simulator differ (docs/environments/battle.md), so the paper's win rates are shown for the
pattern; the honest yardstick of a policy is the best of the six heuristics in the same simulator. Every policy is
evaluated, then the median seed of each group once more with more battles and with noise.
"""

from __future__ import annotations

import hashlib
import json
import statistics
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from muster.errors import InputError, UnknownNameError
from muster.evaluation.evaluate import evaluate
from muster.evaluation.statistics import Interval, wilson_interval
from muster.policy.learned import LearnedPolicy
from paper.run_names import INFERENCES, RunName, policy_files
from paper.tables import heuristics
from paper.tables.engine import Asked, Grid, Record, Table, median_of
from paper.tables.heuristics import simulator_settings, with_interval

PRINTED = ("amax", "lp", "quad")
"""The procedures that the paper prints."""
PAPER: Mapping[str, dict[str, Any]] = tomllib.loads(
    Path(__file__).with_name("paper_battle.toml").read_text(encoding="utf-8")
)
"""The paper's 17 scenarios: train, heuristic (the best of the six), and rate with half its 95 % interval of best, amax,
lp and quad."""
TESTS = tuple(PAPER)
Group = tuple[str, str, str]
"""Scenario trained on, method and learner: policies that differ in their seed alone."""


@dataclass(frozen=True, slots=True)
class Note:
    """Where the simulator is known to be another game than the paper's."""

    mark: str
    scenarios: tuple[str, ...]
    text: str


NOTES = (
    Note(
        "†",
        ("w60v67", "w60v68", "w80v82"),
        "too easy in our simulator for policies that avoid over-kill, heuristics included: not the paper's game on "
        "equal terms (docs/environments/battle.md, known errors)",
    ),
    Note(
        "‡",
        ("zh10v10", "zh10v11", "zh10v12", "zh11v11", "zh12v12"),
        "wcnoks is weaker in our simulator than in the paper's game (docs/environments/battle.md, known errors)",
    ),
)


@dataclass(frozen=True, slots=True)
class Cell:
    """Battles of one policy in one scenario."""

    policy: str
    train: str
    method: str
    """Such as "quad-dm"."""
    learner: str
    seed: int
    """Of the training."""
    hash: str
    """SHA-256 of the policy file."""
    cpu_minutes: float | None
    """What the training took."""
    steps: int | None
    """Environment steps of the training."""
    test: str
    role: Literal["seed", "median"]
    """seed: every policy; median: the policy that stands for its group, with more battles or with noise."""
    noise: bool
    wins: int
    battles: int
    battle_seed: int
    """Which set of battles."""
    command: str

    @property
    def group(self) -> Group:
        """Policies that differ in their seed alone."""
        return self.train, self.method, self.learner

    @property
    def rate(self) -> float:
        """Share of battles won."""
        return self.wins / self.battles

    @property
    def interval(self) -> Interval:
        """Wilson's 95 % interval of the rate."""
        return wilson_interval(self.wins, self.battles)


class Battle(Table[Cell]):
    """Battles."""

    name, cell, key, measured = "battle", Cell, ("policy", "test", "role", "noise"), ("wins",)
    counts, flags, tests = ("battles", "seed_battles", "seed"), ("policies", "only", "tests", "fresh"), TESTS
    head, saves_each = ("settings",), True

    def open(self, path: Path, asked: Asked) -> Record[Cell]:
        """What there is stays and is not evaluated again, unless it was made with other settings of the simulator."""
        settings = simulator_settings()
        record = self.load(path) if path.exists() else Record[Cell]({"settings": settings}, [])
        # Settings that have become constants are in older records only.
        changed = [name for name, value in settings.items() if record.head["settings"].get(name, value) != value]
        if changed and asked.only != "*":
            raise InputError(
                f"{path} was made with other settings of the simulator ({', '.join(changed)}); evaluate all policies "
                "again, without --only"
            )
        return Record({"settings": settings}, [] if changed else record.cells)

    def is_known(self, cell: Cell, asked: Asked, committed: Record[Cell]) -> bool:
        """Whether the committed record has the same battles of the same file."""
        facts = ("policy", "test", "role", "noise", "hash", "battles", "battle_seed")
        return committed.find(**{name: getattr(cell, name) for name in facts}) is not None

    def evaluate(self, asked: Asked, record: Record[Cell]) -> Iterator[Cell]:
        """The policies whose names match; a cell is evaluated if its file, its number of battles or the seed is new."""
        folder = self.policies(asked)
        names = {file.stem: name for file, name in policy_files(folder, "battle").items()}
        chosen = [file.stem for file in policy_files(folder, "battle", asked.only)]
        if not chosen:
            there = (
                f"no policy there is named {asked.only!r}; there is {', '.join(names)}"
                if names
                else "it has no policies"
            )
            raise InputError(f"nothing to evaluate in {folder}: {there}")
        if asked.only == "*":
            record.cells[:] = [cell for cell in record.cells if cell.policy in names]
        groups: set[Group] = set()
        for policy in chosen:
            candidate = Candidate.read(folder / f"{policy}.safetensors", names[policy])
            groups.add(candidate.group)
            _check_tests(asked.tests, candidate.name.train)
            for test in asked.tests or scenarios_of(candidate.name.train):
                yield from self._cell(asked, record, candidate, test, "seed", False)
        for group in sorted(groups, key=_order):
            median = median_policy((cell for cell in record.cells if cell.policy in names), group)
            assert median is not None
            # A policy that no longer stands for its group leaves its extra cells.
            record.cells[:] = [
                cell for cell in record.cells if cell.group != group or cell.role != "median" or cell.policy == median
            ]
            candidate = Candidate.read(folder / f"{median}.safetensors", names[median])
            for noise in (False, True):
                for test in asked.tests or scenarios_of(group[0]):
                    yield from self._cell(asked, record, candidate, test, "median", noise)
        record.cells.sort(key=lambda c: (_order(c.group), c.seed, c.role == "median", c.noise, TESTS.index(c.test)))

    def _cell(
        self, asked: Asked, record: Record[Cell], candidate: Candidate, test: str, role: Any, noise: bool
    ) -> Iterator[Cell]:
        """The cell, unless the record holds that very one; cells of another file under the same name go."""
        battles = asked.battles if role == "median" and not noise else asked.seed_battles
        policy = candidate.path.stem
        same = {"policy": policy, "test": test, "role": role, "noise": noise, "hash": candidate.hash}
        if not asked.fresh and record.find(**same, battles=battles, battle_seed=asked.seed):
            return
        record.cells[:] = [cell for cell in record.cells if cell.policy != policy or cell.hash == candidate.hash]
        found = evaluate(str(candidate.path), f"battle:{test}{candidate.options}", battles, asked.seed, noise)
        train, method, learner = candidate.group
        yield Cell(
            train=train,
            method=method,
            learner=learner,
            seed=candidate.name.seed,
            cpu_minutes=candidate.cpu_minutes,
            steps=candidate.steps,
            wins=int(found.records.outcome.sum()),
            battles=battles,
            battle_seed=asked.seed,
            command=self.command(asked),
            **same,
        )

    def line(self, cell: Cell) -> str:
        """A cell in a line."""
        noise = " with noise" if cell.noise else ""
        return f"{cell.policy} on {cell.test}{noise}: {cell.wins} of {cell.battles} battles won"

    def show(self, record: Record[Cell], markdown: bool) -> Iterator[Grid | str]:
        """A block for each scenario; for a document, first the win rates of the median seeds."""
        rates = _heuristics()
        best = best_heuristics(rates)
        if markdown:
            yield _summary(record, best)
        columns = (
            *("test", "best heuristic: paper", "ours [95 %]", "method", "paper", "learner", "median seed [95 %]"),
            *("over seeds: median (min-max)", "seeds", "with noise", "CPU min", "M steps"),
        )
        blocks = [
            [(["", "", ""] if k else _heads(test, best)) + _values(row) for k, row in enumerate(rows_of(record, test))]
            for test in TESTS
        ]
        yield Grid("Battles, win rate", columns, blocks, ("test", "method", "learner"))
        for note in NOTES:
            yield f"{note.mark} {note.text}."
        yield (
            "The median seed, one policy a method and learner, has the median win rate in the scenario trained on; "
            "the spread is over all seeds."
        )
        if record.find(learner="es", noise=True):
            yield "ES trains without noise on the scores; with noise it is evaluated with the default settings."
        if changed := changed_settings(record, rates):
            yield (
                f"Our heuristics were evaluated under OTHER simulator settings than policies ({', '.join(changed)}); "
                "compare them after python -m paper tables heuristics --rerun or tables battle --rerun."
            )
        if any(row.median is None for test in TESTS for row in rows_of(record, test)):
            yield (
                "Where it says not run: put trained policies into paper/battle/policies, then run: "
                "python -m paper tables battle --rerun."
            )
        for command in dict.fromkeys(cell.command for cell in record.cells):
            yield f"made with: {command}"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A policy file and what is known of it."""

    path: Path
    name: RunName
    hash: str
    options: str
    """What the policy is shown beyond the usual, such as ",raw_distance=true"."""
    cpu_minutes: float | None
    steps: int | None

    @property
    def group(self) -> Group:
        """Policies that differ in their seed alone."""
        return self.name.train, self.name.method, self.name.learner

    @classmethod
    def read(cls, path: Path, name: RunName) -> Candidate:
        """From the policy file and, for what the training took, the run's summary if there is one."""
        from muster.envs.battle.settings import SHOWN

        header = LearnedPolicy.load(path).header
        scenario, *options = str(header.get("env", "")).split(",")
        if scenario != f"battle:{name.train}":
            raise InputError(f"{path.name} was trained on {scenario or 'nothing known'}, not on battle:{name.train}")
        summary = path.parents[1] / "runs" / path.stem / "summary.json"
        facts = json.loads(summary.read_text(encoding="utf-8")) if summary.exists() else header
        return cls(
            path=path,
            name=name,
            hash=hashlib.sha256(path.read_bytes()).hexdigest(),
            options="".join(f",{option}" for option in options if option.partition("=")[0] in SHOWN),
            cpu_minutes=facts.get("cpu_minutes"),
            steps=facts.get("steps"),
        )


def scenarios_of(train: str) -> list[str]:
    """The paper's scenarios with the units of `train`: those that a policy trained there is tested on."""
    found = [test for test in TESTS if test.rstrip("0123456789v") == train.rstrip("0123456789v")]
    if train not in found:
        raise InputError(f"the table has no scenario {train!r} to train on; it has {', '.join(TESTS)}")
    return found


def _check_tests(tests: Iterable[str], train: str) -> None:
    known = scenarios_of(train)
    for test in tests:
        if test not in known:
            raise UnknownNameError(f"scenario with the units of {train}", test, known)
    if tests and train not in tests:
        raise InputError(f"{train}, which was trained on, must be among the tests: it decides which seed is the median")


def _order(group: Group) -> tuple[int, int, str, str]:
    """Sorts groups as the table shows them."""
    train, method, learner = group
    return TESTS.index(train), INFERENCES.index(method.partition("-")[0]), method, learner


def median_policy(cells: Iterable[Cell], group: Group) -> str | None:
    """The policy whose win rate in the scenario trained on is the median of its group (the lower of two)."""
    own = [c for c in cells if c.group == group and c.role == "seed" and c.test == c.train]
    found = median_of(own, key=lambda cell: (cell.rate, cell.seed))
    return None if found is None else found.policy


@dataclass(frozen=True, slots=True)
class Row:
    """One method and learner in one scenario."""

    test: str
    train: str
    method: str
    learner: str
    """"" where nothing was run."""
    paper: float | None
    seeds: list[Cell]
    """Every seed, without noise."""
    median: Cell | None
    """The policy that stands for the group, without noise."""
    noisy: Cell | None
    """The same with its exploration noise on."""

    @property
    def spread(self) -> tuple[float, float, float] | None:
        """Median, least and greatest win rate over the seeds."""
        rates = [cell.rate for cell in self.seeds]
        return (statistics.median(rates), min(rates), max(rates)) if rates else None


def rows_of(record: Record[Cell], test: str) -> list[Row]:
    """What there is on a scenario: each method of the paper, run or not, and all else that was run."""
    printed = PAPER[test]
    groups = {cell.group for cell in record.where(test=test)}
    run = {method for train, method, _ in groups if train == printed["train"]}
    groups |= {(printed["train"], f"{name}-dm", "") for name in PRINTED if f"{name}-dm" not in run}
    rows = []
    for group in sorted(groups, key=_order):
        train, method, learner = group
        own = {"test": test, "train": train, "method": method, "learner": learner}
        median = {**own, "policy": median_policy(record.cells, group), "role": "median"}
        rows.append(
            Row(
                **own,
                paper=printed[method.partition("-")[0]][0] if train == printed["train"] else None,
                seeds=record.where(**own, role="seed"),
                median=record.find(**median, noise=False),
                noisy=record.find(**median, noise=True),
            )
        )
    return rows


def _heuristics() -> Record[heuristics.Cell]:
    return heuristics.Heuristics().load()


def best_heuristics(record: Record[heuristics.Cell]) -> dict[str, heuristics.Cell]:
    """The best of the six in each scenario of our own record."""
    best: dict[str, heuristics.Cell] = {}
    for cell in record.cells:
        if cell.scenario not in best or cell.rate > best[cell.scenario].rate:
            best[cell.scenario] = cell
    return best


def changed_settings(record: Record[Cell], rates: Record[heuristics.Cell]) -> list[str]:
    """Settings of the simulator that differ between the two records; a record older than a setting does not name it."""
    own = record.head["settings"]
    return [name for name, value in rates.head["settings"].items() if name in own and own[name] != value]


def _heads(test: str, best: dict[str, heuristics.Cell]) -> list[str]:
    """Scenario, the paper's best heuristic and ours."""
    ours, marks = best.get(test), "".join(note.mark for note in NOTES if test in note.scenarios)
    shown = "–" if ours is None else f"{ours.heuristic} {with_interval(ours)}"
    return [test + marks, f"{PAPER[test]['heuristic']} {PAPER[test]['best'][0]:.2f}", shown]


def _values(row: Row) -> list[str]:
    """Method, the paper's value and ours."""
    paper = "–" if row.paper is None else f"{row.paper:.2f}"
    method = row.method if row.train == PAPER[row.test]["train"] else f"{row.method} ({row.train})"
    if not row.seeds:
        return [method, paper, row.learner or "–", "not run", *["–"] * 5]
    middle, low, high = row.spread or (0.0, 0.0, 0.0)
    cost = row.median or row.seeds[0]
    return [
        method,
        paper,
        row.learner,
        "not run" if row.median is None else with_interval(row.median),
        f"{middle:.2f} ({low:.2f}-{high:.2f})",
        str(len(row.seeds)),
        "–" if row.noisy is None else f"{row.noisy.rate:.2f}",
        "–" if cost.cpu_minutes is None else f"{cost.cpu_minutes:.1f}",
        "–" if cost.steps is None else f"{cost.steps / 1e6:.1f}",
    ]


def _summary(record: Record[Cell], best: dict[str, heuristics.Cell]) -> Grid:
    """The paper's value and each learner's median seed, method by method."""
    every = {test: [row for row in rows_of(record, test) if row.train == PAPER[test]["train"]] for test in TESTS}
    methods = sorted({row.method for rows in every.values() for row in rows}, key=lambda m: _order(("m10v10", m, "")))
    learners = {
        m: sorted({r.learner for rows in every.values() for r in rows if r.method == m} - {""}) for m in methods
    }
    head = ["test", "best heuristic: paper", "ours [95 %]"]
    for method in methods:
        head += [f"{method} paper", *(f"{method} {learner}" for learner in learners[method])]
    lines = []
    for test, rows in every.items():
        line = _heads(test, best)
        for method in methods:
            own = [row for row in rows if row.method == method]
            line.append("–" if not own or own[0].paper is None else f"{own[0].paper:.2f}")
            for learner in learners[method]:
                median = next((row.median for row in own if row.learner == learner), None)
                line.append("–" if median is None else with_interval(median))
        lines.append(line)
    return Grid("", head, [lines])
