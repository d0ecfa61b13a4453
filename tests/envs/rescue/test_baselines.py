from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

import muster
from muster.envs.rescue import RescueEnv, RescueSettings
from muster.envs.rescue.routing import fastest_routes, king_moves
from muster.errors import InputError
from muster.evaluation.episodes import run_episodes
from muster.rng import episode_seeds


def episodes_of(policy: str, episodes: int = 1000, n_envs: int = 128, **settings: object):
    env = RescueEnv(RescueSettings(**settings), n_envs)  # type: ignore[arg-type]
    return run_episodes(env, env.baselines()[policy](env), episode_seeds(0, np.arange(episodes)))


@pytest.mark.parametrize("manhattan", [False, True])
def test_closest_sends_everyone_to_a_nearest_waiting_victim(manhattan):
    name = "closest-manhattan" if manhattan else "closest"
    env = RescueEnv(RescueSettings(agents=5, tasks=10), 50)
    slots, seeds = np.arange(50), episode_seeds(0, np.arange(50))
    env.reset(slots, seeds)
    policy = env.baselines()[name](env)
    policy.reset(slots, seeds)
    for _ in range(6):
        assignment = policy.act(env.observe())
        gaps = np.abs(env.agent_cells[:, :, None] - env.task_cells[:, None])
        distance = gaps.sum(axis=-1) if manhattan else gaps.max(axis=-1)
        distance = np.where(env.unsolved[:, None], distance, 10**6)
        chosen = np.take_along_axis(distance, assignment[:, :, None].clip(0), 2)[:, :, 0]
        running = env.unsolved.any(axis=1)
        assert (chosen == distance.min(axis=2))[running].all()
        assert (assignment[~running] == -1).all()
        env.step(assignment)


def test_ties_are_broken_evenly_and_by_the_episode_seed():
    env = RescueEnv(RescueSettings(agents=1, tasks=3), 6000)
    slots, seeds = np.arange(6000), episode_seeds(0, np.arange(6000))
    env.reset(slots, seeds)
    env.agent_cells[:] = (5, 5)
    env.task_cells[:] = [(5, 7), (3, 3), (7, 6)]
    policy = env.baselines()["closest"](env)
    policy.reset(slots, seeds)
    chosen = policy.act(env.observe())
    assert np.bincount(chosen[:, 0]) == pytest.approx([2000] * 3, abs=160)
    policy.reset(slots, seeds)
    assert np.array_equal(chosen, policy.act(env.observe()))


def test_lp_distance_has_the_least_total_distance():
    env = RescueEnv(RescueSettings(agents=5, tasks=7), 80)
    slots, seeds = np.arange(80), episode_seeds(0, np.arange(80))
    env.reset(slots, seeds)
    policy = env.baselines()["lp-distance"](env)
    for _ in range(8):
        assignment = policy.act(env.observe())
        distance = king_moves(env.agent_cells, env.task_cells)
        for slot in range(80):
            open_tasks = np.flatnonzero(env.unsolved[slot])
            sent = np.flatnonzero(assignment[slot] >= 0)
            assert len(sent) == min(5, len(open_tasks)), "everyone is sent while victims last"
            assert len(set(assignment[slot, sent])) == len(sent), "one ambulance a victim"
            rows, columns = linear_sum_assignment(distance[slot][:, open_tasks])
            least = distance[slot][rows, open_tasks[columns]].sum()
            assert distance[slot][sent, assignment[slot, sent]].sum() == least
        env.step(assignment)


@pytest.mark.parametrize("name", ["topline", "routes-distance"])
def test_a_plan_is_worth_the_steps_that_it_takes_to_carry_it_out(name):
    env = RescueEnv(RescueSettings(agents=3, tasks=7), 60)
    slots, seeds = np.arange(60), episode_seeds(1, np.arange(60))
    env.reset(slots, seeds)
    policy = env.baselines()[name](env)
    policy.reset(slots, seeds)
    outlooks = []
    while env.unsolved.any():
        assignment = policy.act(env.observe())
        outlooks.append(policy.expected_return(env.observe()) / -0.01)
        env.step(assignment)
    for slot, steps in enumerate(env.outcome()):
        told = np.array([outlook[slot] for outlook in outlooks])
        left = np.maximum(steps - np.arange(len(told)), 0)
        # The planner may find something better on the way, never anything worse.
        assert (told[0] >= left[0] - 1e-9).all()
        assert (np.diff(told[: int(steps)]) <= -1 + 1e-9).all()
        if name == "topline":
            np.testing.assert_allclose(told, left)


