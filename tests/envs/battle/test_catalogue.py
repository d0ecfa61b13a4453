"""Unit statistics and scenarios as data."""

from __future__ import annotations

import pytest

from muster.envs.battle import from_options
from muster.envs.battle import layout as lay
from muster.envs.battle.catalogue import damage_on, read_toml, scenario, type_table, unit_types
from muster.envs.battle.settings import BattleSettings
from muster.errors import InputError, UnknownNameError


def test_damage_depends_on_size() -> None:
    units = unit_types()
    assert damage_on(units["hydralisk"], units["hydralisk"]) == 7.5 * 256
    assert damage_on(units["hydralisk"], units["zergling"]) == 5 * 256
    assert damage_on(units["wraith"], units["wraith"]) == 20 * 256
    assert damage_on(units["zergling"], units["hydralisk"]) == 5 * 256


def test_integer_damage_drops_the_fraction() -> None:
    table = type_table([unit_types()["hydralisk"], unit_types()["zergling"]])
    assert table[0, lay.TYPE_FIELDS + 2 :].tolist() == [7, 5]


@pytest.mark.parametrize(
    ("name", "ours", "theirs"), [("m5v5", 5, 5), ("w15v17", 15, 17), ("zh10v12", 20, 24), ("w1v3", 1, 3)]
)
def test_any_numbers_make_a_scenario(name: str, ours: int, theirs: int) -> None:
    made = scenario(name)
    assert (made.n_ours, made.n_theirs) == (ours, theirs)
    assert made.roster().shape == (ours + theirs, 5)


@pytest.mark.parametrize("name", ["", "w15", "w15v", "15v17", "w-1v2", "w15v17x", "w1.5v2"])
def test_a_malformed_scenario_is_explained(name: str) -> None:
    with pytest.raises(InputError, match="such as 'w15v17'"):
        scenario(name)


def test_an_unknown_family_gets_a_suggestion() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'zh'"):
        scenario("zhh3v3")


@pytest.mark.parametrize("name", ["m0v5", "m5v0", "m1001v5"])
def test_the_number_of_units_is_limited(name: str) -> None:
    with pytest.raises(InputError, match="1 to 1000 units"):
        scenario(name)


def test_units_are_complete_and_scenarios_name_them() -> None:
    units = unit_types()
    for name, unit in units.items():
        assert ("walk" in unit) != ("fly" in unit), name
        assert len(unit["box"]) == 4, name
        assert len(unit.get("walk", ())) <= lay.MAX_WALK, name
        assert all(unit[key] >= 0 for key in ("hit_points", "damage", "cooldown", "range", "air_range"))
    for family in read_toml("scenarios.toml").values():
        assert {entry["unit"] for side in family.values() for entry in side} <= set(units)
    assert (
        type_table(list(units.values()))[:, lay.T_HP] == [256 * unit["hit_points"] for unit in units.values()]
    ).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("w15v17,latncy=3", "did you mean 'latency'"),
        ("w15v17,latency", "name=value"),
        ("w15v17,latency=two", "latency must be a whole number"),
        ("w15v17,fog=maybe", "fog must be true or false"),
        ("w15v17,latency=7", "latency must be between 0 and 5"),
        ("w15v17,bot_step=4", "bot_step must divide"),
    ],
)
def test_bad_options_are_explained(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        from_options(text, 1)


def test_options_reach_the_settings() -> None:
    env = from_options("m3v3,latency=3,fog=false,planes=true", 1)
    assert env.settings == BattleSettings(latency=3, fog=False, planes=True)
    assert env.name == "battle:m3v3,latency=3,fog=false,planes=true"
