"""Unit types and scenarios from units.toml and scenarios.toml, and the tables that kernels read."""

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
"""Most units of one type on a side."""

_SIZES = ("small", "medium", "large")
_SHOTS = {"instant": lay.SHOT_INSTANT, "missile": lay.SHOT_MISSILE, "melee": lay.SHOT_MELEE}
# Damage of each type on small, medium and large units, in quarters.
_QUARTERS = {"normal": (4, 4, 4), "explosive": (2, 3, 4), "concussive": (4, 2, 1)}

Unit = dict[str, Any]
"""Statistics of a unit type, as in units.toml."""


@dataclass(frozen=True, slots=True)
class Group:
    """Units of one type that start together; positions in walk tiles of 8 pixels."""

    unit: str
    count: int
    centre: tuple[int, int]
    spread: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Scenario:
    """The units of both sides and their start positions."""

    name: str
    ours: tuple[Group, ...]
    theirs: tuple[Group, ...]

    @property
    def n_ours(self) -> int:
        """Number of our units."""
        return sum(group.count for group in self.ours)

    @property
    def n_theirs(self) -> int:
        """Number of the opponent's units."""
        return sum(group.count for group in self.theirs)

    @property
    def unit_names(self) -> tuple[str, ...]:
        """Names of the unit types, each once, in alphabetical order."""
        return tuple(sorted({group.unit for group in self.ours + self.theirs}))

    def roster(self) -> Int64s:
        """[U, 5] type (an index into `unit_names`), centre and spread of every unit, ours first."""
        rows = [
            (self.unit_names.index(group.unit), *group.centre, *group.spread)
            for group in self.ours + self.theirs
            for _ in range(group.count)
        ]
        return np.array(rows, dtype=np.int64)


def damage_on(unit: Unit, target: Unit) -> int:
    """Damage of one hit on a target, in 1/256 hit points."""
    return max(unit["damage"] * 64 * _QUARTERS[unit["damage_type"]][_SIZES.index(target["size"])], 128)


def type_table(units: list[Unit]) -> Int64s:
    """[K, TYPE_FIELDS + 2 K] the kernels' table of K unit types; the last columns are the damage on each type."""
    table = np.zeros((len(units), lay.TYPE_FIELDS + 2 * len(units)), dtype=np.int64)
    for row, unit in zip(table, units, strict=True):
        walk = [round(256 * speed) for speed in unit.get("walk", (0,))]
        # Walkers slide along the edge of a unit in their way at this speed, by default their mean speed.
        slide = round(256 * unit["slide"]) if "slide" in unit else sum(walk) // len(walk)
        fly = unit.get("fly", {"top_speed": slide, "acceleration": 1, "halt_distance": 0})
        missile = unit.get("missile", {"top_speed": 1, "acceleration": 1, "ahead": 0})
        attacks = [
            number
            for attack in (unit["first"], unit["repeat"])
            for number in (attack["shot"], *attack.get("unbreakable", (-1, -1)), attack["ready"])
        ]
        fixed = (
            unit["hit_points"] * 256, *unit["box"], unit["cooldown"], unit["range"], unit["acquisition_tiles"] * 32,
            unit["sight_tiles"] * 32 + 16, unit["turn_rate"], unit["fire_angle"], "fly" in unit,
            fly["top_speed"], fly["acceleration"], fly["halt_distance"], unit.get("regeneration", 0),
            _SHOTS[unit["shot"]], unit.get("bullet_frames", 0),
            missile["top_speed"], missile["acceleration"], missile["ahead"],
            unit.get("looks_when_ready", False), unit["air_range"] > 0, *attacks, len(walk),
            *walk, *(0,) * (lay.MAX_WALK - len(walk)),
        )  # fmt: skip
        damage = [damage_on(unit, target) for target in units]
        row[:] = (*fixed, *damage, *(value >> 8 for value in damage))
    return table


@cache
def read_toml(name: str) -> dict[str, Any]:
    """The table in units.toml or scenarios.toml."""
    return tomllib.loads(files("muster.envs.battle").joinpath(name).read_text(encoding="utf-8"))


def unit_types() -> dict[str, Unit]:
    """{name: unit type} of the built-in unit types."""
    return read_toml("units.toml")


def scenario(name: str) -> Scenario:
    """The scenario of a string such as "w15v17": a family, our number of units and theirs."""
    families = read_toml("scenarios.toml")
    match = re.fullmatch(r"([a-z]+)(\d+)v(\d+)", name)
    if match is None:
        raise InputError(
            f"a scenario is a family and two numbers, such as 'w15v17', got {name!r}; families: {', '.join(families)}"
        )
    family, *counts = match[1], int(match[2]), int(match[3])
    if family not in families:
        raise UnknownNameError("family of scenarios", family, families)
    for count in counts:
        if not 1 <= count <= MAX_UNITS:
            raise InputError(f"each side has 1 to {MAX_UNITS} units of a type, got {count} in {name!r}")
    sides = [
        tuple(Group(**entry, count=count) for entry in families[family][side])
        for side, count in zip(("ours", "theirs"), counts, strict=True)
    ]
    return Scenario(name, *sides)
