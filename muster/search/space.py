"""Search spaces and settings of a study.

A space as TOML, in tables as in the settings of `muster train`:

- `learner = "a2c"`: the same for every trial;
- `a2c.learning_rate = {low = 1e-5, high = 1.0, log = true}`: uniform in the logarithm;
- `a2c.critic_learning_rate = {same_as = "a2c.learning_rate"}`;
- `a2c.rollout_length = {low = 2, high = 5}`: integers, both ends included;
- `a2c.optimiser = ["adam", "sgd"]`: one of these.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from muster.errors import InputError, UnknownNameError
from muster.learning.settings import LARGEST_SEED, TrainSettings
from muster.settings import (
    AtLeast,
    Between,
    Positive,
    accept,
    build,
    check_fields,
    expected,
    options_of,
    overlaid,
    read_toml,
)

Sampler = Literal["random", "tpe"]
Pruner = Literal["none", "median", "hyperband"]
Judge = Literal["reward", "validation"]
Table = dict[str, Any]

BUILT_IN = ("ppo", "paper", "es")
MINUTES = 1.0
LOG_EVERY = 50_000
FEWEST_VALIDATION_EPISODES = 20
"""Held-out episodes at the end of a trial that is ranked by reward: their outcome is not used."""
LENGTH_AND_LOG = ("minutes", "steps", "seed", "log_every", "evaluate_episodes")
NOT_SEARCHED = ("env", "from_policy", *LENGTH_AND_LOG)
"""Settings that all trials share, since they could not be compared otherwise."""
JUDGED_BY = {
    "reward": "training reward with exploration: the best row of a trial's log for ppo and a2c, else the last",
    "validation": "mean outcome on held-out validation episodes, without exploration, at the end of a trial",
}


@dataclass(frozen=True, slots=True)
class Range:
    """Numbers from `low` to `high`, both included, sampled uniformly, or uniformly in the logarithm."""

    low: float
    high: float
    log: bool = False
    integer: bool = False

    @property
    def ends(self) -> tuple[float, float]:
        """Lowest and highest value."""
        return self.low, self.high

    def as_table(self) -> Table:
        """The range as in TOML."""
        return {"low": self.low, "high": self.high} | ({"log": True} if self.log else {})

    def __str__(self) -> str:
        return f"{self.low:g} to {self.high:g}" + (" (log)" if self.log else "")


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several values, uniformly."""

    values: tuple[str | int | float | bool, ...]

    @property
    def ends(self) -> tuple[Any, Any]:
        """First and last value."""
        return self.values[0], self.values[-1]

    def as_table(self) -> list[Any]:
        """The values as in TOML."""
        return list(self.values)

    def __str__(self) -> str:
        return " or ".join(map(str, self.values))


@dataclass(frozen=True)
class Space:
    """A search space, by dotted names of settings."""

    sampled: dict[str, Range | Choice]
    fixed: Table
    """Values that every trial has."""
    same: dict[str, str]
    """Setting -> sampled setting whose value it takes."""

    def without(self, names: Iterable[str]) -> Space:
        """The space without settings that the user has set."""
        removed = set(names)

        def keep(part: dict[str, Any]) -> dict[str, Any]:
            return {name: entry for name, entry in part.items() if name not in removed}

        sampled, same = keep(self.sampled), keep(self.same)
        for name, source in same.items():
            if source in removed:
                raise InputError(f"{name} is to be the same as {source} in this space; give both, or neither")
        if not sampled:
            raise InputError("every setting of the space is given: nothing is left to search")
        return Space(sampled, keep(self.fixed), same)

    def settings(self, values: Mapping[str, Any]) -> Table:
        """Nested table of a trial's settings from its sampled values."""
        table = self.fixed | dict(values)
        return unflatten(table | {name: table[source] for name, source in self.same.items()})

    def corners(self) -> list[Table]:
        """Settings at two corners of the space: all low or first, all high or last."""
        return [self.settings({name: domain.ends[end] for name, domain in self.sampled.items()}) for end in (0, 1)]

    def as_table(self) -> Table:
        """The space as in TOML, nested."""
        sampled = {name: domain.as_table() for name, domain in self.sampled.items()}
        return unflatten(self.fixed | sampled | {name: {"same_as": source} for name, source in self.same.items()})


