"""The perturbed Fenchel-Young loss (Berthet et al., 2020) between a solver's answers and a target assignment.

With y an assignment, c_j its number of agents on task j, V(y; h, g) = sum h·y + c'gc, and Z_1 .. Z_K noise on h,

    L(h, g) = mean over k of  [ max over y of V(y; h + eps Z_k, g)  -  V(target; h + eps Z_k, g) ]

With an exact solver it is convex in h and g, and never negative for a feasible target. Its slopes need nothing but the
solver's answers y_k:

    dL/dh_ij = mean of y_k,ij - target_ij          dL/dg_jl = mean of c_k,j c_k,l - target's c_j c_l

The target may be a mean of several assignments, that is a distribution over answers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from muster.assign.solver import Solver
from muster.data import BatchObservation, Bools, Floats, Floats32, Ints
from muster.models.pair_scale import pair_factor
from muster.models.spec import ModelSpec, Scores
from muster.policy.decision import less_switching, make_problem
from muster.policy.noise import standard_gumbels

Perturbation = Literal["normal", "gumbel"]


class Moments(NamedTuple):
    """Statistics of assignments in which V is linear: means of their indicators and, for QUAD, of c_j·c_l."""

    h: Floats32
    """[B, N, M] share of the assignments in which agent i has task j."""
    g: Floats32 | None
    """[B, M, M] mean of c_j c_l; None without task scores."""

    @classmethod
    def of(cls, assignment: Ints, alive: Bools, pairs: bool, weights: Floats | None = None) -> Self:
        """Moments of assignments [B, N], or means of K [K, B, N] with `weights` [K, B] that add up to 1 (default 1/K).

        `alive` [B, N, M] is True for pairs that count.
        """
        several = assignment if assignment.ndim == 3 else assignment[None]
        shares = np.full(several.shape[:2], 1.0 / len(several)) if weights is None else weights
        chosen = indicators(several, alive)
        h = np.einsum("kb,kbnm->bnm", shares, chosen, dtype=np.float64).astype(np.float32)
        if not pairs:
            return cls(h, None)
        counts = chosen.sum(axis=2)
        return cls(h, np.einsum("kb,kbj,kbl->bjl", shares, counts, counts, dtype=np.float64).astype(np.float32))

    def value(self, scores: Scores) -> Floats:
        """[B] mean of V over the assignments, for h and the scaled g."""
        h, g = scores
        value: Floats = np.einsum("bnm,bnm->b", self.h, h, dtype=np.float64)
        if g is not None and self.g is not None:
            value = value + np.einsum("bjl,bjl->b", self.g, g, dtype=np.float64)
        return value


def indicators(assignment: Ints, alive: Bools) -> Floats32:
    """[..., N, M] 1 where agent i has task j, of assignments [..., N]; 0 where the pair is not `alive` [B, N, M]."""
    tasks = np.arange(alive.shape[-1])
    return ((assignment[..., None] == tasks) & alive).astype(np.float32)


def draw_noise(rng: np.random.Generator, samples: int, shape: tuple[int, ...], kind: Perturbation) -> Floats32:
    """Z [K, B, N, M] of mean 0 and standard deviation 1."""
    if kind == "gumbel":
        return standard_gumbels(rng.standard_exponential((samples, *shape), np.float32))
    return rng.standard_normal((samples, *shape), np.float32)


def solve_perturbed(observation: BatchObservation, scores: Scores, noise: Floats32, solver: Solver) -> Ints:
    """[K, B, N] the solver's assignments for h + noise [K, B, N, M] and g, in one call."""
    problem = make_problem(observation, *scores)
    perturbed = np.asarray(problem.scores + noise, np.float64)
    names = ("task_scores", "contributions", "capacities", "agent_alive", "task_alive", "allowed", "minimums")
    tiled: dict[str, Any] = {name: _tile(getattr(problem, name), len(noise)) for name in names}
    output, _ = solver.run(replace(problem, scores=perturbed.reshape(-1, *perturbed.shape[2:]), **tiled))
    return output.assignment.reshape(perturbed.shape[:3])


def _tile(array: NDArray[Any] | None, times: int) -> NDArray[Any] | None:
    if array is None or not array.size:
        return array
    if not any(array.strides):  # a broadcast number, which solvers recognise
        return np.broadcast_to(array.flat[0], (times * len(array), *array.shape[1:]))
    return np.concatenate([array] * times)


class Loss(NamedTuple):
    """The loss of B states and its slopes."""

    loss: Floats
    """[B]"""
    slopes: Scores
    """Slopes of the mean loss in h and the scaled g (see `slopes_of_model`)."""
    answers: Ints
    """[K, B, N] solutions of the perturbed problems."""


def fenchel_young(
    observation: BatchObservation, scores: Scores, target: Moments, noise: Floats32, solver: Solver
) -> Loss:
    """The loss against a target, under noise [K, B, N, M]: epsilon times draws of mean 0.

    `observation` is as the model reads it, `scores` are its h and its g scaled to this size (`scale_pairs`).
    """
    h, g = scores
    alive = observation.pairs
    answers = solve_perturbed(observation, scores, noise, solver)
    mean = Moments.of(answers, alive, pairs=g is not None)
    slope_h = mean.h - target.h
    slope_g = None if mean.g is None or target.g is None else mean.g - target.g
    # V is linear in the moments: slopes times scores are the answers' value above the target's, to which the noise
    # under each answer is added. Switch costs are part of h.
    loss = Moments(slope_h, slope_g).value((np.where(alive, less_switching(observation, h), 0.0), g))
    loss += np.einsum("kbnm,kbnm->b", noise, indicators(answers, alive) - target.h, dtype=np.float64) / len(noise)
    states = np.float32(max(len(h), 1))
    return Loss(loss, (slope_h / states, None if slope_g is None else slope_g / states), answers)


def slopes_of_model(spec: ModelSpec, observation: BatchObservation, slopes: Scores) -> Scores:
    """Slopes in the model's own h and g, from those in h and the scaled g (chain rule of `scale_pairs`)."""
    h, g = slopes
    if g is None or (factor := pair_factor(spec, observation)) is None:
        return slopes
    return h, g * factor


def completed(observation: BatchObservation, scores: Scores, assignment: Ints, solver: Solver) -> Ints:
    """The assignment [B, N] with tasks for those that it leaves idle, where the solver assigns all that fit.

    A teacher may leave agents idle where the student cannot. They get the student's own choice given the others' tasks,
    so that nothing is learned from what it cannot do.
    """
    alive = observation.pairs
    idle = observation.agent_alive & (assignment < 0)
    if not solver.assign_all or not idle.any():
        return assignment
    chosen = indicators(assignment, alive)
    h, g = scores
    if g is not None:
        h = h + np.einsum("bj,bjl->bl", chosen.sum(axis=1), g + g.transpose(0, 2, 1))[:, None, :]
    problem = make_problem(observation, h, g)
    load = (observation.contributions * chosen).sum(axis=1)
    left, minimums = np.maximum(observation.capacities - load, 0.0), observation.minimums
    if minimums is not None:
        # A task that has its minimum takes any more, one that others have begun takes none.
        left = np.where((load > 0.0) & (load < minimums), 0.0, left)
        minimums = np.maximum(minimums - load, 0.0)
    rest = replace(problem, capacities=left, minimums=minimums, agent_alive=idle)
    return np.where(idle, solver.run(rest)[0].assignment, assignment)
