from __future__ import annotations

import numpy as np
import pytest

import muster
from examples.field_service import SPEED, STEPS, TRAVEL_COST, FieldService, match, priority
from muster.envs.checks import check_env

ENV = "examples.field_service:FieldService"


def day(seed: int = 0, **size: int) -> FieldService:
    env = FieldService(**size)
    env.reset(np.random.default_rng(seed))
    return env


def test_the_environment_checks_pass():
    assert not [found for found in check_env(ENV) if found.status in ("failed", "advice")]


@pytest.mark.parametrize("baseline", [match, priority])
def test_jobs_begin_in_time_with_the_technicians_that_they_need(baseline):
    """Everything that the environment promises, recomputed from what was done on a few days."""
    for seed in range(5):
        env, ended, profit, served = day(seed), False, 0.0, 0
        while not ended:
            t, seen, was, free_at = env.t, env.observe(), env.position.copy(), env.free_at.copy()
            chosen = baseline(seen)
            jobs, slots = env.waiting(), env.slots.copy()
            reward, ended = env.step(chosen)
            profit += reward
            for j in np.unique(chosen[chosen >= 0]):
                team = np.flatnonzero(chosen == j)
                way = np.linalg.norm(jobs.place[j] - was[team], axis=1)
                driving = np.maximum(np.ceil(way / SPEED), 1)
                assert len(team) == jobs.team[j]
                assert slots[j] >= 0
                assert (free_at[team] <= t).all()
                assert env.able[team, jobs.skill[j]].all()
                assert t + driving.max() <= jobs.deadline[j]
                assert (env.free_at[team] == t + driving.max() + jobs.duration[j]).all()
                assert (t + driving + jobs.duration[j] <= env.shift_end[team]).all()
                profit -= jobs.priority[j] - TRAVEL_COST * driving.sum()
                served += 1
        assert profit == pytest.approx(0)
        assert env.t == STEPS
        assert env.metrics()["served"] == served


def test_one_technician_alone_does_not_leave_for_a_job_that_needs_two():
    for seed in range(20):
        env = day(seed)
        seen = env.observe()
        pairs = np.argwhere(np.asarray(seen.allowed) & (np.asarray(seen.minimums) == 2))
        if len(pairs):
            agent, job = pairs[0]
            chosen = np.full(env.n_agents, -1)
            chosen[agent] = job
            assert env.step(chosen)[0] == 0
            assert env.free_at[agent] <= env.t
            return
    raise AssertionError("no day had a job for two")


def test_look_ahead_knows_the_jobs_that_came_in_and_not_those_that_will():
    env = day()
    for _ in range(30):
        env.step(match(env.observe()))
    known, before = env.next_job, env.jobs
    env.redraw(np.random.default_rng(1))
    for was, now in zip(before, env.jobs, strict=True):
        assert np.array_equal(was[:known], now[:known])
    assert (env.jobs.arrival[known:] > env.t).all()
    assert not np.array_equal(before.place[known:], env.jobs.place[known:])


def test_larger_days_have_as_many_jobs_and_as_much_room_for_each_technician():
    small, large = ([day(seed, n_agents=n, n_tasks=3 * n) for seed in range(20)] for n in (6, 30))
    jobs = [np.mean([len(env.jobs.arrival) / env.n_agents for env in days]) for days in (small, large)]
    assert jobs[0] == pytest.approx(jobs[1], rel=0.1)
    assert small[0].side ** 2 / 6 == pytest.approx(large[0].side ** 2 / 30)
    assert (large[0].able.sum(axis=0) == 15).all()


def test_the_tuned_rule_is_better_than_the_naive_one():
    for size, episodes in (("", 40), (",n_agents=30,n_tasks=90", 10)):
        gain = muster.compare(["match", "priority"], ENV + size, episodes, seed=1).differences[0]
        assert gain.ci95[1] < 0
