"""PPO's clipped loss on the agents' choices, agent by agent.

    L = -mean over agents of min(ratio·A, clip(ratio, 1 - c, 1 + c)·A) + entropy_coef·H

where ratio is the probability of an agent's choice (choices.py) under the present policy by that under the old one, A
the advantage of its state, normalised to mean 0 and standard deviation 1, and H the entropy of its options. Learned
limits (models/limits.py) are drawn before the agents choose: each has the same loss by itself, with the ratio of the
densities N(z, s) of its draw, averaged over the limits of living tasks and pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from muster.assign.settings import InferenceSettings
from muster.data import BatchObservation, Floats, Floats32, Ints
from muster.learning.losses.choices import NO_MINIMUMS, Choices
from muster.learning.rollouts import Rollout
from muster.models.limits import Limits
from muster.models.spec import Scores
from muster.policy.decision import less_switching

FEW = 0.1
"""Share of agents with more than one option below which exchanges count among the options in any case."""


@dataclass(frozen=True, slots=True)
class ChoiceBatch:
    """S states, the choices made in them, their advantages and the critic's targets."""

    observation: BatchObservation
    choices: Choices
    target: Floats32
    """[S] targets of the critic."""
    advantage: Floats
    """[S] normalised to mean 0 and standard deviation 1."""
    before: Floats
    """[S, N] log-likelihood of each choice under the old policy."""
    size: float
    """Mean absolute advantage, before it was normalised."""
    able: float
    """Share of the agents with more than one option."""
    z: Limits
    """z of learned limits by the old policy: capacities [S, 1, M], contributions [S, N, M]."""
    drawn: Limits
    """z with this decision's noise."""

    @classmethod
    def of(
        cls,
        rollout: Rollout,
        inference: InferenceSettings,
        returns: Floats,
        advantage: Floats,
        tau: float,
        exchanging: bool,
    ) -> Self:
        """The batch of a rollout with its returns and advantages [T, B]."""
        observation = rollout.observation
        choices = Choices(
            assignment=rollout.assignment,
            # Switch costs are known before the decision, as earlier noise is.
            history=less_switching(observation, rollout.history[0]).astype(np.float32),
            contributions=np.ascontiguousarray(observation.contributions),
            # AMAX ignores capacities.
            capacities=(
                np.full_like(observation.capacities, np.inf) if inference.method == "amax" else observation.capacities
            ),
            agent_alive=observation.agent_alive,
            open=observation.pairs,
            idling=not inference.assign_all,
            exchanging=exchanging and inference.method != "amax",  # where agents do not compete
            minimums=NO_MINIMUMS if observation.minimums is None else observation.minimums,
        )
        able = choices.share_with_moves()
        if inference.method != "amax" and able < FEW:
            choices = choices._replace(exchanging=True)
        before = choices.likelihood(rollout.scores, tau)
        flat = advantage.reshape(-1)
        normalised = (flat - flat.mean()) / (flat.std() + 1e-8)
        target = returns.reshape(-1).astype(np.float32)
        size = float(np.abs(flat).mean())
        return cls(observation, choices, target, normalised, before, size, able, *rollout.limits)

    def take(self, states: Ints) -> Self:
        """The batch of some states."""
        return replace(
            self,
            observation=self.observation.take(states),
            choices=self.choices.take(states),
            target=self.target[states],
            advantage=self.advantage[states],
            before=self.before[states],
            z={head: array[states] for head, array in self.z.items()},
            drawn={head: array[states] for head, array in self.drawn.items()},
        )

    def slopes(
        self, now: Scores, tau: float, clip_range: float, entropy_coef: float, weight: float
    ) -> tuple[float, float, Scores]:
        """Loss, mean entropy, and `weight` times the loss's slopes in h and g; `now` are the present scores."""
        return self.choices.clipped_loss(now, tau, self.before, self.advantage, clip_range, entropy_coef, weight)

    def limit_slopes(self, now: Limits, std: float, clip_range: float, weight: float) -> tuple[float, Limits]:
        """Loss of the drawn limits, and `weight` times its slopes in the present z, for noise of `std` a decision."""
        loss, slopes = 0.0, {}
        for head, z in now.items():
            residual, old_residual = self.drawn[head] - z, self.drawn[head] - self.z[head]
            ratio = np.exp(np.clip((old_residual**2 - residual**2) / (2.0 * std**2), -20.0, 20.0))
            objective, gain = clipped(ratio, self.advantage[:, None, None], clip_range)
            counts = self.choices.open if head == "contribution" else self.observation.task_alive[:, None, :]
            share = counts / max(int(counts.sum()), 1)
            loss -= float((objective * share).sum())
            slopes[head] = (-weight * gain * share * residual / std**2).astype(np.float32)
        return loss, slopes


def clipped(ratio: Floats, advantage: Floats, clip_range: float) -> tuple[Floats, Floats]:
    """min(ratio·A, clip(ratio)·A), and ratio·A where the gradient is not clipped; a clip range of 0 clips nothing."""
    objective = gain = ratio * advantage
    if clip_range:
        bounded = np.clip(ratio, 1.0 - clip_range, 1.0 + clip_range) * advantage
        objective, gain = np.minimum(objective, bounded), np.where(bounded < objective, 0.0, gain)
    return objective, gain


def idle_share(rollouts: Sequence[Rollout]) -> float:
    """Share of the agents without a task among those that could take one."""
    idle = able = 0
    for rollout in rollouts:
        could = rollout.observation.pairs.any(axis=2)
        able += int(could.sum())
        idle += int((could & (rollout.assignment < 0)).sum())
    return idle / max(able, 1)
