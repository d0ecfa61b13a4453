"""One reader of settings: text, TOML and keywords become the same checked values, and what does not fit is named."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pytest

from muster.assign.settings import InferenceSettings
from muster.envs.battle.settings import BattleSettings
from muster.envs.rescue.settings import RescueSettings
from muster.errors import InputError, UnknownNameError
from muster.learning.settings import A2CSettings, PPOSettings, TrainSettings
from muster.policy.settings import NoiseSettings
from muster.settings import (
    AtLeast,
    Between,
    Positive,
    as_table,
    build,
    check_fields,
    differences,
    from_toml,
    read_options,
    to_toml,
)


@dataclass(frozen=True)
class Inner:
    speed: Annotated[float, Positive()] = 1.0

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class Outer:
    name: str
    count: Annotated[int, AtLeast(1)] = 3
    share: Annotated[float, Between(0, 1)] = 0.5
    flag: bool = False
    mode: Literal["slow", "fast"] = "slow"
    limit: Annotated[int | None, AtLeast(1)] = None
    shape: int | tuple[int, int] = 16
    columns: tuple[int, ...] = ()
    inner: Inner = field(default_factory=Inner)

    def __post_init__(self) -> None:
        check_fields(self)


FULL = Outer("x", 5, 0.25, True, "fast", 7, (2, 3), (1, 2, 3), Inner(2.0))


def test_text_toml_and_keywords_give_the_same_settings(tmp_path):
    texts = ["name=x", "count=5", "share=0.25", "flag=true", "mode=fast", "limit=7", "shape=2x3", "columns=1x2x3"]
    assert Outer(**read_options(Outer, texts, "setting"), inner=Inner(2.0)) == FULL
    (tmp_path / "c.toml").write_text(to_toml(FULL))
    assert from_toml(Outer, tmp_path / "c.toml") == FULL
    assert build(Outer, as_table(FULL), "here") == FULL
    assert Outer("x", 5, 0.25, True, "fast", 7, [2, 3], [1, 2, 3], {"speed": 2}) == FULL  # type: ignore[arg-type]


def test_values_are_kept_in_the_annotated_form():
    made = Outer("x", np.int64(5), 1, shape=[2, 3], inner={"speed": 2})  # type: ignore[arg-type]
    assert [type(made.count), type(made.share), type(made.shape), type(made.inner)] == [int, float, tuple, Inner]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("coutn=3", "no outer setting 'coutn'; did you mean 'count'?"),
        ("count", "an? outer setting reads name=value, got 'count'"),
        ("count=many", "count must be a whole number, got 'many'"),
        ("count=1.5", "count must be a whole number, got '1.5'"),
        ("count=0", "count must be at least 1, got 0"),
        ("share=1.5", "share must be between 0 and 1, got 1.5"),
        ("share=nan", "share must be a number, got 'nan'"),
        ("flag=maybe", "flag must be true or false, got 'maybe'"),
        ("mode=fats", "no mode 'fats'; did you mean 'fast'?"),
        ("limit=0", "limit must be at least 1, got 0"),
        ("shape=2x3x4", "shape must be a whole number or 2 whole numbers such as 2x3, got '2x3x4'"),
        ("name=", None),
    ],
)
def test_a_text_that_does_not_fit_is_named(text, message):
    if message is None:
        assert read_options(Outer, [text], "outer setting") == {"name": ""}
        return
    with pytest.raises(InputError, match=message.replace("?", r"\?").replace(r"an\?", "an?")):
        read_options(Outer, [text], "outer setting")


def test_an_option_given_twice_or_not_on_offer_is_refused():
    with pytest.raises(InputError, match="count is given twice"):
        read_options(Outer, ["count=1", "count=2"], "setting")
    with pytest.raises(UnknownNameError, match="no setting 'count'"):
        read_options(Outer, ["count=1"], "setting", skip=("count",))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"count": "5"}, "count must be a whole number, got '5'"),
        ({"count": True}, "count must be a whole number, got True"),
        ({"count": 2.0}, "count must be a whole number, got 2.0"),
        ({"count": 0}, "count must be at least 1, got 0"),
        ({"share": float("nan")}, "share must be between 0 and 1, got nan"),
        ({"flag": 1}, "flag must be true or false, got 1"),
        ({"mode": "fats"}, "no mode 'fats'; did you mean 'fast'"),
        ({"mode": 3}, "mode must be one of slow, fast, got 3"),
        ({"shape": (1, 2, 3)}, "shape must be a whole number or 2 whole numbers"),
        ({"inner": {"speed": -1}}, "inner.speed must be positive, got -1"),
        ({"inner": {"sped": 1}}, "no setting 'inner.sped'; did you mean 'inner.speed'"),
        ({"inner": 3}, r"inner must be a table of settings \(speed\), got 3"),
    ],
)
def test_every_field_is_checked_when_made_from_python(wrong, message):
    with pytest.raises(InputError, match=message):
        Outer("x", **wrong)


@pytest.mark.parametrize(
    ("kind", "wrong", "message"),
    [
        (A2CSettings, {"optimiser": "adamw"}, "no optimiser 'adamw'; did you mean 'adam'"),
        (PPOSettings, {"rollout_length": 0}, "rollout_length must be at least 1"),
        (TrainSettings, {"env": "rescue:2x4", "form": "locl"}, "did you mean 'local'"),
        (TrainSettings, {"env": "rescue:2x4", "assign_all": "no"}, "assign_all must be true or false or none"),
        (InferenceSettings, {"effort": "bset"}, "did you mean 'best'"),
        (InferenceSettings, {"assign_all": 1}, "assign_all must be true or false"),
        (NoiseSettings, {"sigma": 0.0}, "sigma must be positive"),
        (RescueSettings, {"placement": "distict"}, "did you mean 'distinct'"),
        (RescueSettings, {"random_moves": "yes"}, "random_moves must be true or false"),
        (BattleSettings, {"latency": 6}, "latency must be between 0 and 5, got 6"),
        (BattleSettings, {"fog": 2}, "fog must be true or false"),
        (BattleSettings, {"planes": 1}, "planes must be true or false"),
    ],
)
def test_no_settings_class_accepts_what_it_does_not_know(kind, wrong, message):
    with pytest.raises(InputError, match=message):
        kind(**wrong)


class Town:
    """A user's own, with a constructor of every style."""

    def __init__(
        self, n_agents: int, speed: float = 1, *, windy: bool = False, map=None, size=4, note: str = ""
    ) -> None:
        self.given = (n_agents, speed, windy, map, size, note)