@dataclass(frozen=True)
class StudySettings:
    """Settings of a study, stored in study.toml; processes that join the study must agree on them."""

    env: tuple[str, ...]
    """The environment, or environments, of every trial."""
    space_name: str
    """ppo, paper, es, or the file that the space was read from."""
    space: Table
    """The search space as a nested table: see `muster.search.space`."""
    run: Table = field(default_factory=dict)
    """Settings of `muster train` that every trial shares."""
    trials: Annotated[int, AtLeast(1)] = 128
    """Number of trials over all processes; the only setting that may change later."""
    minutes: Annotated[float | None, Positive()] = None
    """Minutes of CPU time of a trial (1 if neither this nor steps is given)."""
    steps: Annotated[int | None, AtLeast(1)] = None
    """Environment steps of a trial."""
    sampler: Sampler = "random"
    """random: as in the paper; tpe: tree-structured Parzen estimator."""
    pruner: Pruner = "none"
    """Stops trials early whose training reward is below the median of the others, or by Hyperband."""
    judge: Judge = "reward"
    """What trials are ranked by: training reward, as in the paper, or held-out validation episodes."""
    seed: Annotated[int, Between(0, LARGEST_SEED)] = 0
    """Seed of the sampler and of every run: all start with the same parameters and episodes."""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.minutes is not None and self.steps is not None:
            raise InputError("give the length of a trial as minutes or as steps, not both")
        if self.minutes is None and self.steps is None:
            object.__setattr__(self, "minutes", MINUTES)
        for table in self.parsed.corners():
            self.of_trial(table)

    @property
    def parsed(self) -> Space:
        """The search space."""
        return read_space(self.space, self.space_name)

    def of_trial(self, table: Table) -> TrainSettings:
        """Settings of the training run with these sampled values; InputError if they contradict each other."""
        shared: Table = {"minutes": self.minutes, "steps": self.steps, "seed": self.seed, "env": self.env}
        shared |= {"log_every": LOG_EVERY}
        shared |= {"evaluate_episodes": FEWEST_VALIDATION_EPISODES} if self.judge == "reward" else {}
        settings = build(TrainSettings, overlaid(overlaid(shared, self.run), table), "this trial")
        # Fixes the size of updates, which would depend on the machine's speed otherwise.
        return settings.filled()

    def portable(self, table: Table) -> Table:
        """Settings for `muster train --config`: env, shared and sampled settings of a trial, without its length."""
        kept = {name: value for name, value in self.run.items() if name not in LENGTH_AND_LOG}
        env = self.env[0] if len(self.env) == 1 else list(self.env)
        return overlaid({"env": env, **kept}, table)


def load_space(name: str, env: str) -> Space:
    """A built-in space (the paper's differs by environment), or that of a TOML file."""
    if name not in BUILT_IN:
        if not name.endswith(".toml"):
            raise UnknownNameError("space (or FILE.toml)", name, BUILT_IN)
        return read_space(read_toml(name), name)
    from muster.envs.registry import kind_of

    kind = "battle" if kind_of(env) == "battle" else "rescue"
    path = Path(__file__).with_name("spaces") / (f"paper-{kind}.toml" if name == "paper" else f"{name}.toml")
    return read_space(read_toml(path), f"the space {name}")


