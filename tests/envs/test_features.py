"""Names of features: every environment's fit what it shows."""

from __future__ import annotations

from typing import ClassVar

import pytest

import muster
from muster.envs.features import FeatureNames, widths_of
from muster.envs.registry import EXAMPLES
from muster.errors import InputError
from muster.policy.learned import features_of
from muster.policy.names import load, shipped
from tests.envs.custom_envs import Orders


@pytest.mark.parametrize("pairs", [True, False])
@pytest.mark.parametrize("env", [*EXAMPLES, "battle:zh10v10"])
def test_names_of_an_environment_are_as_many_as_its_features(env, pairs):
    env = muster.make(env)
    env.show(pair_features=pairs, planes=False)
    given, widths = env.feature_names(), widths_of(env.observe())
    for kind, width in widths.items():
        assert not width or len(given[kind]) == width
    FeatureNames.of(widths, given, env)


def test_shipped_policies_read_named_features():
    """None of them is numbered."""
    for name in shipped():
        features = features_of(load(name))
        assert not any(name == f"{kind} 0" for kind, names in features.as_dict().items() for name in names)


def test_names_tell_other_features_apart():
    one = FeatureNames.of({"agent": 2}, {"agent": ("x", "y")}, "an environment")
    assert one.agent == ("x", "y")
    assert one.hash != FeatureNames(agent=("y", "x")).hash
    assert FeatureNames.of({"agent": 2}, {}, "an environment").agent == ("agent 0", "agent 1")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"agent": ("x", "y", "z")}, "names 3 agent features"),
        ({"agent": ("x", "x")}, "alike"),
        ({"agents": ("x",)}, "did you mean 'agent'"),
    ],
)
def test_names_that_do_not_fit_are_refused(given, words):
    with pytest.raises(InputError, match=words):
        FeatureNames.of({"agent": 2}, given, "an environment")


class Named(Orders):
    """An custom environment that names some of its features."""

    feature_names: ClassVar[dict[str, tuple[str, ...]]] = {"agent": ("place",)}


def test_own_environments_may_name_their_features():
    env = muster.make(Named)
    widths = widths_of(env.observe())
    names = FeatureNames.of(widths, env.feature_names(), env.name)
    assert names.agent == ("place",)
    assert names.task == tuple(f"task {k}" for k in range(widths["task"]))
