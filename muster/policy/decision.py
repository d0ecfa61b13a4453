"""The spine: what is observed -> scores -> assignment, in one function for policies and for both learners."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from muster.data import Bools, Ints, Observation, Problem, Solution
from muster.envs.base import IDLE
from muster.inference.outcomes import BETTER_LEFT_OUT, NEGATIVE_SCORES, REASONS
from muster.policy.limits import less_switching
from muster.scoring.direct import DirectModel, Scores
from muster.scoring.reach import scale_pairs
from muster.scoring.spec import ModelSpec

WANTS_NONE = (REASONS[NEGATIVE_SCORES], REASONS[BETTER_LEFT_OUT])

Scorer = Callable[[Observation], Scores]
Explore = Callable[[Scores], Scores]
"""Adds noise."""
Limit = Callable[[Observation], Observation]
"""Puts learned capacities and contributions in place of the world's."""


class Decision(NamedTuple):
    """An assignment and what led to it."""

    seen: Observation
    """What is observed, as the model reads it, with the limits that it has learned, if any."""
    scores: Scores
    """h and g of the model, g as it counts at this size."""
    played: Scores
    """The same with the noise of exploration: what the inference saw."""
    assignment: Ints
    """[B, N]"""
    reasons: NDArray[Any]
    """[B, N] why an agent has no task: `muster.inference.REASONS`."""

    def orders(self, with_reasons: bool) -> Ints:
        """What a world is given: the assignment, and to one that reads reasons IDLE for who had rather do nothing."""
        if not with_reasons:
            return self.assignment
        unwanted = np.isin(self.reasons, WANTS_NONE)
        return np.where(unwanted, IDLE, self.assignment)


def decide(
    observation: Observation,
    spec: ModelSpec,
    scorer: Scorer,
    solver: Callable[[Problem], Solution],
    explore: Explore | None = None,
    limit: Limit | None = None,
) -> Decision:
    """One decision for each of B worlds; `limit`: None for limits as the scorer has learned them, if it has any."""
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


def make_problem(seen: Observation, h: NDArray[Any], g: NDArray[Any] | None) -> Problem:
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


def alive_pairs(observation: Observation) -> tuple[Bools, Bools]:
    """Which entries of h [B, N, M] and of g [B, M, M] are between living objects, and allowed."""
    agents, tasks = observation.agent_alive, observation.task_alive
    pairs = agents[:, :, None] & tasks[:, None, :]
    if observation.allowed is not None:
        pairs &= observation.allowed
    return pairs, tasks[:, :, None] & tasks[:, None, :]
