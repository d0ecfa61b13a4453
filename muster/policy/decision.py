"""The spine: what is observed -> scores -> assignment, in one function for policies and for both learners."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from muster.assign.outcomes import BETTER_LEFT_OUT, NEGATIVE_SCORES, REASONS
from muster.data import BatchObservation, Bools, Ints, Problem, Solution
from muster.envs.vector import IDLE
from muster.models.direct import DirectModel, Scores
from muster.models.reach import scale_pairs
from muster.models.spec import ModelSpec
from muster.policy.limits import less_switching

WANTS_NONE = (REASONS[NEGATIVE_SCORES], REASONS[BETTER_LEFT_OUT])

Scorer = Callable[[BatchObservation], Scores]
Explore = Callable[[Scores], Scores]
"""Adds noise."""
Limit = Callable[[BatchObservation], BatchObservation]
"""Puts learned capacities and contributions in place of the environment's."""


class Decision(NamedTuple):
    """An assignment and what led to it."""

    seen: BatchObservation
    """What is observed, as the model reads it, with the limits that it has learned, if any."""
    scores: Scores
    """h and g of the model, g as it counts at this size."""
    played: Scores
    """The same with the noise of exploration: what the inference saw."""
    assignment: Ints
    """[B, N]"""
    reasons: NDArray[Any]
    """[B, N] why an agent has no task: `muster.assign.REASONS`."""

    def orders(self, with_reasons: bool) -> Ints:
        """What an env is given: the assignment, and to one that reads reasons IDLE for who had rather do nothing."""
        if not with_reasons:
            return self.assignment
        unwanted = np.isin(self.reasons, WANTS_NONE)
        return np.where(unwanted, IDLE, self.assignment)


def decide(
    observation: BatchObservation,
    spec: ModelSpec,
    scorer: Scorer,
    solver: Callable[[Problem], Solution],
    explore: Explore | None = None,
    limit: Limit | None = None,
) -> Decision:
    """One decision for each of B envs; `limit`: None for limits as the scorer has learned them, if it has any."""
    seen = spec.view(observation)
    if spec.learned:
        seen = limit(seen) if limit else limits_of(scorer)(seen)
    h, g = scorer(seen)
    scores = h, scale_pairs(spec, seen, g)
    played = explore(scores) if explore else scores
    solution = solver(make_problem(seen, *played))
    return Decision(seen, scores, played, solution.assignment, solution.reasons)


def limits_of(scorer: Scorer) -> Limit:
    """The limits that a model has learned."""
    assert isinstance(scorer, DirectModel)
    return scorer.limit


def make_problem(seen: BatchObservation, h: NDArray[Any], g: NDArray[Any] | None) -> Problem:
    """The assignment problem that scores pose in what is observed."""
    return Problem(
        scores=less_switching(seen, h),
        task_scores=None if g is None else np.asarray(g, np.float64),
        contributions=seen.contributions,
        capacities=seen.capacities,
        agent_alive=seen.agent_alive,
        task_alive=seen.task_alive,
        allowed=seen.allowed,
    )


def alive_pairs(observation: BatchObservation) -> tuple[Bools, Bools]:
    """Which entries of h [B, N, M] and of g [B, M, M] are between living objects, and allowed."""
    agents, tasks = observation.agent_alive, observation.task_alive
    pairs = agents[:, :, None] & tasks[:, None, :]
    if observation.allowed is not None:
        pairs &= observation.allowed
    return pairs, tasks[:, :, None] & tasks[:, None, :]
