from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from muster.data import Ints
from muster.envs import history
from muster.envs.checks import check_env
from muster.envs.env import Env, Observation
from muster.envs.padding import Padded, observation_of
from muster.envs.singles import batched
from muster.errors import EnvError, InputError, MusterError
from muster.rng import episode_seeds
from tests.envs.custom_envs import Orders, SavedOrders
from tests.envs.one_check import run_check


def begun(single: type[Env], n_envs: int = 4, **options: Any) -> Any:
    env = batched(single)(n_envs, **options)
    env.reset(np.arange(n_envs), episode_seeds(0, np.arange(n_envs)))
    return env


@pytest.mark.parametrize("single", [Orders, SavedOrders])
def test_environments_with_arrivals_obey_every_law(single):
    findings = check_env(lambda n_envs: batched(single)(n_envs))
    statuses = {found.check: (found.status, found.detail) for found in findings}
    assert statuses.pop("the numbering does not matter")[0] == "unchecked"
    assert {status for status, _ in statuses.values()} == {"passed", "measured"}, statuses


def test_views_are_padded_and_steps_get_the_observations_own_length():
    env = begun(Orders, 8)
    sizes = set()
    for _ in range(10):
        seen = env.observe()
        views = [single.observe() for single in env.singles]
        for slot, view in enumerate(views):
            n, m = len(view.agent_features), len(view.task_features)
            sizes.add((n, m))
            assert seen.agent_alive[slot].tolist() == [True] * n + [False] * (3 - n)
            assert seen.task_alive[slot].tolist() == [True] * m + [False] * (5 - m)
            assert np.array_equal(seen.prior[slot, :n, :m], view.prior)
            assert not seen.allowed[slot, n:].any()
            assert (seen.agent_ids[slot, n:] == -1).all()
        env.step(np.zeros((8, 3), np.int64))
        for single, view, allowed in zip(env.singles, views, seen.allowed, strict=True):
            heard = single.heard[-1][0]
            n, m = len(view.agent_features), len(view.task_features)
            assert heard.tolist() == [0 if m and allowed[i, 0] else -1 for i in range(n)]
    assert len(sizes) > 4


def test_previous_follows_agents_and_tasks_to_where_they_are_now():
    env, rng = begun(Orders, 6), np.random.default_rng(0)
    followed = 0
    for t in range(25):
        seen = env.observe()
        for slot, single in enumerate(env.singles):
            expected = np.full(3, -1)
            if t:
                assignment, agents, tasks = single.heard[-1]
                had = {a: tasks[j] for a, j in zip(agents, assignment, strict=True) if j >= 0}
                now = {task: j for j, task in enumerate(single.ids)}
                for i, agent in enumerate(single.on_duty):
                    expected[i] = now.get(had.get(agent, -1), -1)
            assert seen.previous[slot].tolist() == expected.tolist()
            followed += int((expected >= 0).sum())
        env.step(np.where(seen.allowed.any(2), (rng.random(seen.allowed.shape) * seen.allowed).argmax(2), -1))
    assert followed > 20


def test_return_is_the_sum_of_rewards_and_figures_come_along():
    env = begun(Orders, 5)
    policy = env.baselines()["nearest"](env)
    total = sum(env.step(policy.act(env.observe())).reward for _ in range(30))
    assert total.sum() > 0
    assert env.outcome().tolist() == total.tolist() == env.metrics()["served"].tolist()


def test_an_environment_that_saves_itself_keeps_no_history_and_gives_the_same_states():
    one, two = begun(Orders), begun(SavedOrders)
    for _ in range(12):
        for env in (one, two):
            env.step(np.zeros((4, 3), np.int64))
    state = two.get_state()
    assert "history" not in state
    other = batched(SavedOrders)(4)
    other.set_state(state)
    for _ in range(10):
        rewards = [env.step(np.zeros((4, 3), np.int64)).reward.tolist() for env in (one, two, other)]
        assert rewards[0] == rewards[1] == rewards[2]
    assert other.outcome().tolist() == one.outcome().tolist()


