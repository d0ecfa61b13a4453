"""The choices' likelihood against plain sums over the options, and its slopes against finite differences."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from muster.assign import Solver
from muster.data import Problem
from muster.learning.losses.choices import Choices

LINEAR = 2.0
"""log lambda from which idling's utility falls linearly."""
NO_TASK_SCORES = np.zeros((0, 0, 0), np.float32)


def situation(seed, n=3, m=4, states=5, idling=True, quad=True, exchanging=True):
    """Assignments that the solver made of random scores, with capacities that bind and some dead objects."""
    rng = np.random.default_rng(seed)
    h = rng.normal(size=(states, n, m)).astype(np.float32)
    g = rng.normal(scale=0.4, size=(states, m, m)).astype(np.float32) if quad else NO_TASK_SCORES
    contributions = rng.uniform(0.5, 1.0, (states, n, m))
    capacities = rng.uniform(0.8, 2.0, (states, m))
    agents, tasks = rng.random((states, n)) > 0.1, rng.random((states, m)) > 0.1
    history = rng.normal(scale=0.2, size=h.shape).astype(np.float32)
    problem = Problem(
        (h + history).astype(np.float64),
        g.astype(np.float64) if quad else None,
        contributions,
        capacities,
        agents,
        tasks,
    )
    solver = Solver("quad" if quad else "lp", assign_all=not idling)
    assignment = solver(problem).assignment
    may = np.broadcast_to(tasks[:, None, :], h.shape).copy()
    return Choices(assignment, history, contributions, capacities, agents, may, idling, exchanging), h, g


def loads(d, s, assignment):
    """Load of every task under some assignment of the living."""
    load = np.zeros(d.capacities.shape[1])
    for i, j in enumerate(assignment):
        if d.agent_alive[s, i] and j >= 0:
            load[j] += d.contributions[s, i, j]
    return load


def is_feasible(d, s, assignment, may_idle):
    """Whether open tasks hold it, the agents in `may_idle` idling at will and the others only as they did."""
    for i, j in enumerate(assignment):
        if not d.agent_alive[s, i]:
            continue
        if j >= 0 and not d.open[s, i, j]:
            return False
        if j < 0 and not d.idling and d.assignment[s, i] >= 0 and i not in may_idle:
            return False
    return bool((loads(d, s, assignment) <= d.capacities[s] + 1e-9).all())


def worth(d, h, g, s, assignment):
    """The objective of an assignment under the scores and the noise of earlier decisions."""
    alive = [(i, j) for i, j in enumerate(assignment) if d.agent_alive[s, i] and j >= 0]
    total = sum(float(h[s, i, j]) + float(d.history[s, i, j]) for i, j in alive)
    return total + (sum(float(g[s, j, k]) for _, j in alive for _, k in alive) if g.size else 0.0)


def utility_of_idling(tasks):
    """Utility by tau of no task beside those of tasks: the odds that the largest, with its noise, is below 0."""
    if not tasks:
        return np.euler_gamma
    total = np.logaddexp.reduce(tasks)
    log_rate = total - np.euler_gamma
    rate = np.exp(min(log_rate, LINEAR)) * (1 + max(log_rate - LINEAR, 0.0))
    return total - np.log(np.expm1(rate))


def by_hand(d, h, g, s, i, tau):
    """Log-probability of agent i's choice in state s, from whole assignments; None where it had no choice."""
    now = d.assignment[s]
    here = worth(d, h, g, s, now)

    def moved(j):
        return np.where(np.arange(len(now)) == i, j, now)

    alone = worth(d, h, g, s, moved(-1))
    able = [j for j in range(h.shape[2]) if j == now[i] or is_feasible(d, s, moved(j), ())]
    tasks = {j: (worth(d, h, g, s, moved(j)) - alone) / tau for j in able}
    options = dict(tasks)
    if d.idling or now[i] < 0:
        options[-1] = utility_of_idling(list(tasks.values())) if d.idling else 0.0
    taken = options[now[i]]
    for k in range(h.shape[1]):
        if not d.exchanging or k == i or not d.agent_alive[s, k] or now[i] == now[k]:
            continue
        swapped = now.copy()
        swapped[[i, k]] = now[[k, i]]
        if is_feasible(d, s, swapped, (i, k)):
            options["exchange", k] = taken + (worth(d, h, g, s, swapped) - here) / (math.sqrt(2) * tau)
    return taken - np.logaddexp.reduce(list(options.values())) if len(options) > 1 else None


