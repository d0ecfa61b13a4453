"""A class stands wherever its environment string does, and a policy runs in the class it was trained on."""

from __future__ import annotations

import numpy as np
import pytest

import muster
from muster import InputError
from muster.envs.registry import kind_of, text_of
from tests.envs.custom_envs import Orders, SavedOrders

NAME = "tests.envs.custom_envs:Orders"


def test_a_class_is_evaluated_and_compared_like_its_name():
    by_class, by_name = (muster.evaluate("nearest", env, 5) for env in (Orders, NAME))
    assert by_class.env == by_name.env == NAME
    assert np.array_equal(by_class.records.outcome, by_name.records.outcome)
    assert muster.compare(["nearest", "nearest"], Orders, 5).differences[0].equal == 5


def test_one_learns_on_a_class_and_plays_its_sizes_but_no_other_class():
    few = {"learner": "es", "inference": "lp", "steps": 1, "es": {"pairs": 2, "episodes": 2}, "evaluate_episodes": 4}
    policy = muster.train([Orders, f"{NAME},n_agents=4"], **few)
    assert policy.header["env"] == NAME
    assert muster.evaluate(policy, f"{NAME},n_agents=6", 2).episodes == 2
    # The other class shows the very same, and is another environment all the same.
    with pytest.raises(InputError, match=r"trained on .*:Orders; it cannot run on .*:SavedOrders"):
        muster.evaluate(policy, SavedOrders, 2)
    with pytest.raises(InputError, match="environments of one kind"):
        muster.train([Orders, SavedOrders], **few)


def test_kinds():
    assert kind_of("rescue:2x4,grid=8") == kind_of("rescue:3x6") == "rescue"
    assert kind_of("a.b:X,n=3") == "a.b:X" != kind_of("a.b:Y,n=3")


def test_a_class_that_nothing_else_can_import_is_evaluated_but_not_learned_on(monkeypatch):
    class Inside(Orders):
        pass

    assert muster.evaluate("nearest", Inside, 2).episodes == 2
    with pytest.raises(InputError, match=r"no other program can import Inside from test_a_class.*'parts:Inside'"):
        muster.train(Inside, learner="es", steps=1)
    monkeypatch.setattr(Orders, "__module__", "__main__")
    with pytest.raises(InputError, match="Orders from the program that runs"):
        text_of(Orders)


def test_an_object_of_a_user_s_class_is_no_environment_yet():
    with pytest.raises(InputError, match="is a string such as 'rescue:2x4', or a class"):
        muster.evaluate("nearest", Orders(), 2)