def test_a_state_does_not_depend_on_what_was_played_before():
    fresh, used = begun(Orders, 2), batched(Orders)(2)
    for _ in range(4):
        used.step(np.zeros((2, 3), np.int64))
    used.reset(np.arange(2), episode_seeds(0, np.arange(2)))
    for env in (fresh, used):
        env.step(np.zeros((2, 3), np.int64))
        env.reset(np.arange(1), episode_seeds(5, np.arange(1)))
    one, two = fresh.get_state(), used.get_state()
    assert all(np.array_equal(one[name], two[name]) for name in one | two)


def test_history_grows_as_needed_and_forgets_beyond_its_bound(monkeypatch):
    small = begun(Orders, 2)
    assert sum(array.nbytes for array in small.get_state().values()) < 1000
    monkeypatch.setattr(history, "HISTORY_BYTES", 2 * 16 * 3 * 2)
    env = begun(Orders, 2)
    for t in range(17):
        if t == 16:
            env.get_state()
        env.step(np.zeros((2, 3), np.int64))
    with pytest.raises(MusterError, match=r"2 episodes of Orders need more than .* define get_state\(\)"):
        env.get_state()
    assert env.step(np.zeros((2, 3), np.int64)).reward.shape == (2,)


def test_switch_cost_reaches_the_observation():
    class Sticky(Orders):
        switch_cost = 0.25

    seen = begun(Sticky, 2).observe()
    assert seen.switch_cost.shape == (2, 3, 5)
    assert (seen.switch_cost == 0.25).all()
    assert begun(Orders, 2).observe().switch_cost is None


def changed(**fields: Any) -> type[Env]:
    """Orders with some fields of its view replaced."""

    class Changed(Orders):
        def observe(self) -> Observation:
            right = super().observe()
            given = {name: getattr(right, name) for name in Observation.__slots__}
            return Observation(**given | {name: value(right) for name, value in fields.items()})

    return Changed


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"prior": lambda v: np.full(np.shape(v.prior), np.nan)}, "prior of Changed must be finite, got nan at [0, 0]"),
        ({"prior": lambda v: np.zeros((2, 2))}, "prior of Changed must have shape"),
        (
            {"agent_features": lambda v: np.full(np.shape(v.agent_features), np.inf)},
            "agent_features of Changed must be",
        ),
        ({"agent_features": lambda v: np.full(np.shape(v.agent_features), 1e300)}, "must be finite, got inf"),
        ({"allowed": lambda v: True}, "allowed of Changed must have shape"),
        ({"task_ids": lambda v: np.zeros(len(v.task_ids), int)}, "task_ids of Changed must all be different, got 0"),
        ({"task_ids": lambda v: np.zeros(len(v.task_ids))}, "task_ids of Changed must be whole numbers, got float64"),
        ({"capacities": lambda v: np.full(len(v.task_ids), -1.0)}, "capacities of Changed must not be negative"),
        ({"task_features": lambda v: np.zeros((9, 1))}, "Changed shows 9 tasks, but its n_tasks says that 5 are"),
        ({"task_features": lambda v: 3}, "observe() of Changed failed at step 0 of the episode with seed"),
    ],
)
def test_an_observation_that_cannot_be_used_gets_one_clear_sentence(fields, complaint):
    with pytest.raises(MusterError, match=re.escape(complaint)) as caught:
        begun(changed(**fields), rate=3.0).observe()
    assert "\n" not in str(caught.value)


def test_a_field_is_in_every_view_or_in_none():
    class Moody(Orders):
        def observe(self) -> Observation:
            right = super().observe()
            return right if self.t < 2 else Observation(right.agent_features, right.task_features)

    env = begun(Moody)
    for _ in range(2):
        env.step(np.zeros((4, 3), np.int64))
    with pytest.raises(InputError, match="allowed of Moody must be in every observation or in none; the first had it"):
        env.observe()


def test_an_environment_that_raises_says_which_where_and_why():
    class Falls(Orders):
        def step(self, assignment: Ints) -> tuple[float, bool]:
            if self.t == 3 and self.served >= 1:
                raise KeyError("shelf 7")
            return super().step(assignment)

    env, seeds = begun(Falls, 20), episode_seeds(0, np.arange(20))
    for _ in range(3):
        env.step(np.zeros((20, 3), np.int64))
    with pytest.raises(EnvError) as caught:
        env.step(np.zeros((20, 3), np.int64))
    slot = next(k for k, single in enumerate(env.singles) if single.t == 3 and single.served)
    message = str(caught.value)
    assert message.startswith(f"step() of Falls failed at step 3 of the episode with seed {seeds[slot]} (slot {slot} ")
    assert "KeyError: 'shelf 7'" in message
    assert "custom_envs.py" not in message
    assert "test_singles.py" in message


