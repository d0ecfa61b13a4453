from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest

from muster.envs.pursuit import PursuitEnv, PursuitSettings
from muster.evaluation.episodes import run_episodes
from muster.rng import episode_seeds
from tests.envs.pursuit.plain import Plain


def started(n_envs: int, **settings: object) -> PursuitEnv:
    env = PursuitEnv(PursuitSettings(**settings), n_envs)  # type: ignore[arg-type]
    env.reset(np.arange(n_envs), episode_seeds(0, np.arange(n_envs)))
    return env


def decisions(name: str, steps: int = 8, n_envs: int = 40, **settings: object):
    """Distances [N][M] by the plain dynamics, who is free, and the baseline's assignment, along its own episodes."""
    env = started(n_envs, **settings)
    plain = Plain(*env.settings.shape, env.settings.walls, env.settings.needed, env.settings.sight)
    policy = env.baselines()[name](env)
    policy.reset(np.arange(n_envs), episode_seeds(0, np.arange(n_envs)))
    for _ in range(steps):
        assignment = policy.act(env.observe())
        for b in range(n_envs):
            if env._running[b]:
                ways = [[plain.distance(p, e) for e in env.task_cells[b]] for p in env.agent_cells[b]]
                yield ways, env.unsolved[b].tolist(), assignment[b].tolist()
        env.step(assignment)


def test_closest_sends_everyone_to_a_nearest_free_evader():
    for ways, free, assignment in decisions("closest", agents=5, tasks=4):
        for row, task in zip(ways, assignment, strict=True):
            assert free[task]
            assert row[task] == min(way for way, is_free in zip(row, free, strict=True) if is_free)


def test_closest_breaks_ties_evenly_and_by_the_episode_seed():
    env = started(3000, agents=2, tasks=3)
    env.agent_cells[:] = (5, 5)
    env.task_cells[:] = [(5, 7), (3, 3), (7, 6)]
    policy, seeds = env.baselines()["closest"](env), episode_seeds(0, np.arange(3000))
    policy.reset(np.arange(3000), seeds)
    chosen = policy.act(env.observe())
    assert np.bincount(chosen.ravel()) == pytest.approx([2000] * 3, abs=160)
    policy.reset(np.arange(3000), seeds)
    assert np.array_equal(chosen, policy.act(env.observe()))


@pytest.mark.parametrize(
    "size", [{"agents": 4, "tasks": 2}, {"agents": 5, "tasks": 4}, {"agents": 7, "tasks": 2, "needed": 3}]
)
def test_closest_pairs_lets_the_group_gather_first_that_can_gather_soonest(size):
    needed = size.get("needed", 2)
    for ways, free, assignment in decisions("closest-pairs", **size):
        idle, open_tasks = set(range(len(ways))), {j for j, is_free in enumerate(free) if is_free}
        groups = {j: {i for i, task in enumerate(assignment) if task == j} for j in open_tasks}
        while len(idle) >= needed and open_tasks:
            best = min(worth(ways, j, group) for j in open_tasks for group in combinations(sorted(idle), needed))
            found = [
                j
                for j in open_tasks
                if len(groups[j]) == needed and groups[j] <= idle and worth(ways, j, groups[j]) == best
            ]
            assert found
            idle -= groups[found[0]]
            open_tasks -= {found[0]}
        for i in idle:
            nearest = min((ways[i][j] for j in open_tasks), default=None)
            assert assignment[i] == -1 if nearest is None else ways[i][assignment[i]] == nearest


def worth(ways, j, group):
    """When the group is complete at evader j, then how far it goes in all."""
    times = [ways[i][j] for i in group]
    return max(times), sum(times)


def test_lp_distance_has_the_least_total_distance_of_all_full_assignments():
    for ways, free, assignment in decisions("lp-distance", n_envs=25, steps=6, agents=4, tasks=3):
        places = [j for j, is_free in enumerate(free) if is_free for _ in range(2)]
        sent = [i for i, task in enumerate(assignment) if task >= 0]
        assert len(sent) == min(4, len(places))
        assert all(assignment.count(j) <= 2 for j in places)
        agents = permutations(range(4), len(sent))
        every = (zip(some, order, strict=True) for some in agents for order in combinations(places, len(sent)))
        best = min(sum(ways[i][j] for i, j in pairs) for pairs in every)
        assert sum(ways[i][assignment[i]] for i in sent) == best


@pytest.mark.parametrize("size", [(4, 2), (16, 8)])
def test_who_gathers_in_pairs_beats_who_crowds_and_one_each_never_catches(size):
    def steps(name: str) -> np.ndarray:
        env = PursuitEnv(PursuitSettings(agents=size[0], tasks=size[1]), 100)
        return run_episodes(env, env.baselines()[name](env), episode_seeds(1, np.arange(300))).outcome

    crowd, pairs, programme = (steps(name) for name in ("closest", "closest-pairs", "lp-distance"))
    for better in (pairs, programme):
        gain = crowd - better
        assert gain.mean() > 2 * gain.std() / np.sqrt(len(gain))

    env = started(50, agents=2, tasks=2, max_steps=60)
    # Kept apart: each has an evader of its own, so no two stand beside one but by chance.
    caught = run_episodes(env, OneEach(), episode_seeds(1, np.arange(50))).outcome < 60
    assert caught.mean() < 0.2


class OneEach:
    """Pursuer i goes for evader i."""

    name = "one-each"

    def reset(self, slots, seeds):
        pass

    def act(self, observation):
        return np.tile(np.arange(2), (observation.batch, 1))
