"""What a search samples: settings of a run, each with a range, a list of values, or another setting's value.

As TOML, in tables as in the settings of `muster train`:

- `learner = "a2c"`: the same for every trial;
- `a2c.learning_rate = {low = 1e-5, high = 1.0, log = true}`: uniform in the logarithm;
- `a2c.critic_learning_rate = {same_as = "a2c.learning_rate"}`;
- `a2c.rollout_length = {low = 2, high = 5}`: whole numbers, both ends included;
- `a2c.optimiser = ["adam", "sgd"]`: one of these.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from muster.errors import InputError, UnknownNameError
from muster.learning.settings import TrainSettings
from muster.settings import accept, options_of, overlaid, read_toml, wanted

BUILT_IN = ("ppo", "paper", "es")
LENGTH_AND_LOG = ("minutes", "steps", "seed", "log_every", "evaluate_episodes")
NOT_SEARCHED = ("env", "from_policy", *LENGTH_AND_LOG)
"""What all trials must share, or they could not be compared."""

Value = str | int | float | bool
Table = dict[str, Any]


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

    def holds(self, value: Any) -> bool:
        """Whether the value could have been sampled."""
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return number and self.low <= value <= self.high and (not self.whole or value == int(value))

    def as_table(self) -> Table:
        """As TOML says it."""
        return {"low": self.low, "high": self.high} | ({"log": True} if self.log else {})

    def __str__(self) -> str:
        return f"{self.low:g} to {self.high:g}" + (" (log)" if self.log else "")


@dataclass(frozen=True, slots=True)
class Choice:
    """One of some values, each as likely."""

    values: tuple[Value, ...]

    @property
    def ends(self) -> tuple[Value, Value]:
        """First and last."""
        return self.values[0], self.values[-1]

    def holds(self, value: Any) -> bool:
        """Whether the value could have been sampled."""
        return value in self.values

    def as_table(self) -> list[Value]:
        """As TOML says it."""
        return list(self.values)

    def __str__(self) -> str:
        return " or ".join(map(str, self.values))


@dataclass(frozen=True)
class Space:
    """What is sampled, what is the same for every trial, and what follows another setting; by dotted names."""

    sampled: dict[str, Range | Choice]
    fixed: Table
    """Dotted name -> value."""
    same: dict[str, str]

    def without(self, names: Iterable[str]) -> Space:
        """The space once some settings are given."""
        gone = set(names)
        left = {name: source for name, source in self.same.items() if name not in gone}
        for name, source in left.items():
            if source in gone:
                raise InputError(f"{name} is to be the same as {source} in this space; give both, or neither")
        sampled = {name: what for name, what in self.sampled.items() if name not in gone}
        if not sampled:
            raise InputError("every setting of the space is given: nothing is left to search")
        return Space(sampled, {name: value for name, value in self.fixed.items() if name not in gone}, left)

    def settings(self, values: Mapping[str, Any]) -> Table:
        """The nested table of settings of one trial."""
        found = self.fixed | dict(values)
        return nested(found | {name: found[source] for name, source in self.same.items()})

    def corners(self) -> Iterator[Table]:
        """Trials at the ends of the ranges: all low or first, all high or last."""
        for place in (0, -1):
            yield self.settings({name: what.ends[place] for name, what in self.sampled.items()})

    def as_table(self) -> Table:
        """As TOML says it, nested."""
        sampled = {name: what.as_table() for name, what in self.sampled.items()}
        return nested(self.fixed | sampled | {name: {"same_as": source} for name, source in self.same.items()})


def load_space(name: str, env: str) -> Space:
    """One that comes with muster (the paper's differs by environment), or a TOML file's."""
    if name not in BUILT_IN:
        if not name.endswith(".toml"):
            raise UnknownNameError("space (or FILE.toml)", name, BUILT_IN)
        return read_space(read_toml(name), name)
    from muster.envs.registry import kind_of

    env_kind = "battle" if kind_of(env) == "battle" else "rescue"
    path = Path(__file__).with_name("spaces") / (f"paper-{env_kind}.toml" if name == "paper" else f"{name}.toml")
    return read_space(read_toml(path), f"the space {name}")


def read_space(table: Mapping[str, Any], where: str) -> Space:
    """The space that a nested table says; every bound and value must be one that its setting takes."""
    sampled: dict[str, Range | Choice] = {}
    fixed: Table = {}
    same: dict[str, str] = {}
    known = setting_hints()
    for name, what in flat(table, where):
        if name in NOT_SEARCHED:
            raise InputError(f"{name} cannot be searched ({where}): all trials must share it to be compared")
        if isinstance(what, Mapping):
            if set(what) == {"same_as"}:
                same[name] = str(what["same_as"])
            else:
                sampled[name] = _read_range(name, what, known[name], where)
        elif isinstance(what, list):
            sampled[name] = _read_choice(name, what, known[name], where)
        else:
            fixed[name] = accept(known[name], what, name, where)
    for name, source in same.items():
        if source not in sampled:
            raise UnknownNameError(f"setting that {where} samples, for {name} to be the same as,", source, sampled)
    if not sampled:
        raise InputError(
            f"{where} samples nothing; give a setting a range, such as ppo.learning_rate = {{low = 1e-4, high = 1e-2}}"
        )
    return Space(sampled, fixed, same)


def setting_hints(kind: Any = TrainSettings, prefix: str = "") -> dict[str, Any]:
    """Dotted name of every setting of a run -> its annotation."""
    found: dict[str, Any] = {}
    for name, option in options_of(kind).items():
        if dataclasses.is_dataclass(option.hint):
            found |= setting_hints(option.hint, f"{prefix}{name}.")
        else:
            found[prefix + name] = option.hint
    return found


def flat(
    table: Mapping[str, Any], where: str, prefix: str = "", kind: Any = TrainSettings
) -> Iterator[tuple[str, Any]]:
    """(dotted name, what is said of it) of a nested table; names of no setting are refused."""
    options = options_of(kind)
    for name, what in table.items():
        if name not in options:
            raise UnknownNameError(f"setting in {where}", prefix + name, setting_hints())
        hint = options[name].hint
        if not dataclasses.is_dataclass(hint):
            yield prefix + name, what
        elif isinstance(what, Mapping):
            yield from flat(what, where, f"{prefix}{name}.", hint)
        else:
            raise InputError(f"{prefix}{name} in {where} must be {wanted(hint)}, got {what!r}")


def nested(values: Mapping[str, Any]) -> Table:
    """{"ppo.minibatches": 3} as {"ppo": {"minibatches": 3}}."""
    table: Table = {}
    for name, value in values.items():
        for part in reversed(name.split(".")):
            value = {part: value}
        table = overlaid(table, value)
    return table


def _read_range(name: str, what: Mapping[str, Any], hint: Any, where: str) -> Range:
    unknown = set(what) - {"low", "high", "log"}
    if unknown:
        raise UnknownNameError(
            f"part of the range of {name} in {where}", min(unknown), ("low", "high", "log", "same_as")
        )
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
