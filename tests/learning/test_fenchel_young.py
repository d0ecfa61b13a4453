"""The Fenchel-Young loss: its slopes, its convexity, who may take what, and that it learns a known programme."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest

from muster.assign import Solver
from muster.data import BatchObservation
from muster.learning.losses.fenchel_young import (
    Moments,
    completed,
    draw_noise,
    fenchel_young,
    slopes_of_model,
    solve_perturbed,
)
from muster.models.spec import ModelSpec
from muster.policy.decision import make_problem

METHODS = ("amax", "lp", "quad")


def states(seed, batch=4, n=3, m=4, dead=0.1, **more):
    """What is observed of random environments with unit contributions, capacities 1 or 2, some dead, some forbidden."""
    rng = np.random.default_rng(seed)
    seen = BatchObservation(
        agent_features=np.zeros((batch, n, 0), np.float32),
        task_features=np.zeros((batch, m, 0), np.float32),
        pair_features=np.zeros((batch, n, m, 0), np.float32),
        task_pair_features=np.zeros((batch, m, m, 0), np.float32),
        agent_alive=rng.random((batch, n)) >= dead,
        task_alive=rng.random((batch, m)) >= dead,
        contributions=np.ones((batch, n, m)),
        capacities=rng.integers(1, 3, (batch, m)).astype(np.float64),
        allowed=rng.random((batch, n, m)) >= dead,
    )
    return dataclasses.replace(seen, **more)


def scores_for(seed, seen, quad):
    rng = np.random.default_rng(seed + 100)
    (batch, n), m = seen.agent_alive.shape, seen.task_alive.shape[1]
    h = rng.normal(size=(batch, n, m)).astype(np.float32)
    return h, rng.normal(scale=0.2, size=(batch, m, m)).astype(np.float32) if quad else None


def set_up(method, seed=0, assign_all=False, **more):
    """States, scores, a target that another draw of scores would have, noise and a solver that finds the best."""
    seen = states(seed, **more)
    solver = Solver(method, effort="best" if method == "quad" else "fast", assign_all=assign_all, certify=False)
    scores = scores_for(seed, seen, method == "quad")
    other = scores_for(seed + 1, seen, method == "quad")
    assignment = solver(make_problem(seen, *other)).assignment
    target = Moments.of(assignment, seen.pairs, pairs=method == "quad")
    noise = np.float32(0.5) * draw_noise(np.random.default_rng(seed), 6, scores[0].shape, "gumbel")
    return seen, scores, target, noise, solver


@pytest.mark.parametrize(("method", "assign_all"), list(itertools.product(METHODS, (False, True))))
def test_slopes_are_finite_differences_of_the_loss(method, assign_all):
    """The answers change at few places only, so nearly all differences are exact."""
    seen, scores, target, noise, solver = set_up(method, assign_all=assign_all)
    found = fenchel_young(seen, scores, target, noise, solver)
    step = np.float32(1e-3)
    for part, slope in zip(range(2), found.slopes, strict=True):
        if slope is None:
            continue
        for where in list(np.ndindex(slope.shape))[::2]:
            losses = []
            for sign in (1, -1):
                moved = [None if array is None else array.copy() for array in scores]
                moved[part][where] += sign * step
                losses.append(fenchel_young(seen, tuple(moved), target, noise, solver).loss.mean())
            assert slope[where] == pytest.approx((losses[0] - losses[1]) / (2 * step), abs=2e-3)


@pytest.mark.parametrize("method", METHODS)
def test_the_loss_is_never_negative_and_is_zero_only_for_the_answer_itself(method):
    for seed in range(10):
        seen, scores, target, noise, solver = set_up(method, seed)
        assert (fenchel_young(seen, scores, target, noise, solver).loss >= -1e-5).all()
        own = solve_perturbed(seen, scores, 0 * noise[:1], solver)[0]
        certain = Moments.of(own, seen.pairs, pairs=method == "quad")
        assert fenchel_young(seen, scores, certain, 0 * noise, solver).loss == pytest.approx(0.0, abs=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_the_loss_is_convex_along_a_line(method):
    seen, scores, target, noise, solver = set_up(method)
    towards = scores_for(7, seen, method == "quad")
    line = []
    for t in np.linspace(-2, 2, 21, dtype=np.float32):
        moved = tuple(None if a is None else a + t * b for a, b in zip(scores, towards, strict=True))
        line.append(fenchel_young(seen, moved, target, noise, solver).loss)
    assert (np.diff(line, 2, axis=0) >= -1e-4).all()


@pytest.mark.parametrize("method", METHODS)
def test_slopes_vanish_on_average_where_the_target_is_the_mean_answer(method):
    seen, scores, _, _, solver = set_up(method)
    rng = np.random.default_rng(5)
    many = [np.float32(0.5) * draw_noise(rng, 800, scores[0].shape, "normal") for _ in range(2)]
    solver = dataclasses.replace(solver, effort="fast")
    answers = solve_perturbed(seen, scores, many[0], solver)
    target = Moments.of(answers, seen.pairs, pairs=method == "quad")
    for slope in fenchel_young(seen, scores, target, many[1], solver).slopes:
        if slope is not None:
            assert np.abs(slope).max() * len(scores[0]) < 0.2
    again = fenchel_young(seen, scores, target, many[0], solver).slopes[0]
    assert np.abs(again).max() < 1e-6


@pytest.mark.parametrize("method", METHODS)
def test_renumbering_agents_and_tasks_renumbers_the_slopes(method):
    seen, scores, target, noise, solver = set_up(method)
    agents, tasks = np.array([2, 0, 1]), np.array([3, 1, 0, 2])
    moved = dataclasses.replace(
        seen,
        agent_alive=seen.agent_alive[:, agents],
        task_alive=seen.task_alive[:, tasks],
        capacities=seen.capacities[:, tasks],
        allowed=seen.allowed[:, agents][:, :, tasks],
    )

    def renumber(h, g):
        return h[..., agents, :][..., tasks], None if g is None else g[..., tasks, :][..., tasks]

    one = fenchel_young(seen, scores, target, noise, solver)
    other = fenchel_young(moved, renumber(*scores), Moments(*renumber(*target)), renumber(noise, None)[0], solver)
    assert other.loss == pytest.approx(one.loss, abs=1e-5)
    for wanted, found in zip(renumber(*one.slopes), other.slopes, strict=True):
        assert (wanted is None) == (found is None)
        if wanted is not None:
            assert found == pytest.approx(wanted, abs=1e-6)


def test_the_dead_and_the_forbidden_have_no_slope():
    seen, scores, _, noise, solver = set_up("quad", dead=0.3)
    everyone = np.zeros((4, 3), np.int64)
    target = Moments.of(everyone, seen.pairs, pairs=True)
    slope_h, slope_g = fenchel_young(seen, scores, target, noise, solver).slopes
    pairs, tasks = (seen.pairs, seen.task_pairs)
    assert not slope_h[~pairs].any()
    assert not slope_g[~tasks].any()


def test_a_target_can_be_a_weighted_mean():
    seen = states(0, batch=2, dead=0.0)
    two = np.array([[[0, 1, 2], [0, 0, 0]], [[1, 1, 3], [-1, 2, 2]]])
    weights = np.array([[0.25, 0.5], [0.75, 0.5]])
    mean = Moments.of(two, seen.pairs, pairs=True, weights=weights)
    assert mean.h[0].tolist() == [[0.25, 0.75, 0, 0], [0, 1, 0, 0], [0, 0, 0.25, 0.75]]
    # State 1: three agents on task 0, or two on task 2.
    assert mean.g[1, 0, 0] == pytest.approx(0.5 * 9)
    assert mean.g[1, 2, 2] == pytest.approx(0.5 * 4)
    assert mean.g[1, 0, 2] == 0


def test_switch_costs_are_part_of_what_answers_are_worth():
    seen, scores, _, noise, solver = set_up("lp", assign_all=True, dead=0.0)
    before = np.tile([0, 1, 2], (4, 1))
    seen = dataclasses.replace(seen, previous=before, switch_cost=np.full((4, 3, 4), 100.0))
    target = Moments.of(before, seen.pairs, pairs=False)
    found = fenchel_young(seen, scores, target, noise, solver)
    assert (found.answers == before).all()
    assert found.loss == pytest.approx(0.0, abs=1e-4)


def test_slopes_of_a_scaled_g_are_scaled_alike():
    spec = ModelSpec("dm", True, 0, 0, 0, 0, pair_scale="size", trained_agents=1)
    seen = states(0, dead=0.0)
    h, g = slopes_of_model(spec, seen, (np.ones((4, 3, 4), np.float32), np.ones((4, 4, 4), np.float32)))
    assert (h == 1).all()
    assert g == pytest.approx(np.broadcast_to(np.where(np.eye(4), 1, 1 / 3), g.shape))


@pytest.mark.parametrize("method", METHODS)
def test_idle_agents_of_a_teacher_get_what_the_student_would_add(method):
    seen, scores, _, _, solver = set_up(method, assign_all=True, dead=0.0)
    given = np.tile([0, -1, -1], (4, 1))
    whole = completed(seen, scores, given, solver)
    assert (whole[:, 0] == 0).all()
    assert (whole >= 0).all()
    h, g = scores
    for s in range(4):
        best = -np.inf
        for rest in itertools.product(range(4), repeat=2):
            tried = np.array([0, *rest])
            counts = np.bincount(tried, minlength=4)
            if method == "amax" or (counts <= seen.capacities[s]).all():
                worth = h[s, np.arange(3), tried].sum() + (counts @ g[s] @ counts if g is not None else 0.0)
                best = max(best, worth)
        counts = np.bincount(whole[s], minlength=4)
        worth = h[s, np.arange(3), whole[s]].sum() + (counts @ g[s] @ counts if g is not None else 0.0)
        assert worth == pytest.approx(best, abs=1e-4)
    idling = dataclasses.replace(solver, assign_all=False)
    assert completed(seen, scores, given, idling) is given


def test_scores_of_a_known_programme_are_learned():
    """h = features times unknown weights, learned from optimal assignments alone: unseen ones are then solved alike."""
    rng = np.random.default_rng(0)
    wanted = np.array([1.0, -2.0, 0.5], np.float32)
    weights = np.zeros(3, np.float32)
    solver = Solver("lp", assign_all=True, certify=False)

    def sample(batch):
        seen = states(0, batch=batch, n=4, m=5, dead=0.0)
        features = rng.normal(size=(batch, 4, 5, 3)).astype(np.float32)
        return seen, features, solver(make_problem(seen, features @ wanted, None)).assignment

    for _ in range(150):
        seen, features, best = sample(32)
        target = Moments.of(best, seen.pairs, pairs=False)
        noise = np.float32(0.3) * draw_noise(rng, 4, features.shape[:3], "gumbel")
        found = fenchel_young(seen, (features @ weights, None), target, noise, solver)
        weights -= np.float32(0.2) * np.einsum("bnm,bnmf->f", found.slopes[0], features)
    seen, features, best = sample(200)
    assert (solver(make_problem(seen, features @ weights, None)).assignment == best).mean() > 0.96
    assert weights / np.linalg.norm(weights) == pytest.approx(wanted / np.linalg.norm(wanted), abs=0.05)
