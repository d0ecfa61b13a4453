"""Unit types and scenarios: read from the data files, checked, and turned into the kernels' tables."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from muster.envs.battle import layout as lay
from muster.envs.battle.layout import Int64s
from muster.errors import InputError, UnknownNameError

MAX_UNITS = 1000
"""Most units of one side."""

_SIZES = ("small", "medium", "large")
_SHOTS = {"instant": lay.SHOT_INSTANT, "missile": lay.SHOT_MISSILE, "melee": lay.SHOT_MELEE}
# Damage of each type on small, medium and large units, in quarters.
_QUARTERS = {"normal": (4, 4, 4), "explosive": (2, 3, 4), "concussive": (4, 2, 1)}
_NUMBERS = (
    "hit_points", "damage", "cooldown", "range", "air_range", "acquisition_tiles", "sight_tiles", "turn_rate",
    "fire_angle",
)  # fmt: skip
_KEYS = {*_NUMBERS, "size", "box", "damage_type", "walk", "fly", "shot", "bullet_frames", "missile", "regeneration"}
_KEYS |= {"looks_when_ready", "first", "repeat", "slide"}


@dataclass(frozen=True, slots=True)
class UnitType:
    """Statistics of one unit type; lengths in pixels, times in frames, speeds in 1/256 px a frame."""

    name: str
    hit_points: int
    size: str
    box: tuple[int, int, int, int]
    """Left, up, right, down from the centre."""
    damage: int
    damage_type: str
    cooldown: int
    range: int
    air_range: int
    acquisition_tiles: int
    sight_tiles: int
    turn_rate: int
    fire_angle: int
    walk: tuple[int, ...]
    """Speed of each frame of the walking cycle; empty for a flyer."""
    slide: int
    """Speed along the edge of a unit in the way; by default the mean of `walk`."""
    fly: tuple[int, int, int] | None
    """Top speed, acceleration and halting distance of a flyer."""
    shot: str
    bullet_frames: int
    missile: tuple[int, int, int]
    """Top speed, acceleration, and how far ahead of the shooter it starts."""
    regeneration: int
    looks_when_ready: bool
    first: tuple[int, int, int, int]
    """Frame of the shot, start and end of the unbreakable part (-1: none), frame at which the unit is ready."""
    repeat: tuple[int, int, int, int]

    def damage_on(self, other: UnitType) -> int:
        """Damage of one hit on `other`, in 1/256 hit points."""
        return max(self.damage * 64 * _QUARTERS[self.damage_type][_SIZES.index(other.size)], 128)


@dataclass(frozen=True, slots=True)
class Group:
    """Units of one type that start together; places in walk tiles of 8 pixels."""

    unit: str
    count: int
    centre: tuple[int, int]
    spread: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Scenario:
    """Two armies and where they start."""

    name: str
    ours: tuple[Group, ...]
    theirs: tuple[Group, ...]

    @property
    def n_ours(self) -> int:
        """Units of ours."""
        return sum(group.count for group in self.ours)

    @property
    def n_theirs(self) -> int:
        """Units of theirs."""
        return sum(group.count for group in self.theirs)

    @property
    def unit_names(self) -> tuple[str, ...]:
        """Names of the unit types that take part, each once, in alphabetical order."""
        return tuple(sorted({group.unit for group in self.ours + self.theirs}))

    def roster(self) -> Int64s:
        """[U, 5] type (an index into `unit_names`), centre and spread of every unit, ours first."""
        names = self.unit_names
        rows = [
            (names.index(group.unit), *group.centre, *group.spread)
            for group in self.ours + self.theirs
            for _ in range(group.count)
        ]
        return np.array(rows, dtype=np.int64)


def parse_units(text: str, source: str = "units.toml") -> dict[str, UnitType]:
    """Unit types by name from TOML; every complaint names the unit and the key."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{source} is not TOML: {error}") from None
    return {name: _unit(name, entry, source) for name, entry in table.items()}


