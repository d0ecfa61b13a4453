"""Unit statistics and scenarios as data."""

from __future__ import annotations

from importlib.resources import files

import pytest

from muster.envs.battle import from_options
from muster.envs.battle import layout as lay
from muster.envs.battle.catalogue import parse_units, scenario, type_table, unit_types
from muster.envs.battle.settings import BattleSettings
from muster.errors import InputError, UnknownNameError


def shipped() -> str:
    return files("muster.envs.battle").joinpath("units.toml").read_text(encoding="utf-8")


def test_damage_depends_on_size() -> None:
    units = unit_types()
    assert units["hydralisk"].damage_on(units["hydralisk"]) == 7.5 * 256
    assert units["hydralisk"].damage_on(units["zergling"]) == 5 * 256
    assert units["wraith"].damage_on(units["wraith"]) == 20 * 256
    assert units["zergling"].damage_on(units["hydralisk"]) == 5 * 256


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


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("hit_points = 40", "hit_points = -4", "hit_points must be a whole number"),
        ("hit_points = 40", "hitpoints = 40", "did you mean 'hit_points'"),
        ('size = "large"', 'size = "larger"', "did you mean 'large'"),
        ("box = [8, 9, 8, 10]", "box = [8, 9, 8]", "box must be four"),
        ("walk = [4.0]", "", "either walk"),
        ("first = { shot = 2, unbreakable = [2, 8], ready = 8 }", "first = { shot = 2 }", "must have shot, ready"),
        ("[marine]", "[marine", "not TOML"),
    ],
)
def test_bad_unit_data_is_refused_with_the_place(old: str, new: str, message: str) -> None:
    text = shipped()
    assert old in text
    with pytest.raises(InputError, match=message):
        parse_units(text.replace(old, new, 1))


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
    assert env.settings == BattleSettings(latency=3, fog=False)
    assert env.options.planes
    assert env.name == "battle:m3v3,latency=3,fog=false,planes=true"