@pytest.mark.parametrize(
    ("quad", "idling", "exchanging"), list(itertools.product((False, True), (False, True), (False, True)))
)
def test_likelihood_is_the_softmax_over_moves_and_exchanges(quad, idling, exchanging):
    for seed in range(10):
        d, h, g = situation(seed, idling=idling, quad=quad, exchanging=exchanging)
        found = d.likelihood((h, g if quad else None), 0.3)
        for s, i in np.ndindex(found.shape):
            wanted = by_hand(d, h, g, s, i, 0.3) if d.agent_alive[s, i] else None
            assert found[s, i] == pytest.approx(0.0 if wanted is None else wanted, abs=1e-5)


@pytest.mark.parametrize(("quad", "idling"), list(itertools.product((False, True), (False, True))))
def test_slopes_are_those_of_the_clipped_loss(quad, idling):
    """Against finite differences, some way from where the choices were made, so that some ratios are clipped."""
    d, h, g = situation(3, quad=quad, idling=idling)
    rng = np.random.default_rng(0)
    advantage = rng.normal(size=len(h))
    before = d.likelihood((h, g if quad else None), 0.4) + rng.normal(scale=0.2, size=h.shape[:2])

    def loss(h, g):
        return d.clipped_loss((h, g if quad else None), 0.4, before, advantage, 0.2, 0.0)

    slope_h, slope_g = loss(h, g)[2]
    step = np.float32(1e-2)
    close = 0
    for array, slope in ((h, slope_h), (g, slope_g)):
        for where in list(np.ndindex(array.shape))[::3]:
            up, down = array.copy(), array.copy()
            up[where] += step
            down[where] -= step
            pair = (loss(up, g), loss(down, g)) if array is h else (loss(h, up), loss(h, down))
            close += slope[where] == pytest.approx((pair[0][0] - pair[1][0]) / (2 * step), abs=2e-3)
    # The loss has a kink where clipping begins.
    assert close >= 0.95 * len(list(np.ndindex(h.shape))[::3] + list(np.ndindex(g.shape))[::3])


def test_the_loss_is_minus_the_mean_of_clipped_ratios_times_advantages():
    d, h, g = situation(4)
    advantage = np.array([1.0, -2.0, 0.5, 1.5, -1.0])
    now = d.likelihood((h, g), 0.3)
    before = now - np.array([[0.5], [0.5], [-0.5], [0.05], [-0.5]])
    ratio = np.exp(now - before)
    worth = np.minimum(ratio * advantage[:, None], np.clip(ratio, 0.8, 1.2) * advantage[:, None])
    expected = -(worth * d.agent_alive).sum() / d.agent_alive.sum()
    assert d.clipped_loss((h, g), 0.3, before, advantage, 0.2)[0] == pytest.approx(expected)


def test_more_entropy_is_where_its_slope_points():
    d, h, g = situation(5)
    none, before = np.zeros(len(h)), d.likelihood((h, g), 0.4)
    _, entropy, (down, _) = d.clipped_loss((h, g), 0.4, before, none, entropy_coef=1.0)
    after = d.clipped_loss(((h - 0.1 * down).astype(np.float32), g), 0.4, before, none, entropy_coef=1.0)[1]
    assert after > entropy


def up_slope(choices, h):
    """Slopes of the sum of the agents' log-likelihoods."""
    likelihood = choices.likelihood((h, None), 0.1)
    slope = choices.clipped_loss((h, None), 0.1, likelihood, np.ones(1))[2][0]
    return -slope * choices.agent_alive.sum()


def forced_on(n, m):
    """n agents on m tasks that hold one each, all assigned: who is on which is all there is to choose."""
    assignment = np.array([[i if i < m else -1 for i in range(n)]])
    return Choices(
        assignment, np.zeros((1, n, m), np.float32), np.ones((1, n, m)), np.ones((1, m)), np.ones((1, n), np.bool_),
        np.ones((1, n, m), np.bool_), False, True,
    )  # fmt: skip


def test_the_only_option_left_has_no_slope():
    assert not up_slope(forced_on(1, 1), np.zeros((1, 1, 1), np.float32)).any()


def test_full_tasks_are_exchanged():
    """Two agents, two tasks, all full; and an agent that is left out may take the other's task."""
    for m, wanted in ((2, [[1, -1], [-1, 1]]), (1, [[1], [-1]])):
        slope = up_slope(forced_on(2, m), np.zeros((1, 2, m), np.float32))
        assert slope[0] / slope[0, 0, 0] == pytest.approx(np.array(wanted))
        assert slope[0, 0, 0] > 0


def test_who_has_a_task_that_two_want_is_learned_where_agents_may_idle():
    """One task for one, and both far above idling, so that no move is in doubt: only an exchange is."""
    choices = forced_on(2, 1)._replace(idling=True)
    high = np.full((1, 2, 1), 5.0, np.float32)
    slope = up_slope(choices, high)
    assert slope[0, 0, 0] == pytest.approx(-slope[0, 1, 0])
    assert slope[0, 0, 0] > 1
    assert np.abs(up_slope(choices._replace(exchanging=False), high)).max() < 1e-9


