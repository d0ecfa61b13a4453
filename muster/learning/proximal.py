"""What was played as choices: the slopes of the clipped loss of proximal policy optimisation, agent by agent.

    L = -mean over agents of min(ratio·A, clamp(ratio, 1 - clip, 1 + clip)·A) + entropy·H

where ratio is the chance of an agent's choice (choices.py) now by what it was when it was made, A the advantage of its
state, of mean 0 and deviation 1, and H the entropy of its options. Limits that are learned (scoring/heads.py) are
drawn before the agents choose: each has the same loss by itself, with the ratio of the densities N(z, s) of what was
drawn beside the noise of earlier decisions, averaged over the limits that count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from muster.assign.settings import InferenceSettings
from muster.data import BatchObservation, Floats, Floats32, Ints
from muster.learning.choices import Decisions, choice_likelihood, choice_slopes, share_with_moves
from muster.learning.rollouts import Rollout, take
from muster.learning.settings import Recipe
from muster.models.direct import Scores
from muster.models.heads import Limits
from muster.policy.decision import alive_pairs, allowed_scores

FEW = 0.1
"""Share of agents with a choice of their own below which exchanges are all there is to learn from."""
NONE = np.zeros((0, 0, 0), np.float32)


@dataclass(frozen=True, slots=True)
class Played:
    """S states, what was chosen in them and what came of it."""

    seen: BatchObservation
    decisions: Decisions
    target: Floats32
    """[S] of the critic."""
    advantage: Floats
    """[S] of mean 0 and deviation 1."""
    before: Floats
    """[S, N] log-likelihood of each choice when it was made."""
    size: float
    """Mean absolute advantage, as it was."""
    able: float
    """Share of the agents that had a choice of their own."""
    z: Limits
    """Of learned limits, as the model gave it: capacities [S, 1, M], contributions [S, N, M]."""
    drawn: Limits
    """The same with this decision's innovation."""

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
        """A rollout with its returns and advantages [T, B]; next to nobody having a move, agents exchange anyway."""
        seen = rollout.seen
        decisions = Decisions(
            assignment=rollout.assignment,
            # What an environment takes from scores (switch_cost) is known beforehand, as earlier noise is.
            history=allowed_scores(seen, rollout.history[0]).astype(np.float32),
            contributions=np.ascontiguousarray(seen.contributions),
            # AMAX knows no capacities.
            capacities=np.full_like(seen.capacities, np.inf) if inference.method == "amax" else seen.capacities,
            agent_alive=seen.agent_alive,
            open=alive_pairs(seen)[0],
            idling=not inference.assign_all,
            exchanging=exchanging and inference.method != "amax",  # nor does anybody compete there
        )
        able = share_with_moves(decisions)
        if inference.method != "amax" and able < FEW:
            decisions = decisions._replace(exchanging=True)
        before = np.zeros(rollout.assignment.shape)
        h, g = rollout.scores
        choice_likelihood(decisions, h, NONE if g is None else g, tau, before)
        flat = advantage.reshape(-1)
        even = (flat - flat.mean()) / (flat.std() + 1e-8)
        target = returns.reshape(-1).astype(np.float32)
        return cls(seen, decisions, target, even, before, float(np.abs(flat).mean()), able, *rollout.limits)

    def take(self, states: Ints) -> Self:
        """Some of the states."""
        parts: dict[str, Any] = self.decisions._asdict()
        parts |= {name: part[states] for name, part in parts.items() if isinstance(part, np.ndarray)}
        return replace(
            self,
            seen=take(self.seen, states),
            decisions=Decisions(**parts),
            target=self.target[states],
            advantage=self.advantage[states],
            before=self.before[states],
            z={head: array[states] for head, array in self.z.items()},
            drawn={head: array[states] for head, array in self.drawn.items()},
        )

    def slopes(
        self, now: Scores, tau: float, clip: float, entropy: float, weight: float
    ) -> tuple[float, float, Scores]:
        """Loss, mean entropy, and `weight` times the loss's slopes in the present h and g."""
        h, given = now
        g = NONE if given is None else given
        likelihood = np.zeros(self.before.shape)
        choice_likelihood(self.decisions, h, g, tau, likelihood)
        ratio = np.exp(np.clip(likelihood - self.before, -20.0, 20.0))
        count = max(int(self.decisions.agent_alive.sum()), 1)
        worth, gain = clipped(ratio, self.advantage[:, None], clip)
        slope_h, slope_g = np.zeros(h.shape), np.zeros(g.shape)
        spread = choice_slopes(self.decisions, h, g, tau, gain / count, entropy / count, slope_h, slope_g)
        loss = -float((worth * self.decisions.agent_alive).sum()) / count - entropy * spread
        down_h, down_g = ((-weight * slope).astype(np.float32) for slope in (slope_h, slope_g))
        return loss, spread, (down_h, None if given is None else down_g)

    def limit_slopes(self, now: Limits, recipe: Recipe, weight: float) -> tuple[float, Limits]:
        """Loss of the drawn limits, and `weight` times its slopes in the present z."""
        loss, slopes, deviation = 0.0, {}, recipe.noise.limit_innovation
        for head, z in now.items():
            off, was = self.drawn[head] - z, self.drawn[head] - self.z[head]
            ratio = np.exp(np.clip((was**2 - off**2) / (2.0 * deviation**2), -20.0, 20.0))
            worth, gain = clipped(ratio, self.advantage[:, None, None], recipe.clip)
            counts = self.decisions.open if head == "contribution" else self.seen.task_alive[:, None, :]
            share = counts / max(int(counts.sum()), 1)
            loss -= float((worth * share).sum())
            slopes[head] = (-weight * gain * share * off / deviation**2).astype(np.float32)
        return loss, slopes


def clipped(ratio: Floats, advantage: Floats, clip: float) -> tuple[Floats, Floats]:
    """min(ratio·A, clamp(ratio)·A), and ratio·A where a slope runs through it; a clip of 0 clamps nothing."""
    worth = gain = ratio * advantage
    if clip:
        clamped = np.clip(ratio, 1.0 - clip, 1.0 + clip) * advantage
        # Where the clamped ratio is the worse one, no slope runs through it.
        worth, gain = np.minimum(worth, clamped), np.where(clamped < worth, 0.0, gain)
    return worth, gain


def idle_share(rollouts: Sequence[Rollout]) -> float:
    """Share of the living agents, among those that could take something, that took nothing."""
    idle = able = 0
    for rollout in rollouts:
        could = alive_pairs(rollout.seen)[0].any(axis=2)
        able += int(could.sum())
        idle += int((could & (rollout.assignment < 0)).sum())
    return idle / max(able, 1)
