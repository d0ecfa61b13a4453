"""The policies that come with muster do what they are shipped for: coordinate larger environments than they saw."""

import pytest

import muster
from muster.policy.names import SHIPPED, shipped


def test_every_shipped_policy_is_listed_and_loads():
    assert {path.stem for path in SHIPPED.glob("*.safetensors")} == set(shipped())
    for name in shipped():
        kind, trained = name.split("-")[:2]
        header = muster.load(name).header
        # One that learned on several sizes has a name for them all.
        several = len(header.get("envs", [])) > 1 and trained == "small"
        assert several or header["env"].split(",")[0] == f"{kind}:{trained}"


@pytest.mark.parametrize("name", ["rescue-2x4-quad-dm", "rescue-5x10-quad-dm"])
def test_shipped_quad_policies_beat_the_linear_programme_on_distances_at_a_size_never_seen(name):
    learned, linear = (muster.evaluate(policy, "rescue:8x15", episodes=300) for policy in (name, "lp-distance"))
    assert learned.failed == 0
    assert learned.mean < linear.mean


@pytest.mark.parametrize("name", ["rescue-5x10-quad-dm", "rescue-small-quad-dm"])
def test_scores_that_keep_their_meaning_still_win_where_there_are_many(name):
    learned, linear = (muster.evaluate(policy, "rescue:28x56", 100, seed=6) for policy in (name, "lp-distance"))
    assert learned.failed == 0
    assert learned.mean < linear.mean - 0.2


def test_a_model_that_sees_everyone_is_ahead_of_pairs_of_tasks_at_a_size_that_neither_saw():
    names = ("rescue-small-lp-context", "rescue-small-quad-dm")
    seeing, pairs = (muster.evaluate(name, "rescue:8x15", episodes=300, seed=6) for name in names)
    assert seeing.failed == 0
    assert seeing.mean < pairs.mean - 0.1


@pytest.mark.parametrize(
    ("name", "env", "heuristic"),
    [
        ("battle-w15v17-quad-dm", "battle:w30v34", "wcnok"),
        ("battle-m10v10-lp-dm", "battle:m15v15", "c"),
        ("battle-zh10v10-lp-dm", "battle:zh11v11", "c"),
    ],
)
def test_shipped_battle_policies_win_battles_larger_than_those_they_saw(name, env, heuristic):
    learned, baseline = (muster.evaluate(policy, env, episodes=60, seed=5) for policy in (name, heuristic))
    assert learned.mean > baseline.mean
