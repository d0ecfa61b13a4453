"""The paper's heuristics, by hand on small armies."""

from __future__ import annotations

import numpy as np
import pytest

from muster.envs.battle import layout as lay
from muster.envs.battle.env import BattleEnv
from muster.kernels import core

from .conftest import begin

hash_order = core.battle.hash_order


def arranged(scenario: str, places: list[int], health: list[int] | None = None) -> BattleEnv:
    """A battle whose units stand on a line at these walk tiles."""
    env = begin(scenario)
    units = env.units[0]
    units[lay.PX] = [8 * x for x in places]
    units[lay.PY] = 800
    if health:
        units[lay.HP, env.n_agents :] = [256 * h for h in health]
    return env


def orders(env: BattleEnv, name: str) -> list[int]:
    policy = BattleEnv.baselines()[name](env)
    policy.reset(np.array([0]), np.array([3], dtype=np.uint64))
    return [int(order) for order in policy.act(env.observe())[0]]


def test_closest_goes_to_the_nearest_and_ties_to_the_first() -> None:
    env = arranged("m2v3", [10, 50, 20, 40, 60])
    assert orders(env, "c") == [0, 1]


def test_weakest_closest_all_take_the_weakest() -> None:
    assert orders(arranged("m2v3", [10, 20, 30, 40, 50], [40, 30, 30]), "wc") == [1, 1]


def test_the_search_bug_leaves_marines_idle() -> None:
    """Only the first target is found; a marine can shoot up, so the second search is among flyers alone."""
    env = arranged("m3v2", [10, 11, 12, 40, 50], [6, 40])
    found = orders(env, "wcnok")
    assert sorted(found) == [lay.HOLD, lay.HOLD, 0]
    fixed = orders(env, "wcnok-fixed")
    assert sorted(fixed) == [0, 1, 1]


def test_wraiths_escape_the_bug() -> None:
    env = arranged("w3v2", [10, 11, 12, 40, 50], [20, 120])
    assert sorted(orders(env, "wcnok")) == [0, 1, 1]


def test_overkill_is_avoided_until_all_are_taken_care_of() -> None:
    env = arranged("w4v2", [10, 11, 12, 13, 40, 50], [20, 40])
    # One for the weak, two for the other; with all provided for, the last joins the weakest again.
    assert sorted(orders(env, "wcnok")) == [0, 0, 1, 1]


def test_no_change_keeps_and_smart_drops_what_overkills() -> None:
    env = arranged("w3v2", [10, 11, 12, 40, 50], [20, 120])
    env.units[0, lay.PREVIOUS, :3] = 0
    assert orders(env, "wcnoknc") == [0, 0, 0]
    assert sorted(orders(env, "wcnoks")) == [0, 1, 1]


def test_who_got_a_target_last_is_the_first_to_keep_it() -> None:
    """The map that stores the targets lists its last key first."""
    env = arranged("w3v2", [10, 11, 12, 40, 50], [60, 120])
    units = env.units[0]
    policy = BattleEnv.baselines()["wcnoks"](env)
    policy.reset(np.array([0]), np.array([3], dtype=np.uint64))
    units[lay.PREVIOUS, :3] = policy.act(None)[0]
    assert units[lay.PREVIOUS, :3].tolist() == [0, 0, 0]
    units[lay.HP, 3] = 256 * 20
    assert policy.act(None)[0].tolist() == [1, 1, 0]


def test_the_search_starts_afresh_once_all_enemies_are_provided_for() -> None:
    """So the bug does not keep marines from the last enemy."""
    assert orders(arranged("m3v1", [10, 11, 12, 40], [6]), "wcnok") == [0, 0, 0]


def test_random_targets_are_kept_while_they_live() -> None:
    env = arranged("m4v3", [1, 2, 3, 4, 50, 60, 70])
    units = env.units[0]
    units[lay.PREVIOUS, :4] = [0, 1, 2, -1]
    units[lay.ALIVE, 4 + 2] = 0
    units[lay.HP, 4 + 2] = 0
    found = orders(env, "rand-nc")
    assert found[:2] == [0, 1]
    assert all(order in (0, 1) for order in found)


def test_attack_move_asks_for_nothing_else() -> None:
    assert orders(begin("m2v2"), "attack-move") == [lay.MARCH, lay.MARCH]


@pytest.mark.parametrize("n", [1, 2, 13, 14, 40])
def test_hash_order_is_a_permutation_that_depends_on_the_keys_alone(n: int) -> None:
    rng = np.random.default_rng(n)
    keys = rng.integers(0, 1 << 30, n) * 16
    order = np.arange(n)
    hash_order(keys, order)
    assert sorted(order) == list(range(n))


def test_a_small_map_lists_the_last_inserted_first() -> None:
    """Up to 13 keys in different buckets: each goes to the front."""
    keys = np.array([0, 1, 2, 3], dtype=np.int64)
    order = np.arange(4)
    hash_order(keys, order)
    # The map grows from 1 bucket to 13 at the second key, re-inserting the first.
    assert order.tolist() == [3, 2, 1, 0]


def listed_by_a_plain_model(keys: list[int]) -> list[int]:
    """The library's map written another way: one list of keys, each bucket's run found by looking for it."""
    sizes = [1, 13, 29, 59, 127]
    buckets, listed = sizes[0], []

    def insert(key: int) -> None:
        run = [k for k, other in enumerate(listed) if other % buckets == key % buckets]
        listed.insert(run[0] if run else 0, key)

    for key in keys:
        if len(listed) == buckets:
            buckets, again, listed = sizes[sizes.index(buckets) + 1], listed, []
            for old in again:
                insert(old)
        insert(key)
    return listed


@pytest.mark.parametrize("n", [2, 13, 14, 29, 30, 40, 70])
@pytest.mark.parametrize("first", [0, 101])
def test_hash_order_beyond_one_growth_agrees_with_a_plain_model(n: int, first: int) -> None:
    """Consecutive keys, as units have, and keys that collide."""
    for step in (1, 13, 5):
        keys = first + step * np.arange(n)
        order = np.arange(n)
        hash_order(keys, order)
        assert keys[order].tolist() == listed_by_a_plain_model(keys.tolist())
