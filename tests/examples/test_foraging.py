from __future__ import annotations

import numpy as np
import pytest

import muster
from muster.envs.checks import check_env

pytest.importorskip("lbforaging", reason="extra `outside`")

from examples.outside.foraging import FAR, MOST_LEVEL, PERSISTENCE, Foraging, nearest, team

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


def plan_by_hand(env: Foraging, food: int) -> tuple[float, np.ndarray]:
    """Steps until all is eaten if `food` is first, and every player's first food, worked out player by player."""
    free_at, way = np.zeros(env.n_agents), env.distance.astype(float)
    first, waiting = np.full(env.n_agents, -1), set(np.flatnonzero(env.left).tolist())

    def team_of(j: int) -> tuple[float, list[int]]:
        arrival, members = free_at + way[:, j], []
        for player in np.argsort(arrival, kind="stable").tolist():
            members.append(player)
            if env.level[members].sum() >= env.food_level[j]:
                break
        lifted = arrival[members[-1]]
        for player in members[::-1]:
            others = [one for one in members if one != player]
            members = others if env.level[others].sum() >= env.food_level[j] else members
        return lifted, members

    while waiting:
        lifted, members = team_of(food)
        first[members] = np.where(first[members] < 0, food, first[members])
        free_at[members] = lifted + 1
        way[members] = np.maximum(np.abs(env.place - env.place[food]).sum(axis=-1) - 2, 0)
        waiting.remove(food)
        food = min(sorted(waiting), key=lambda j: team_of(j)[0], default=-1)
    return free_at.max(), first


@pytest.mark.parametrize("seed", range(5))
def test_plans_are_as_worked_out_by_hand(seed):
    env = begun(seed, n_agents=5, n_tasks=6)
    for _ in range(8):
        total, planned = env.plan()
        by_hand = {j: plan_by_hand(env, j) for j in np.flatnonzero(env.left).tolist()}
        assert {j: total[j] for j in by_hand} == {j: steps for j, (steps, _) in by_hand.items()}
        best = [first for steps, first in by_hand.values() if steps == total.min()]
        assert any((planned == first).all() for first in best)
        env.step(team(env.observe()))


def test_players_see_where_the_last_decision_sent_them():
    env = begun(1)
    assert not np.asarray(env.observe().pair_features)[..., 5].any()
    chosen = team(env.observe())
    env.step(chosen)
    assert ((chosen[:, None] == np.arange(3)) * env.left == np.asarray(env.observe().pair_features)[..., 5]).all()


def test_a_team_keeps_to_its_food_once_nothing_was_eaten_for_long():
    env = begun(2, n_agents=10, n_tasks=20)
    chosen, other = team(env.observe()), np.full(env.n_agents, -1)
    env.step(chosen)
    env.step(other)
    assert (env.sent == other).all()
    env.last_meal = env.field.current_step - PERSISTENCE
    kept = env.keep_to(chosen)
    assert (kept == chosen).all()
    assert (env.keep_to(other) == chosen).all()
    env.kept = other
    alone = np.where(np.arange(env.n_agents) == 0, np.flatnonzero(env.food_level > MOST_LEVEL)[0], -1)
    env.keep_to(alone)
    assert (env.kept < 0).all(), "a player alone is no team"
