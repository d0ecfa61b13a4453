"""Playing the table of battles: every policy, then the median seed of each group once more with more battles.

The record is written after every cell and what it already holds is not played again, so that a run that was cut short
loses one cell and goes on where it was.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from muster.errors import InputError, UnknownNameError
from muster.evaluation.evaluate import evaluate
from muster.policy.learned import LearnedPolicy
from paper.tables.battle import Cell, Group, Record, Role, group_order, median_policy, scenarios_of
from paper.tables.run_names import RunName, policy_files


@dataclass(frozen=True, slots=True)
class Counts:
    """How much is played."""

    battles: int = 1000
    """A scenario, for the median seed."""
    seed_battles: int = 400
    """A scenario, for every seed, and for the median seed with noise."""
    seed: int = 0
    """Which set of battles."""

    def __post_init__(self) -> None:
        for name in ("battles", "seed_battles"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1, got {getattr(self, name)}")


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
    def read(cls, path: Path, name: RunName, runs: Path) -> Candidate:
        """From the policy file and, for what the training took, the run's summary in `runs` if there is one."""
        header = LearnedPolicy.load(path).header
        scenario, *options = str(header.get("env", "")).split(",")
        if scenario != f"battle:{name.train}":
            raise InputError(f"{path.name} was trained on {scenario or 'nothing known'}, not on battle:{name.train}")
        scenarios_of(name.train)
        summary = _read_json(runs / path.stem / "summary.json") or header
        return cls(
            path=path,
            name=name,
            hash=hashlib.sha256(path.read_bytes()).hexdigest(),
            options="".join(f",{option}" for option in options if option.partition("=")[0] in _shown()),
            cpu_minutes=summary.get("cpu_minutes"),
            steps=summary.get("steps"),
        )


def _shown() -> set[str]:
    from muster.envs.battle.settings import BattleOptions

    return {field.name for field in fields(BattleOptions)}


def _read_json(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise InputError(f"{path} is not a run's summary, or damaged ({error})") from None
    return dict(found)


def simulator_settings() -> dict[str, Any]:
    """The settings that battles are fought with."""
    from muster.envs.battle.settings import BattleSettings

    return asdict(BattleSettings())


def run_table(
    path: Path,
    policies: Path,
    counts: Counts,
    command: str,
    *,
    only: str = "*",
    fresh: bool = False,
    report: Callable[[Cell], None] = lambda cell: None,
    scenarios: Sequence[str] = (),
) -> Record:
    """Play the policies in a folder whose names match `only` and keep the record in `path`.

    Other policies' cells stay as they are. A cell is played anew if its policy file, its number of battles or the seed
    has changed, or if `fresh`. `scenarios`, if any are named, restricts the tests; the scenario trained on must be
    among them, since it decides which seed is the median.
    """
    names = {file.stem: name for file, name in policy_files(policies, "battle").items()}
    wanted = [file.stem for file in policy_files(policies, "battle", only)]
    if not wanted:
        found = f"no policy there is named {only!r}; there is {', '.join(names)}" if names else "it has no policies"
        raise InputError(f"nothing to play in {policies}: {found}")
    record = _open(path, only)
    if only == "*":
        record = record.without(cell for cell in record.cells if cell.policy not in names)
    game = _Game(path, record, counts, command, fresh, report)

    def read(policy: str) -> Candidate:
        return Candidate.read(policies / f"{policy}.safetensors", names[policy], policies.parent / "runs")

    groups: set[Group] = set()
    for policy in wanted:
        candidate = read(policy)
        groups.add(candidate.group)
        _check_tests(scenarios, candidate.name.train)
        for test in scenarios or scenarios_of(candidate.name.train):
            game.play(candidate, test, "seed", False)
    for group in sorted(groups, key=group_order):
        chosen = median_policy((cell for cell in game.record.cells if cell.policy in names), group)
        assert chosen is not None
        game.forget(c for c in game.record.cells if c.group == group and c.role == "median" and c.policy != chosen)
        candidate = read(chosen)
        for noise in (False, True):
            for test in scenarios or scenarios_of(group[0]):
                game.play(candidate, test, "median", noise)
    game.record.save(path)
    return game.record


def _check_tests(tests: Sequence[str], train: str) -> None:
    known = scenarios_of(train)
    for test in tests:
        if test not in known:
            raise UnknownNameError(f"scenario with the units of {train}", test, known)
    if tests and train not in tests:
        raise InputError(f"{train}, which was trained on, must be among the tests: it decides which seed is the median")


def _open(path: Path, only: str) -> Record:
    settings = simulator_settings()
    if not path.exists():
        return Record(settings)
    record = Record.load(path)
    # Records name settings that have become constants, too.
    names = [name for name in settings if record.settings.get(name) != settings[name]]
    if not names:
        return record
    if only != "*":
        raise InputError(
            f"{path} was made with other settings of the simulator ({', '.join(names)}); "
            "play all policies again, without --only"
        )
    return Record(settings)


class _Game:
    """A record in the making."""

    def __init__(
        self, path: Path, record: Record, counts: Counts, command: str, fresh: bool, report: Callable[[Cell], None]
    ) -> None:
        self.path = path
        self.record = record
        self._counts = counts
        self._command = command
        self._fresh = fresh
        self._report = report

    def play(self, candidate: Candidate, test: str, role: Role, noise: bool) -> None:
        """Play a cell and write the record, unless it holds that very cell."""
        counts = self._counts
        battles = counts.battles if role == "median" and not noise else counts.seed_battles
        policy = candidate.path.stem
        same = (policy, test, role, noise), candidate.hash, battles, counts.seed
        if not self._fresh and any((c.key, c.hash, c.battles, c.battle_seed) == same for c in self.record.cells):
            return
        env = f"battle:{test}{candidate.options}"
        found = evaluate(str(candidate.path), env, battles, counts.seed, noise)
        train, method, learner = candidate.group
        cell = Cell(
            policy=policy,
            train=train,
            method=method,
            learner=learner,
            seed=candidate.name.seed,
            hash=candidate.hash,
            cpu_minutes=candidate.cpu_minutes,
            steps=candidate.steps,
            test=test,
            role=role,
            noise=noise,
            wins=int(found.records.outcome.sum()),
            battles=battles,
            battle_seed=counts.seed,
            command=self._command,
        )
        self.record = self.record.with_cell(cell)
        self.record.save(self.path)
        self._report(cell)

    def forget(self, cells: Iterable[Cell]) -> None:
        """Drop the cells of a policy that no longer stands for its group."""
        self.record = self.record.without(cells)
