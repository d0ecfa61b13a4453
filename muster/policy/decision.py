"""One decision, observation -> scores -> assignment, for policies, learners, look-ahead and service."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from muster.assign.outcomes import BETTER_LEFT_OUT, NEGATIVE_SCORES
from muster.assign.problem import Output
from muster.assign.switching import less_switch_cost
from muster.data import BatchObservation, Floats, Ints, Problem
from muster.envs.vector import IDLE
from muster.models.direct import DirectModel
from muster.models.pair_scale import scale_pairs
from muster.models.spec import ModelSpec, Scores

Scorer = Callable[[BatchObservation], Scores]
"""A scoring model."""
Explore = Callable[[Scores], Scores]
"""Adds exploration noise to scores."""
Limit = Callable[[BatchObservation], BatchObservation]
"""Puts learned capacities and contributions in place of the environment's."""


class Inference(Protocol):
    """A coordination inference procedure: `muster.assign.solver.Solver`, or one with a memory of its last answer."""

    def run(self, problem: Problem) -> tuple[Output, Ints | None]:
        """Assignments with status and reason codes, and the number of changes from a previous assignment."""
        ...


class Decision(NamedTuple):
    """Assignments with the observation and scores from which they follow."""

    observation: BatchObservation
    """As the model reads it, with learned limits, if any."""
    scores: Scores
    """The model's h, and its g scaled to this size."""
    explored: Scores
    """The same with exploration noise: input of the inference."""
    solution: Output
    """Output of the inference; reasons and statuses are codes (`muster.assign.outcomes`)."""

    @property
    def assignment(self) -> Ints:
        """[B, N] task of each agent, -1 for none."""
        return self.solution.assignment

    def actions(self, with_reasons: bool) -> Ints:
        """Actions for an environment: the assignment, with IDLE for agents that prefer no task if it reads reasons."""
        if not with_reasons:
            return self.assignment
        reason = self.solution.reason
        return np.where((reason == NEGATIVE_SCORES) | (reason == BETTER_LEFT_OUT), IDLE, self.assignment)


def decide(
    observation: BatchObservation,
    spec: ModelSpec,
    scorer: Scorer,
    inference: Inference,
    explore: Explore | None = None,
    limit: Limit | None = None,
) -> Decision:
    """Decide in each of B environments; `limit` None stands for the limits that the scorer has learned, if any."""
    read = read_observation(observation, spec, scorer, limit)
    scores = score(read, spec, scorer)
    explored = explore(scores) if explore else scores
    return Decision(read, scores, explored, inference.run(make_problem(read, *explored))[0])


def read_observation(
    observation: BatchObservation,
    spec: ModelSpec,
    scorer: Scorer,
    limit: Limit | None = None,
    env: str = "what is observed",
) -> BatchObservation:
    """The observation as the model reads it, with learned limits in place; `env` is named in errors."""
    read = spec.read(observation, env)
    if not spec.learned:
        return read
    if limit is None:
        assert isinstance(scorer, DirectModel)
        limit = scorer.limit
    return limit(read)


def score(read: BatchObservation, spec: ModelSpec, scorer: Scorer) -> Scores:
    """h and the scaled g of an observation from `read_observation`."""
    h, g = scorer(read)
    return h, scale_pairs(spec, read, g)


def make_problem(read: BatchObservation, h: NDArray[Any], g: NDArray[Any] | None) -> Problem:
    """The assignment problem of these scores under the observation's constraints."""
    return Problem(
        scores=less_switching(read, h),
        task_scores=None if g is None else np.asarray(g, np.float64),
        contributions=read.contributions,
        capacities=read.capacities,
        agent_alive=read.agent_alive,
        task_alive=read.task_alive,
        allowed=read.allowed,
        minimums=read.minimums,
    )


def less_switching(read: BatchObservation, h: NDArray[Any]) -> NDArray[Any]:
    """h [B, N, M] minus the switch cost of leaving a task that is still there."""
    if read.switch_cost is None or read.previous is None:
        return h
    return less_switch_cost(np.asarray(h, np.float64), read.previous, read.task_alive, read.switch_cost)


def allowed_scores(read: BatchObservation, h: NDArray[Any]) -> Floats:
    """h [B, N, M] minus switch costs, -inf where a pair is not allowed."""
    scores = np.asarray(less_switching(read, h), np.float64)
    return scores if read.allowed is None else np.where(read.allowed, scores, -np.inf)
