"""Mud: what it costs is what is said, it is seen as often as stated, and where there is none nothing has changed."""

from __future__ import annotations

import numpy as np
import pytest

import muster
from muster.envs.rescue import RescueEnv, RescueSettings
from muster.envs.rescue.mud import HELD_UP, KNOWN, LOOKS_MUDDY, mud_to_cross
from muster.envs.rescue.routing import king_moves
from muster.errors import InputError
from muster.rng import episode_seeds


def begun(count: int, **settings: object) -> RescueEnv:
    env = RescueEnv(RescueSettings(**settings), count)  # type: ignore[arg-type]
    env.reset(np.arange(count), episode_seeds(5, np.arange(count)))
    return env


def test_ambulances_and_victims_start_where_they_do_without_mud():
    dry, wet = begun(30, agents=3, tasks=6), begun(30, agents=3, tasks=6, mud=0.5)
    assert np.array_equal(dry.agent_cells, wet.agent_cells)
    assert np.array_equal(dry.task_cells, wet.task_cells)
    assert dry.observe().agent_features.tobytes() == wet.observe().agent_features.tobytes()


@pytest.mark.parametrize("mud", [0.3, 0.8])
def test_so_many_cells_are_muddy_and_look_as_they_are(mud):
    ground = begun(200, agents=1, tasks=1, mud=mud).ground
    unknown = ground.look < KNOWN
    assert ground.muddy.mean() == pytest.approx(mud, abs=0.01)
    for muddy in (False, True):
        right = (ground.look == (LOOKS_MUDDY if muddy else 0))[unknown & (ground.muddy == muddy)]
        assert right.mean() == pytest.approx(0.95, abs=0.01)


def test_the_way_takes_as_many_steps_as_the_planner_that_knows_expects():
    """One ambulance, one victim, and then another: the costs are those of the environment itself, leg by leg."""
    env = begun(300, agents=1, tasks=2, mud=0.4, placement="distinct")
    first, follow = mud_to_cross(env.agent_cells, env.task_cells, env.ground.held, env.ground.muddy)
    reached = king_moves(env.agent_cells, env.task_cells)[:, 0, 0] + HELD_UP * first[:, 0, 0]
    done = reached + king_moves(env.task_cells, env.task_cells)[:, 0, 1] + HELD_UP * follow[:, 0, 1]
    arrival = np.zeros((300, 2))
    for step in range(1, 120):
        env.step(np.where(env.unsolved[:, :1], 0, 1))
        arrival[~env.unsolved & (arrival == 0)] = step
    straight = arrival[:, 1] > arrival[:, 0]  # the second was not met on the way to the first
    assert straight.sum() > 200
    assert np.array_equal(arrival[:, 0], reached)
    assert np.array_equal(arrival[straight, 1], done[straight])


def test_features_count_the_mud_in_sight_and_known_ground_looks_as_it_is():
    env = begun(20, agents=2, tasks=4, mud=0.4)
    env.show(planes=True)
    for _ in range(4):
        env.step(np.zeros((20, 2), np.int64))
    seen, looks_muddy = env.observe(), env.ground.looks_muddy()
    counts = mud_to_cross(env.agent_cells, env.task_cells, env.ground.held, looks_muddy)
    np.testing.assert_allclose(seen.pair_features[..., -1], counts[0])
    np.testing.assert_allclose(seen.task_pair_features[..., -1], counts[1])
    assert np.array_equal(seen.planes[:, -1], looks_muddy)
    been = env.ground.look >= KNOWN
    assert been.sum() > 20 * 4
    assert np.array_equal(looks_muddy[been], env.ground.muddy[been])
    names = env.feature_names()
    assert len(names["pair"]) == seen.pair_features.shape[-1]


def test_what_the_mud_hides_shows_nowhere():
    """The same to look at, other mud underneath: the observation does not tell."""
    env = begun(10, agents=2, tasks=4, mud=0.4)
    env.show(planes=True)
    before = env.observe()
    hidden = env.ground.look < KNOWN
    env.ground.muddy[hidden] ^= True
    after = env.observe()
    for name in ("agent_features", "task_features", "pair_features", "task_pair_features", "planes"):
        assert np.array_equal(getattr(before, name), getattr(after, name))


def test_look_ahead_gets_other_mud_where_nobody_has_been():
    """As likely as the first, under the same look: a copy must not tell what only the environment knows."""
    env = begun(200, agents=2, tasks=4, mud=0.3)
    env.step(np.zeros((200, 2), np.int64))
    before = env.get_state()
    env.reseed(episode_seeds(8, np.arange(200)))
    known = before["look"] >= KNOWN
    assert np.array_equal(before["look"], env.ground.look)
    assert np.array_equal(before["muddy"][known], env.ground.muddy[known])
    unknown = ~known & (before["look"] == LOOKS_MUDDY)
    assert (before["muddy"] != env.ground.muddy)[unknown].mean() > 0.1
    assert env.ground.muddy[unknown].mean() == pytest.approx(before["muddy"][unknown].mean(), abs=0.02)


def test_knowing_the_mud_helps_and_without_mud_there_is_nothing_to_know():
    wet = {name: muster.evaluate(name, "rescue:3x6,mud=0.4", 150).mean for name in ("routes-distance", "routes-known")}
    assert wet["routes-known"] < 0.96 * wet["routes-distance"]
    dry = [muster.evaluate(name, "rescue:3x6", 30).records.outcome for name in ("routes-distance", "routes-known")]
    assert np.array_equal(*dry)


def test_what_does_not_go_with_mud_is_refused():
    with pytest.raises(InputError, match="leave out random_moves"):
        RescueSettings(mud=0.2, random_moves=True)
    with pytest.raises(InputError, match="compare with routes-known"):
        muster.evaluate("topline", "rescue:2x4,mud=0.2", 2)
    with pytest.raises(InputError, match="mud"):
        RescueSettings(mud=1.5)


def test_mud_is_drawn():
    env = begun(1, agents=2, tasks=3, mud=0.5)
    assert env.renderer().describe(0).count("~") > 60
    dry = begun(1, agents=2, tasks=3)
    assert env.renderer().draw(0).tobytes() != dry.renderer().draw(0).tobytes()
