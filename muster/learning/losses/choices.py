"""Pseudo-likelihood of the agents' choices, with the noise of the decision itself integrated out.

Scores act as h + history + e: history is the noise of earlier decisions, e this decision's. Were e Gumbel noise of
scale tau, an agent alone would take task j with probability softmax(u / tau) over

    u_j = h_ij + history_ij + g_jj + sum over the other agents' tasks l of (g_jl + g_lj)

among the tasks with capacity left beside the others'. Idling, where that is allowed, is worth 0 and has no noise: with
noise of mean 0 it is chosen with probability exp(-lambda), log lambda = log sum exp(u / tau) - gamma. Agents also
compete for capacity, and a full task is none of those options: so an agent may have exchanged tasks with any other,
which changes h alone (but see ppo.exchanges_count):

    u = u_own + (h_i,o(k) + h_k,o(i) - h_i,o(i) - h_k,o(k)) / sqrt(2)     (h with its history; 0 for no task)

whose noise has twice the variance of a move's. Without exchanges battles, in which few targets are filled, are learned
worse (docs/results/battle.md). Where tasks have minimums, an agent alone joins none that would still lack something;
and if its own task would lack something without it, all agents there leave with it: staying is worth what all of them
are worth there.

The product over agents, each given what the others took, is the pseudo-likelihood of an assignment. Earlier noise chose
the present tasks, so taking all of it for this decision's draw, as the likelihood of explored scores does, pushes
agents off them. The arithmetic is in core/learning.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from muster.data import Bools, Floats, Floats32, Ints
from muster.kernels import core
from muster.models.spec import Scores

NO_G = np.zeros((0, 0, 0), np.float32)
NO_MINIMUMS: Floats = np.zeros((0, 0))


class Choices(NamedTuple):
    """S assignments with the constraints and noise under which they were chosen."""

    assignment: Ints
    """[S, N] -1 for none."""
    history: Floats32
    """[S, N, M] noise of earlier decisions on h."""
    contributions: Floats
    """[S, N, M]"""
    capacities: Floats
    """[S, M]"""
    agent_alive: Bools
    """[S, N]"""
    open: Bools
    """[S, N, M] living tasks that the agent may take."""
    idling: bool
    """Whether no task is an option where some task has capacity left."""
    exchanging: bool
    """Whether exchanges of tasks are among the options."""
    minimums: Floats = NO_MINIMUMS
    """[S, M] minimum load of a task that is served at all; no rows without minimums."""

    def take(self, states: Ints) -> Choices:
        """The choices of some states."""
        parts: list[Any] = [part[states] if isinstance(part, np.ndarray) and len(part) else part for part in self]
        return Choices(*parts)

    def likelihood(self, scores: Scores, tau: float) -> Floats:
        """[S, N] log-probability of each agent's choice; 0 for one that had none to make."""
        likelihood = np.zeros(self.assignment.shape)
        core.learning.fill_likelihood(self._bound(), scores[0], _or_empty(scores[1]), tau, likelihood)
        return likelihood

    def share_with_moves(self) -> float:
        """Share of the living agents with more than one option, given the others' tasks."""
        return float(core.learning.share_with_moves(self._bound()))

    def clipped_loss(
        self,
        scores: Scores,
        tau: float,
        before: Floats,
        advantage: Floats,
        clip_range: float = 0.0,
        entropy_coef: float = 0.0,
        weight: float = 1.0,
    ) -> tuple[float, float, Scores]:
        """PPO's loss, the mean entropy of the options, and `weight` times the loss's slopes in h and g.

        L = -mean over the living agents of min(ratio·A, clip(ratio, 1 - c, 1 + c)·A) - entropy_coef·H, where ratio is
        that of the likelihood to the one `before` [S, N], A the advantage [S]; a clip range of 0 clips nothing.
        """
        h, g = scores
        slope_h, slope_g = np.zeros(h.shape, np.float32), np.zeros(_or_empty(g).shape, np.float32)
        loss, entropy = core.learning.fill_slopes(
            self._bound(), h, _or_empty(g), tau, before, advantage, clip_range, entropy_coef, weight, slope_h, slope_g
        )
        return loss, entropy, (slope_h, None if g is None else slope_g)

    def _bound(self) -> Any:
        return core.learning.Decisions(*self)


def _or_empty(g: Floats32 | None) -> Floats32:
    return NO_G if g is None else g