def test_agents_with_a_choice_of_their_own_are_counted():
    assert forced_on(2, 2).share_with_moves() == forced_on(3, 2).share_with_moves() == 0.0
    assert forced_on(2, 3).share_with_moves() == 1.0
    assert forced_on(2, 2)._replace(idling=True).share_with_moves() == 1.0
    full = forced_on(2, 3)
    full.open[0, 1, 2] = False
    assert full.share_with_moves() == 0.5


def test_the_chance_of_an_exchange_is_nearly_that_of_the_noise():
    """LP on 2x2 with Gumbel noise: how often the diagonal wins."""
    tau, rng = 0.3, np.random.default_rng(0)
    noise = rng.gumbel(scale=tau, size=(100_000, 2, 2))
    for lead in (0.0, 0.3, 0.6, 1.2):
        h = np.array([[[lead, 0.0], [0.0, 0.0]]], np.float32)
        explored = h + noise
        share = (explored[:, 0, 0] + explored[:, 1, 1] > explored[:, 0, 1] + explored[:, 1, 0]).mean()
        found = forced_on(2, 2).likelihood((h, None), tau)
        assert np.exp(found[0, 0]) == pytest.approx(share, abs=0.015)


def test_the_chance_of_idling_is_that_of_the_noise():
    """One agent, three tasks with Gumbel noise of mean 0: how often none is worth more than 0, and which is best."""
    tau, rng = 0.3, np.random.default_rng(0)
    noise = rng.gumbel(-np.euler_gamma * tau, tau, size=(200_000, 3))
    for level in (-0.9, -0.3, 0.0, 0.3):
        h = np.array([[[level, level - 0.2, -0.5]]], np.float32)
        explored = h[0, 0] + noise
        taken = np.where(explored.max(axis=1) > 0, explored.argmax(axis=1), -1)
        for task in range(-1, 3):
            alone = forced_on(1, 3)._replace(assignment=np.array([[task]]), idling=True)
            found = np.exp(alone.likelihood((h, None), tau)[0, 0])
            assert found == pytest.approx((taken == task).mean(), abs=0.005)


def test_whole_teams_leave_a_task_with_a_minimum():
    """Of two agents on a task that needs both, one moves or both stay; no agent joins a task that would lack one."""
    h = np.array([[[1.0, 0.5, 9.0], [2.0, -9.0, 9.0], [-9.0, 0.7, 9.0]]], np.float32)
    ones, everyone = np.ones((1, 3, 3)), np.ones((1, 3), np.bool_)
    choices = Choices(
        np.array([[0, 0, 1]]),
        np.zeros_like(h),
        ones,
        np.array([[2.0, 2.0, 2.0]]),
        everyone,
        ones.astype(np.bool_),
        True,
        False,
        np.array([[2.0, 0.0, 2.0]]),
    )
    found = choices.likelihood((h, None), 1.0)[0]
    # Both stay for 3, or agent 0 goes to task 1 for 0.5, or idles; task 2 needs two.
    assert found[0] == pytest.approx(3.0 - np.log(np.exp([3.0, 0.5, utility_of_idling([3.0, 0.5])]).sum()))
    assert found[2] == pytest.approx(0.7 - np.log(np.exp([0.7, utility_of_idling([0.7])]).sum()))


@pytest.mark.parametrize("exchanging", [False, True])
def test_slopes_with_minimums_are_differences(exchanging):
    rng = np.random.default_rng(3)
    states, n, m = 4, 5, 3
    h = rng.normal(1.0, 1.0, (states, n, m)).astype(np.float32)
    capacities, minimums = np.tile([2.0, 3.0, 1.0], (states, 1)), np.tile([2.0, 2.0, 0.0], (states, 1))
    ones = np.ones(h.shape)
    problem = Problem(h.astype(np.float64), capacities=capacities, minimums=minimums)
    assignment = Solver("lp")(problem).assignment
    everyone, may = np.ones((states, n), np.bool_), ones.astype(np.bool_)
    choices = Choices(assignment, np.zeros_like(h), ones, capacities, everyone, may, True, exchanging, minimums)
    before = choices.likelihood((h, None), 0.5)
    advantage = rng.normal(size=states)
    slopes = choices.clipped_loss((h, None), 0.5, before, advantage, 0.0, 0.01)[2][0]
    for place in [(0, 0, 0), (1, 2, 1), (2, 4, 2), (3, 1, 0), (0, 3, 1)]:
        values = []
        for step in (-1e-2, 1e-2):
            moved = h.copy()
            moved[place] += step
            values.append(choices.clipped_loss((moved, None), 0.5, before, advantage, 0.0, 0.01)[0])
        assert slopes[place] == pytest.approx((values[1] - values[0]) / 2e-2, abs=2e-3)