def _unit(name: str, entry: Any, source: str) -> UnitType:
    where = f"{source}: {name}"
    if not isinstance(entry, dict):
        raise InputError(f"{where} must be a table")
    for key in entry:
        if key not in _KEYS:
            raise UnknownNameError(f"unit statistic in {where}", key, _KEYS)
    for key in _NUMBERS:
        value = entry.get(key)
        if not isinstance(value, int) or value < 0:
            raise InputError(f"{where}: {key} must be a whole number of at least 0, got {value!r}")
    box = tuple(entry.get("box", ()))
    if len(box) != 4 or any(not isinstance(v, int) or v < 0 for v in box):
        raise InputError(f"{where}: box must be four whole numbers (left, up, right, down), got {box!r}")
    for key, options in (("size", _SIZES), ("damage_type", _QUARTERS), ("shot", _SHOTS)):
        if entry.get(key) not in options:
            raise UnknownNameError(f"{key} in {where}", str(entry.get(key)), options)
    if ("walk" in entry) == ("fly" in entry):
        raise InputError(f"{where}: give either walk (speeds of the walking cycle) or fly")
    walk = tuple(round(256 * float(v)) for v in entry.get("walk", ()))
    if len(walk) > lay.MAX_WALK or any(v <= 0 for v in walk):
        raise InputError(f"{where}: walk must be 1 to {lay.MAX_WALK} positive speeds, got {entry.get('walk')!r}")
    slide = round(256 * float(entry["slide"])) if "slide" in entry else sum(walk) // max(len(walk), 1)
    fly = entry.get("fly")
    missile = entry.get("missile", {"top_speed": 1, "acceleration": 1, "ahead": 0})
    return UnitType(
        name=name,
        **{key: entry[key] for key in _NUMBERS},
        size=entry["size"],
        box=box,
        damage_type=entry["damage_type"],
        shot=entry["shot"],
        walk=walk,
        slide=slide,
        fly=(fly["top_speed"], fly["acceleration"], fly["halt_distance"]) if fly else None,
        missile=(missile["top_speed"], missile["acceleration"], missile["ahead"]),
        bullet_frames=entry.get("bullet_frames", 0),
        regeneration=entry.get("regeneration", 0),
        looks_when_ready=entry.get("looks_when_ready", False),
        first=_attack(entry.get("first"), f"{where}: first"),
        repeat=_attack(entry.get("repeat"), f"{where}: repeat"),
    )


def _attack(entry: Any, where: str) -> tuple[int, int, int, int]:
    if not isinstance(entry, dict) or not {"shot", "ready"} <= entry.keys() <= {"shot", "ready", "unbreakable"}:
        raise InputError(f"{where} must have shot, ready and perhaps unbreakable, got {entry!r}")
    start, end = entry.get("unbreakable", (-1, -1))
    return entry["shot"], start, end, entry["ready"]


def type_table(units: list[UnitType]) -> Int64s:
    """The kernels' table [K, TYPE_FIELDS + 2 K] of these unit types; the last columns are damage on each."""
    table = np.zeros((len(units), lay.TYPE_FIELDS + 2 * len(units)), dtype=np.int64)
    for row, unit in zip(table, units, strict=True):
        top, acceleration, halt = unit.fly or (unit.slide, 1, 0)
        walk = unit.walk or (0,)
        fixed = (
            unit.hit_points * 256, *unit.box, unit.cooldown, unit.range, unit.acquisition_tiles * 32,
            unit.sight_tiles * 32 + 16, unit.turn_rate, unit.fire_angle, unit.fly is not None,
            top, acceleration, halt, unit.regeneration, _SHOTS[unit.shot], unit.bullet_frames, *unit.missile,
            unit.looks_when_ready, unit.air_range > 0, *unit.first, *unit.repeat, len(walk),
            *walk, *(0,) * (lay.MAX_WALK - len(walk)),
        )  # fmt: skip
        damage = [unit.damage_on(other) for other in units]
        row[:] = (*fixed, *damage, *(value >> 8 for value in damage))
    return table


@cache
def unit_types() -> dict[str, UnitType]:
    """The unit types that come with muster, by name."""
    return parse_units(_read("units.toml"))


@cache
def _families() -> dict[str, dict[str, list[dict[str, Any]]]]:
    return tomllib.loads(_read("scenarios.toml"))


def _read(name: str) -> str:
    return files("muster.envs.battle").joinpath(name).read_text(encoding="utf-8")


def scenario(name: str) -> Scenario:
    """The scenario that a string such as "w15v17" names: a family, our number and theirs."""
    families = _families()
    match = re.fullmatch(r"([a-z]+)(\d+)v(\d+)", name)
    if match is None:
        raise InputError(
            f"a scenario is a family and two numbers, such as 'w15v17', got {name!r}; families: {', '.join(families)}"
        )
    family, ours, theirs = match[1], int(match[2]), int(match[3])
    if family not in families:
        raise UnknownNameError("family of scenarios", family, families)
    for count in (ours, theirs):
        if not 1 <= count <= MAX_UNITS:
            raise InputError(f"each side has 1 to {MAX_UNITS} units of a type, got {count} in {name!r}")
    sides = []
    for side, count in (("ours", ours), ("theirs", theirs)):
        groups = []
        for entry in families[family][side]:
            if entry["unit"] not in unit_types():
                raise UnknownNameError(f"unit in scenarios.toml ({family})", entry["unit"], unit_types())
            groups.append(Group(entry["unit"], count, tuple(entry["centre"]), tuple(entry["spread"])))
        sides.append(tuple(groups))
    return Scenario(name, sides[0], sides[1])