def test_options_of_a_users_class_are_typed_by_its_signature():
    values = read_options(Town, ["n_agents=20", "speed=3", "windy=true", "map=7", "size=9", "note=1"], "option")
    assert Town(**values).given == (20, 3.0, True, 7, 9, "1")
    assert read_options(Town, ["map=none"], "option") == {"map": None}
    assert read_options(Town, ["map=a.csv"], "option") == {"map": "a.csv"}
    with pytest.raises(InputError, match="size must be a whole number, got 'big'"):
        read_options(Town, ["size=big"], "option")
    with pytest.raises(UnknownNameError, match="did you mean 'n_agents'"):
        read_options(Town, ["nagents=1"], "option")


def test_a_class_without_a_constructor_has_no_options():
    class Plain:
        pass

    with pytest.raises(UnknownNameError, match="no option 'a'"):
        read_options(Plain, ["a=1"], "option")


def test_annotations_that_cannot_be_resolved_fall_back_on_the_default():
    def odd(size: NotImported = 3) -> None:  # type: ignore[name-defined]  # noqa: F821
        del size

    assert read_options(odd, ["size=5"], "option") == {"size": 5}


def test_differences_are_named_with_both_values():
    other = Outer("x", 6, 0.25, True, "fast", None, (2, 3), (1, 2, 3), Inner(3.0))
    assert differences(FULL, other) == [("count", 5, 6), ("limit", 7, None), ("inner.speed", 2.0, 3.0)]
    assert differences(FULL, FULL) == []


def test_a_file_that_is_no_settings_file_is_named(tmp_path):
    path: Any = tmp_path / "c.toml"
    with pytest.raises(InputError, match="cannot read"):
        from_toml(Outer, path)
    Path(path).write_text("name = ")
    with pytest.raises(InputError, match="is not TOML"):
        from_toml(Outer, path)
    Path(path).write_text("count = 3")
    with pytest.raises(InputError, match="lacks name"):
        from_toml(Outer, path)
