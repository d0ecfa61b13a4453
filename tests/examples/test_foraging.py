from __future__ import annotations

import numpy as np
import pytest

import muster
from muster.envs.checks import check_env

pytest.importorskip("lbforaging", reason="extra `outside`")

from examples.outside.foraging import FAR, Foraging, nearest, team

ENV = "examples.outside.foraging:Foraging"


def begun(seed: int = 0, **size: int) -> Foraging:
    env = Foraging(**size)
    env.reset(np.random.default_rng(seed))
    return env


def test_the_environment_checks_pass():
    assert not [found for found in check_env(ENV) if found.status in ("failed", "advice")]


def test_distances_are_those_of_the_shortest_ways_round_food():
    """From every player, cell by cell outwards: the first step at which a cell beside the food is reached."""
    env = begun(3, n_agents=10, n_tasks=20)
    for i, j in np.ndindex(env.distance.shape):
        steps, cells, seen = 0, {tuple(env.position[i])}, set()
        while cells and not any(np.abs(cell - env.place[j]).sum() == 1 for cell in map(np.array, cells)):
            seen |= cells
            around = {(r + a, c + b) for r, c in cells for a, b in ((0, 1), (1, 0), (0, -1), (-1, 0))} - seen
            cells = {cell for cell in around if min(cell) >= 0 and max(cell) < env.size and not env.field.field[cell]}
            steps += 1
        assert env.distance[i, j] == (steps if cells else FAR)


@pytest.mark.parametrize("policy", [team, nearest])
def test_no_two_players_are_ever_in_one_cell_and_food_needs_its_level(policy):
    for seed in range(3):
        env, ended = begun(seed, n_agents=10, n_tasks=20), False
        for _ in range(60):
            there, left = env.there.copy(), env.left.copy()
            if ended:
                break
            _, ended = env.step(policy(env.observe()))
            assert len({tuple(cell) for cell in env.position.tolist()}) == env.n_agents
            eaten = left & ~env.left
            assert (env.level @ there >= env.food_level)[eaten].all()


def test_teams_eat_everything_at_both_sizes():
    for size, episodes in (("", 40), (",n_agents=10,n_tasks=20", 4)):
        found = muster.evaluate("team", ENV + size, episodes, seed=1)
        assert found.failed == 0
        assert found.metrics["eaten"].mean == 1
