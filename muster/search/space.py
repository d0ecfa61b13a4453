"""What a study is, and what it samples: settings of a run, each with a range, a list of values, or another's value.

A space as TOML, in tables as in the settings of `muster train`:

- `learner = "a2c"`: the same for every trial;
- `a2c.learning_rate = {low = 1e-5, high = 1.0, log = true}`: uniform in the logarithm;
- `a2c.critic_learning_rate = {same_as = "a2c.learning_rate"}`;
- `a2c.rollout_length = {low = 2, high = 5}`: whole numbers, both ends included;
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
    options_of,
    overlaid,
    read_toml,
    wanted,
)

Sampler = Literal["random", "tpe"]
Pruner = Literal["none", "median", "hyperband"]
Judge = Literal["reward", "validation"]
Table = dict[str, Any]

BUILT_IN = ("ppo", "paper", "es")
MINUTES = 1.0
LOG_EVERY = 50_000
TOKEN_EPISODES = 20
"""Held-out episodes at the end of a run whose outcome is not used."""
LENGTH_AND_LOG = ("minutes", "steps", "seed", "log_every", "evaluate_episodes")
NOT_SEARCHED = ("env", "from_policy", *LENGTH_AND_LOG)
"""What all trials must share, or they could not be compared."""
JUDGED_BY = {
    "reward": "training reward, exploration included: the best row of a trial's log; but for ppo and a2c, the last",
    "validation": "mean outcome on held-out validation episodes, without exploration, at the end of a trial",
}


@dataclass(frozen=True, slots=True)
class Range:
    """Numbers from `low` to `high`, both included, sampled uniformly, or uniformly in the logarithm."""

    low: float
    high: float
    log: bool = False
    whole: bool = False

    @property
    def ends(self) -> tuple[float, float]:
        """Lowest and highest."""
        return self.low, self.high

    def as_table(self) -> Table:
        """As TOML says it."""
        return {"low": self.low, "high": self.high} | ({"log": True} if self.log else {})

    def __str__(self) -> str:
        return f"{self.low:g} to {self.high:g}" + (" (log)" if self.log else "")


@dataclass(frozen=True, slots=True)
class Choice:
    """One of some values, each as likely."""

    values: tuple[str | int | float | bool, ...]

    @property
    def ends(self) -> tuple[Any, Any]:
        """First and last."""
        return self.values[0], self.values[-1]

    def as_table(self) -> list[Any]:
        """As TOML says it."""
        return list(self.values)

    def __str__(self) -> str:
        return " or ".join(map(str, self.values))


@dataclass(frozen=True)
class Space:
    """What is sampled, what is the same for every trial, and what follows another setting; by dotted names."""

    sampled: dict[str, Range | Choice]
    fixed: Table
    same: dict[str, str]

    def without(self, names: Iterable[str]) -> Space:
        """The space once some settings are given."""
        gone = set(names)

        def left(part: dict[str, Any]) -> dict[str, Any]:
            return {name: what for name, what in part.items() if name not in gone}

        sampled, same = left(self.sampled), left(self.same)
        for name, source in same.items():
            if source in gone:
                raise InputError(f"{name} is to be the same as {source} in this space; give both, or neither")
        if not sampled:
            raise InputError("every setting of the space is given: nothing is left to search")
        return Space(sampled, left(self.fixed), same)

    def settings(self, values: Mapping[str, Any]) -> Table:
        """The nested table of settings of one trial."""
        found = self.fixed | dict(values)
        return nested(found | {name: found[source] for name, source in self.same.items()})

    def corners(self) -> list[Table]:
        """Trials at the ends of the ranges: all low or first, all high or last."""
        return [self.settings({name: what.ends[end] for name, what in self.sampled.items()}) for end in (0, 1)]

    def as_table(self) -> Table:
        """As TOML says it, nested."""
        sampled = {name: what.as_table() for name, what in self.sampled.items()}
        return nested(self.fixed | sampled | {name: {"same_as": source} for name, source in self.same.items()})


@dataclass(frozen=True)
class StudySettings:
    """What is searched, how, and what a trial costs; kept in study.toml. Processes that join a study must agree."""

    env: tuple[str, ...]
    """The environment, or environments, of every trial."""
    space_name: str
    """ppo, paper, es, or the file that the space was read from."""
    space: Table
    """What is sampled; `muster.search.space` says how it reads."""
    run: Table = field(default_factory=dict)
    """Settings of `muster train` that every trial shares."""
    trials: Annotated[int, AtLeast(1)] = 128
    """Trials altogether, over all processes. The only thing that may change later."""
    minutes: Annotated[float | None, Positive()] = None
    """Minutes of CPU time of a trial (1 if neither this nor steps is given)."""
    steps: Annotated[int | None, AtLeast(1)] = None
    """Environment steps of a trial."""
    sampler: Sampler = "random"
    """random: as in the paper; tpe: near those that did well."""
    pruner: Pruner = "none"
    """Ends trials early that fall behind in training reward: below the median of the others, or by Hyperband."""
    judge: Judge = "reward"
    """What trials are compared by: training reward, as in the paper, or held-out validation episodes."""
    seed: Annotated[int, Between(0, LARGEST_SEED)] = 0
    """Of the trials, and of every run: all begin with the same parameters and episodes."""

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
        """The space."""
        return read_space(self.space, self.space_name)

    def of_trial(self, table: Table) -> TrainSettings:
        """Settings of the run with these sampled settings; InputError where they do not go together."""
        own = {"minutes": self.minutes, "steps": self.steps, "seed": self.seed, "env": self.env}
        shared: Table = {"log_every": LOG_EVERY}
        shared |= {"evaluate_episodes": TOKEN_EPISODES} if self.judge == "reward" else {}
        made = build(TrainSettings, overlaid(overlaid(shared | own, self.run), table), "this trial")
        # Trials that are compared have updates of one size, whatever the machine does meanwhile.
        return made.filled()

    def portable(self, table: Table) -> Table:
        """Settings for `muster train --config`: env, what trials share and what this one sampled; not its length."""
        kept = {name: value for name, value in self.run.items() if name not in LENGTH_AND_LOG}
        env = self.env[0] if len(self.env) == 1 else list(self.env)
        return overlaid({"env": env, **kept}, table)


def load_space(name: str, env: str) -> Space:
    """One that comes with muster (the paper's differs by environment), or a TOML file's."""
    if name not in BUILT_IN:
        if not name.endswith(".toml"):
            raise UnknownNameError("space (or FILE.toml)", name, BUILT_IN)
        return read_space(read_toml(name), name)
    from muster.envs.registry import kind_of

    kind = "battle" if kind_of(env) == "battle" else "rescue"
    path = Path(__file__).with_name("spaces") / (f"paper-{kind}.toml" if name == "paper" else f"{name}.toml")
    return read_space(read_toml(path), f"the space {name}")


def read_space(table: Mapping[str, Any], where: str) -> Space:
    """The space that a nested table says; every bound and value must be one that its setting takes."""
    space = Space({}, {}, {})
    known = setting_hints()
    for name, what in flat(table, where):
        if name in NOT_SEARCHED:
            raise InputError(f"{name} cannot be searched ({where}): all trials must share it to be compared")
        if isinstance(what, list):
            space.sampled[name] = _read_choice(name, what, known[name], where)
        elif not isinstance(what, Mapping):
            space.fixed[name] = accept(known[name], what, name, where)
        elif set(what) == {"same_as"}:
            space.same[name] = str(what["same_as"])
        else:
            space.sampled[name] = _read_range(name, what, known[name], where)
    for name, source in space.same.items():
        if source not in space.sampled:
            said = f"setting that {where} samples, for {name} to be the same as,"
            raise UnknownNameError(said, source, space.sampled)
    if not space.sampled:
        raise InputError(
            f"{where} samples nothing; give a setting a range, such as ppo.learning_rate = {{low = 1e-4, high = 1e-2}}"
        )
    return space


def setting_hints(kind: Any = TrainSettings, prefix: str = "") -> dict[str, Any]:
    """Dotted name of every setting of a run -> its annotation."""
    found: dict[str, Any] = {}
    for name, option in options_of(kind).items():
        nested = dataclasses.is_dataclass(option.hint)
        found |= setting_hints(option.hint, f"{prefix}{name}.") if nested else {prefix + name: option.hint}
    return found


def flat(table: Mapping[str, Any], where: str) -> Iterator[tuple[str, Any]]:
    """(dotted name, what is said of it) of a nested table; names of no setting are refused."""
    known, options = setting_hints(), options_of(TrainSettings)
    for name, what in table.items():
        learner = name in options and name not in known
        if learner and not isinstance(what, Mapping):
            raise InputError(f"{name} in {where} must be {wanted(options[name].hint)}, got {what!r}")
        for dotted, said in ((f"{name}.{key}", what[key]) for key in what) if learner else ((name, what),):
            if dotted not in known:
                raise UnknownNameError(f"setting in {where}", dotted, known)
            yield dotted, said


def nested(values: Mapping[str, Any]) -> Table:
    """{"ppo.minibatches": 3} as {"ppo": {"minibatches": 3}}."""
    table: Table = {}
    for name, value in values.items():
        for part in reversed(name.split(".")):
            value = {part: value}
        table = overlaid(table, value)
    return table


def _read_range(name: str, what: Mapping[str, Any], hint: Any, where: str) -> Range:
    for part in what:
        if part not in ("low", "high", "log"):
            raise UnknownNameError(f"part of the range of {name} in {where}", part, ("low", "high", "log", "same_as"))
    if "low" not in what or "high" not in what:
        raise InputError(f"the range of {name} in {where} needs both low and high")
    whole, number = _takes(hint, int), _takes(hint, float)
    if not whole and not number:
        raise InputError(f"{name} in {where} has no range, it is {wanted(hint)}; list the values to try: [a, b]")
    low, high = (accept(hint, what[end], f"{end} of {name}", where) for end in ("low", "high"))
    if not low < high:
        raise InputError(f"the range of {name} in {where} must have low below high, got {low} and {high}")
    log = accept(bool, what.get("log", False), f"log of {name}", where)
    if log and low <= 0:
        raise InputError(f"the range of {name} in {where} is logarithmic and must begin above 0, got {low}")
    return Range(low, high, log, whole=not number)


def _read_choice(name: str, what: list[Any], hint: Any, where: str) -> Choice:
    values = tuple(accept(hint, value, name, where) for value in what)
    if not values or len(set(values)) < len(values):
        raise InputError(f"{name} in {where} needs different values to choose from, got {what}")
    return Choice(values)


def _takes(hint: Any, kind: type) -> bool:
    """Whether an annotation such as Annotated[int | None, AtLeast(1)] takes values of a kind."""
    return hint is kind or any(_takes(part, kind) for part in get_args(hint))