@pytest.mark.parametrize(
    ("returned", "complaint"),
    [
        ((float("nan"), False), "a reward is not finite, but nan"),
        ((1.0, False, {}), r"must return .*, got \(1"),
        (None, "must return the reward .* got None"),
        ((None, False), r"got \(None, False\); give a number, and True or False"),
        ((np.zeros(3), False), "give a number, and True or False"),
        ((1.0, "no"), r"got \(1.0, 'no'\); give a number, and True or False"),
        ((False, -1.5), "give a number, and True or False"),
    ],
)
def test_what_step_returns_is_checked(returned, complaint):
    class Odd(Orders):
        def step(self, assignment: Ints) -> Any:
            return returned

    with pytest.raises(EnvError, match=complaint):
        begun(Odd).step(np.zeros((4, 3), np.int64))


@pytest.mark.parametrize("found", [None, {"served": "all"}, {"served": [1, 2]}])
def test_what_metrics_returns_is_checked(found):
    class Odd(Orders):
        max_steps = 1

        def metrics(self) -> Any:
            return found

    check = run_check(Odd, "endings")
    assert check.status == "failed"
    assert re.search(r"metrics\(\) of .*Odd failed at step 1", check.detail)
    assert f"it must return numbers by name, got {found!r}" in check.detail


@pytest.mark.parametrize(
    ("attributes", "complaint"),
    [
        ({"feature_names": {"agent": ("x", "y")}}, "names 2 agent features (x, y) but shows 1"),
        ({"feature_names": {"agents": ("x",)}}, "no kind of feature 'agents'"),
        ({"positions": (0, 7)}, "positions names column 7 of agent features, of which there are 1"),
    ],
)
def test_columns_that_are_not_there_fail_a_check(attributes, complaint):
    found = run_check(type("Odd", (Orders,), attributes), "shapes and types")
    assert found.status == "failed"
    assert complaint in found.detail


def test_a_scene_is_refused_where_its_columns_are_not_there():
    env = begun(type("Odd", (Orders,), {"positions": (0, 7)}))
    with pytest.raises(InputError, match=re.escape("columns of agent and task features, 0 to 0, got (0, 7)")):
        env.renderer().scene(0)


def test_positions_are_a_tuple_of_columns():
    with pytest.raises(InputError, match="positions of Odd must be a tuple of columns, counted from 0; got 0"):
        begun(type("Odd", (Orders,), {"positions": 0}))


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"prior": np.full((1, 2), "near")}, "prior of Odd must be numbers, got <U4"),
        ({"prior": np.zeros((1, 2), complex)}, "prior of Odd must be numbers, got complex128"),
        ({"task_features": np.zeros(2)}, "task_features of Odd must have shape [2, features] (of at most"),
    ],
)
def test_what_an_observation_holds_is_checked(changed, complaint):
    class Odd(Orders):
        def observe(self) -> Observation:
            return replace(Observation(np.zeros((1, 2)), np.zeros((2, 1)), prior=np.zeros((1, 2))), **changed)

    with pytest.raises(InputError, match=re.escape(complaint)):
        begun(Odd).observe()


@pytest.mark.parametrize(
    ("baseline", "complaint"),
    [
        (lambda view: np.zeros(9, int), "must give a task from 0 to"),
        (lambda view: np.full(len(view.agent_ids), 5), "must give a task from 0 to"),
        (lambda view: np.asarray(view.allowed).argmin(1), "which `allowed` forbids"),
        (lambda view: view.nothing, "the baseline 'odd' of Ruled failed: AttributeError"),
    ],
)
def test_a_baseline_that_cannot_be_followed_is_explained(baseline, complaint):
    class Ruled(Orders):
        @classmethod
        def baselines(cls) -> Any:
            return {"odd": baseline}

    env = begun(Ruled, rate=3.0)
    with pytest.raises(MusterError, match=complaint):
        env.baselines()["odd"](env).act(env.observe())