@pytest.mark.parametrize("placement", ["distinct", "independent"])
@pytest.mark.parametrize(("agents", "tasks"), [(1, 5), (2, 4), (3, 7), (6, 3), (5, 10)])
def test_the_topline_takes_exactly_the_steps_it_says(agents, tasks, placement):
    env = RescueEnv(RescueSettings(agents=agents, tasks=tasks, placement=placement), 60)
    seeds = episode_seeds(1, np.arange(60))
    env.reset(np.arange(60), seeds)
    promised = []
    for slot in range(60):
        cells, stops = env.agent_cells[slot][None], env.task_cells[slot][env.unsolved[slot]][None]
        promised.append(fastest_routes(king_moves(cells, stops)[0], king_moves(stops, stops)[0]).makespan)
    records = run_episodes(env, env.baselines()["topline"](env), seeds)
    # Where everyone is picked up at the start, the first step ends the episode.
    assert records.outcome.tolist() == np.maximum(promised, 1).tolist()


def test_nothing_beats_the_topline():
    best = episodes_of("topline", 300, agents=3, tasks=6).outcome
    for baseline in ("closest", "closest-manhattan", "lp-distance"):
        assert (episodes_of(baseline, 300, agents=3, tasks=6).outcome >= best).all()


def test_the_topline_holds_under_random_moves():
    straight = episodes_of("topline", 200, agents=2, tasks=5).outcome
    assert (episodes_of("topline", 200, agents=2, tasks=5, random_moves=True).outcome == straight).all()


def test_the_topline_names_its_limit():
    env = RescueEnv(RescueSettings(agents=2, tasks=17), 1)
    with pytest.raises(InputError, match="up to 16 victims, got 17"):
        env.baselines()["topline"](env)


@pytest.mark.parametrize(
    ("policy", "size", "steps", "within"),
    [
        ("topline", (2, 4), 11.22, 0.15),
        ("topline", (5, 10), 8.24, 0.1),
        ("closest", (2, 4), 15.04, 0.25),
        ("closest", (5, 10), 14.01, 0.25),
        ("closest", (8, 15), 12.21, 0.25),
        ("lp-distance", (2, 4), 12.32, 0.2),
        ("lp-distance", (5, 10), 10.09, 0.2),
        ("lp-distance", (8, 15), 8.42, 0.2),
        ("closest-manhattan", (2, 4), 15.28, 0.25),
        ("closest-manhattan", (5, 10), 14.46, 0.25),
        ("closest-manhattan", (8, 15), 12.70, 0.25),
    ],
)
def test_baselines_take_as_many_steps_as_measured_elsewhere(policy, size, steps, within):
    records = episodes_of(policy, 2000, agents=size[0], tasks=size[1])
    assert records.outcome.mean() == pytest.approx(steps, abs=within)
    assert not records.truncated.any()


def test_plans_on_distances_are_close_to_the_optimum_and_feasible():
    """The optimum is a bound in every episode, and a plan comes within one per cent of it on average."""
    for size, episodes in (("2x4", 200), ("5x10", 100)):
        plan = muster.evaluate("routes-distance", f"rescue:{size}", episodes)
        best = muster.evaluate("topline", f"rescue:{size}", episodes)
        assert (plan.records.outcome >= best.records.outcome).all()
        assert plan.mean <= 1.01 * best.mean


def test_a_plan_follows_from_its_episode_alone():
    """Whatever the slot did before: routes of another episode are forgotten."""
    alone = muster.evaluate("routes-distance", "rescue:3x6", 40, batch=40)
    shared = muster.evaluate("routes-distance", "rescue:3x6", 40, batch=3)
    assert np.array_equal(alone.records.outcome, shared.records.outcome)