def read_space(table: Mapping[str, Any], where: str) -> Space:
    """The space of a nested table; InputError for a bound or value that its setting does not allow."""
    space = Space({}, {}, {})
    known = setting_hints()
    for name, entry in flatten(table, where):
        if name in NOT_SEARCHED:
            raise InputError(f"{name} cannot be searched ({where}): all trials must share it to be compared")
        if isinstance(entry, list):
            space.sampled[name] = _read_choice(name, entry, known[name], where)
        elif not isinstance(entry, Mapping):
            space.fixed[name] = accept(known[name], entry, name, where)
        elif set(entry) == {"same_as"}:
            space.same[name] = str(entry["same_as"])
        else:
            space.sampled[name] = _read_range(name, entry, known[name], where)
    for name, source in space.same.items():
        if source not in space.sampled:
            kind = f"setting that {where} samples, for {name} to be the same as,"
            raise UnknownNameError(kind, source, space.sampled)
    if not space.sampled:
        raise InputError(
            f"{where} samples nothing; give a setting a range, such as ppo.learning_rate = {{low = 1e-4, high = 1e-2}}"
        )
    return space


def setting_hints(kind: Any = TrainSettings, prefix: str = "") -> dict[str, Any]:
    """Dotted name of every training setting -> its annotation."""
    hints: dict[str, Any] = {}
    for name, option in options_of(kind).items():
        nested = dataclasses.is_dataclass(option.hint)
        hints |= setting_hints(option.hint, f"{prefix}{name}.") if nested else {prefix + name: option.hint}
    return hints


def flatten(table: Mapping[str, Any], where: str) -> Iterator[tuple[str, Any]]:
    """(dotted name, entry) pairs of a nested table; UnknownNameError for a name that is not a setting."""
    known, options = setting_hints(), options_of(TrainSettings)
    for name, entry in table.items():
        learner = name in options and name not in known
        if learner and not isinstance(entry, Mapping):
            raise InputError(f"{name} in {where} must be {expected(options[name].hint)}, got {entry!r}")
        for dotted, value in ((f"{name}.{key}", entry[key]) for key in entry) if learner else ((name, entry),):
            if dotted not in known:
                raise UnknownNameError(f"setting in {where}", dotted, known)
            yield dotted, value


def unflatten(values: Mapping[str, Any]) -> Table:
    """{"ppo.minibatches": 3} as {"ppo": {"minibatches": 3}}."""
    table: Table = {}
    for name, value in values.items():
        for part in reversed(name.split(".")):
            value = {part: value}
        table = overlaid(table, value)
    return table


def _read_range(name: str, table: Mapping[str, Any], hint: Any, where: str) -> Range:
    for part in table:
        if part not in ("low", "high", "log"):
            raise UnknownNameError(f"part of the range of {name} in {where}", part, ("low", "high", "log", "same_as"))
    if "low" not in table or "high" not in table:
        raise InputError(f"the range of {name} in {where} needs both low and high")
    integer, real = _takes(hint, int), _takes(hint, float)
    if not integer and not real:
        raise InputError(f"{name} in {where} has no range, it is {expected(hint)}; list the values to try: [a, b]")
    low, high = (accept(hint, table[end], f"{end} of {name}", where) for end in ("low", "high"))
    if not low < high:
        raise InputError(f"the range of {name} in {where} must have low below high, got {low} and {high}")
    log = accept(bool, table.get("log", False), f"log of {name}", where)
    if log and low <= 0:
        raise InputError(f"the range of {name} in {where} is logarithmic and must begin above 0, got {low}")
    return Range(low, high, log, integer=not real)


def _read_choice(name: str, values: list[Any], hint: Any, where: str) -> Choice:
    accepted = tuple(accept(hint, value, name, where) for value in values)
    if not accepted or len(set(accepted)) < len(accepted):
        raise InputError(f"{name} in {where} needs different values to choose from, got {values}")
    return Choice(accepted)


def _takes(hint: Any, kind: type) -> bool:
    """Whether an annotation such as Annotated[int | None, AtLeast(1)] takes values of a kind."""
    return hint is kind or any(_takes(part, kind) for part in get_args(hint))