@pytest.mark.parametrize(
    ("attributes", "complaint"),
    [
        ({"n_agents": 0}, "must have n_agents, the most agents that there ever are, a whole number from 1; got 0"),
        ({"n_tasks": None}, "must have n_tasks"),
        ({"max_steps": 2.5}, "must have max_steps, the step limit, a whole number from 1; got 2.5"),
        ({"metric": "retrun"}, "no metric 'retrun' for Bad; did you mean 'return'?"),
        ({"switch_cost": -1}, "switch_cost of Bad must be finite and not negative"),
        ({"switch_cost": np.zeros((2, 2))}, "switch_cost of Bad must be a number or [n_agents, n_tasks]"),
        ({"get_state": lambda self: {}}, "must define both get_state() and set_state(), or neither"),
    ],
)
def test_a_class_that_cannot_be_batched_is_explained(attributes, complaint):
    class Fine(Orders):
        n_agents, n_tasks = 3, 5

        def __init__(self) -> None:
            pass

    with pytest.raises(InputError, match=re.escape(complaint)):
        batched(type("Bad", (Fine,), attributes))(1)


def test_an_environment_where_nothing_is_ever_allowed_is_legal_but_reported():
    nothing = changed(allowed=lambda v: np.zeros(np.shape(v.allowed), bool))
    env = begun(nothing)
    assert not env.step(np.zeros((4, 3), np.int64)).reward.any()
    found = run_check(lambda n_envs: batched(nothing)(n_envs), "masks")
    assert found.status == "failed"
    assert "nothing to decide: `allowed` forbids every pair" in found.detail


def test_an_observation_that_draws_random_numbers_fails_a_check():
    class Looks(Orders):
        def observe(self) -> Observation:
            self.rng.random()
            return super().observe()

    found = run_check(lambda n_envs: batched(Looks)(n_envs), "nothing is mutated")
    assert "observe() draws random numbers" in found.detail


def test_a_state_that_forgets_something_fails_a_check():
    class Forgets(SavedOrders):
        def set_state(self, state: Any) -> None:
            super().set_state({name: value for name, value in state.items() if name != "orders"})

    assert run_check(lambda n_envs: batched(Forgets)(n_envs), "a saved state resumes").status == "failed"


def test_views_of_any_sizes_make_one_observation():
    views = [
        Observation(np.ones((n, 2)), np.ones((m, 1)), pair_features=np.ones((n, m, 3))) for n, m in ((1, 4), (3, 0))
    ]
    seen = observation_of(views)
    assert seen.pair_features.shape == (2, 3, 4, 3)
    assert seen.agent_alive.sum(1).tolist() == [1, 3]
    assert seen.task_alive.sum(1).tolist() == [4, 0]
    assert seen.pair_features.sum() == 12


def test_a_method_that_returns_something_else_is_told_what_to_return():
    class NoObservation(Orders):
        def observe(self) -> Any:
            super().observe()

    class NoPair(Orders):
        def step(self, assignment: Ints) -> Any:
            return super().step(assignment)[0]

    with pytest.raises(EnvError, match=r"observe\(\) of NoObservation failed at step 0 .* an Observation, got None"):
        batched(NoObservation)().observe()
    with pytest.raises(EnvError, match=r"step\(\) of NoPair .* must return the reward and whether .* over, got 0\.0"):
        batched(NoPair)().step(np.full((1, 3), -1))


def test_what_a_view_leaves_out_means_the_same_whatever_came_before():
    features = np.ones((2, 1))
    written = Padded("environments", 1, 2, 2)
    for alive, expected in (
        (None, [1, 1]),
        (None, [1, 1]),
        ([1, 0], [1, 0]),
        (None, [1, 1]),
    ):
        written.write(0, Observation(features, features, agent_alive=alive))
        assert written.arrays["agent_alive"][0].tolist() == expected
    written.write(0, Observation(features[:1], features))
    assert written.arrays["agent_alive"][0].tolist() == [1, 0]
    written.write(0, Observation(features, features))
    assert written.arrays["agent_alive"][0].tolist() == [1, 1]
