"""PPO on the agents' choices, the default learner: clipped ratios, minibatches, generalised advantage estimation.

g is learned otherwise than h. Exploration noise is on h alone, and an agent's choice weighs one h against the sum of g
over all the others' tasks: with many agents a random g would decide everything before anything is tried, and a step of
g's network moves choices some N/2 times as far as one of h's. Therefore g starts at 0 with a learning rate 2/N of h's.
With more than FEW_AGENTS g is learned only after G_AFTER of the run: some runs on w15v17 that learned both from the
start learned next to nothing (docs/results/battle.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from muster.learning.a2c import ActorCritic, check_loss, returns_of
from muster.learning.actor import DirectActor, g_is_zero
from muster.learning.critic import Critic
from muster.learning.learner import CRITIC, Arrays, Setup, State, component, prefixed, stream
from muster.learning.losses.clipped import ChoiceBatch, idle_share
from muster.learning.metrics import Metrics
from muster.learning.optimiser import cosine_decay
from muster.learning.rollouts import Rollout
from muster.learning.settings import CORRELATED_STEPS, PPOSettings
from muster.learning.workers import WorkerPool
from muster.models.direct import DirectModel
from muster.policy.noise import GUMBEL_STD, LIMIT_SIGMA

FEW_AGENTS = 5
"""Up to so many agents g is learned from the start, and from moves alone."""
G_AFTER = 0.5
"""Share of a run after which g is learned with more agents."""
ADVICE_UPDATES = 5
"""Updates without a choice, or from the start without one in doubt, after which the user gets advice."""
LEAST_ENTROPY = 0.02
"""Mean entropy of the options below which the noise is too small to explore."""
CRITIC_LEARNING_RATE = 2e-3
"""Initial value of a cosine schedule that ends at 0."""
MAX_GRAD_NORM = 1.0
"""Norm to which longer gradients are clipped."""

# Thresholds of a collapse (Rollback). Once a policy is fair, advantages are mostly chance, and the bias of the
# pseudo-likelihood can lead away from it: too slowly to be seen in a few updates, and without recovering soon.
WINDOW = 16
"""Updates over which rewards are averaged."""
COLLAPSE_UPDATES = 16
"""Updates for which the mean must stay COLLAPSE_STDS below its best, or a quarter of them with all agents idle."""
COLLAPSE_STDS = 1.0
"""In standard deviations of an episode's reward at the best mean."""
ALL_IDLE = 0.99
"""Share of idle agents that counts as all."""
DECLINE_WINDOW = 4 * WINDOW
"""Updates over which rewards are averaged to detect a slow decline."""
DECLINE_STDS = 0.1
"""Decline below the best such mean, in standard deviations of an episode's reward,"""
DECLINE_ERRORS = 6.5
"""and in standard errors of the mean; both must be exceeded."""


class PPO(ActorCritic):
    """One epoch of minibatches on every rollout; rolls back to the best state when rewards have collapsed."""

    name = "ppo"
    keep_history = True

    def __init__(self, setup: Setup, settings: PPOSettings, pool: WorkerPool | None = None) -> None:
        n_agents = max(env.n_agents for env in setup.envs)
        actor = setup.make_actor(max_grad_norm=MAX_GRAD_NORM, g_share=min(1.0, 2 / n_agents), g_from_zero=True)
        critic = Critic(setup.spec, stream(setup.seed, CRITIC), MAX_GRAD_NORM)
        super().__init__(setup, settings, actor, critic, pool)
        self.settings = settings
        self.g_after = G_AFTER if n_agents > FEW_AGENTS else 0.0
        self.exchanging = exchanges_count(self.spec.task_scores, n_agents)
        self.tau = self.noise.innovation / GUMBEL_STD
        """Scale of the Gumbel noise of a decision: the temperature of the softmax."""
        self.rollback = Rollback()
        self.best: Arrays = {}
        """State of the networks and optimisers when the mean reward was best."""
        self.choiceless = 0
        """Consecutive updates, up to the last, in which no agent had a choice."""
        self.certain = 0
        """Updates from the first in which next to no choice was in doubt; -1 after one with some."""

    def counts(self) -> Mapping[str, int]:
        """Number of rollbacks so far, if any."""
        return {"rollbacks": self.rollback.rollbacks} if self.rollback.rollbacks else {}

    def advice(self) -> str | None:
        """Advice where there is nothing to choose, nothing in doubt, or a rollback."""
        if self.choiceless >= ADVICE_UPDATES:
            return (
                f"no agent had a choice in {ADVICE_UPDATES} updates: there was one task to take and no agent to "
                "exchange it with, so choices teach nothing here. Let agents idle (--assign-all False), or check what "
                "is allowed"
            )
        if self.certain >= ADVICE_UPDATES:
            return (
                "the noise hardly ever makes an agent choose otherwise, so there is little to learn from: raise "
                f"--ppo.sigma (now {self.settings.sigma})"
            )
        if not self.rollback.rollbacks:
            return None
        return (
            "the rewards fell below their best and stayed there, or all agents idled: the run goes on from its best "
            "state, with half the learning rates, as it will each time (rollbacks in the log). If that is often, lower "
            "--ppo.learning-rate or raise --ppo.entropy-coef"
        )

    def update(self, progress: float = 0.0) -> Metrics:
        """Collect rollouts, and take a step of critic and scoring model on each minibatch."""
        if self.spec.task_scores:
            self.actor.set_with_g(progress >= self.g_after or not g_is_zero(self.actor.parameters()))
        factor = cosine_decay(progress) * 0.5**self.rollback.rollbacks
        rollouts = self.collect()
        metrics = self.finish(rollouts, self._learn(rollouts, factor))
        self._watch(rollouts)
        return metrics

    def _learn(self, rollouts: Sequence[Rollout], factor: float) -> Metrics:
        """One epoch of minibatches, with learning rates times `factor`; mean losses, entropy and size of advantages."""
        settings, count = self.settings, self.settings.minibatches
        shares = [rollout.rewards.shape[1] / self.n_envs for rollout in rollouts]
        batches = [self._batch(rollout) for rollout in rollouts]
        self.critic.fit_unit(np.concatenate([batch.target for batch in batches]))
        orders = [np.array_split(self.rng.permutation(len(batch.target)), count) for batch in batches]
        metrics = {"value_loss": 0.0, "policy_loss": 0.0, "advantage": 0.0, "entropy": 0.0}
        for turn in range(count):
            value_loss = policy_loss = 0.0
            for batch, order, share in zip(batches, orders, shares, strict=True):
                if not len(order[turn]):
                    continue
                part = batch.take(order[turn])
                value_loss += share * self.critic.add_gradient(part.observation, part.target, share)[1]
                loss, entropy = self._choice_gradient(part, share)
                policy_loss += share * loss
                metrics["entropy"] += share * entropy / count
            check_loss("value loss", value_loss)
            check_loss("policy loss", policy_loss)
            self.critic.step(CRITIC_LEARNING_RATE * factor)
            self.actor.step(settings.learning_rate * factor)
            metrics["value_loss"] += value_loss / count
            metrics["policy_loss"] += policy_loss / count
        no_choice = metrics["entropy"] == 0 and not any(batch.able for batch in batches)
        self.choiceless = self.choiceless + 1 if no_choice else 0
        self.certain = self.certain + 1 if self.certain >= 0 and metrics["entropy"] < LEAST_ENTROPY else -1
        metrics["advantage"] = sum(share * batch.size for batch, share in zip(batches, shares, strict=True))
        return metrics

    def _batch(self, rollout: Rollout) -> ChoiceBatch:
        """The rollout with its value targets, advantages and the likelihood of each choice under the old policy."""
        values = self.critic(rollout.observation).reshape(rollout.rewards.shape)
        after = self.critic(rollout.after)
        returns = returns_of(rollout.rewards, rollout.ended, after, self.discount, values, self.settings.gae_lambda)
        return ChoiceBatch.of(rollout, self.inference, returns, returns - values, self.tau, self.exchanging)

    def _choice_gradient(self, batch: ChoiceBatch, share: float) -> tuple[float, float]:
        """Loss and mean entropy of the choices; adds the loss's gradient, weighted by the share of the slots."""
        settings = self.settings
        now = self.actor.forward(batch.observation)
        loss, entropy, slopes = batch.slopes(now, self.tau, settings.clip_range, settings.entropy_coef, share)
        limits = None
        if self.spec.learned:
            assert isinstance(self.actor, DirectActor)
            assert isinstance(self.actor.model, DirectModel)
            z, std = self.actor.model.limits(batch.observation), LIMIT_SIGMA / CORRELATED_STEPS
            limit_loss, limits = batch.limit_slopes(z, std, settings.clip_range, share)
            loss += limit_loss
        self.actor.backward(batch.observation, slopes, limits)
        return loss, entropy

    def _watch(self, rollouts: Sequence[Rollout]) -> None:
        """Keep the learned state while rewards are at their best; roll back to it when they have collapsed."""
        reward = float(np.mean([rollout.metrics["reward"] for rollout in rollouts]))
        std = float(np.mean([rollout.reward_std for rollout in rollouts]))
        episodes = sum(rollout.metrics["episodes"] for rollout in rollouts)
        verdict = self.rollback.update(reward, std, episodes, idle_share(rollouts))
        if verdict == "best":
            self.best = self.learned()
        elif verdict == "collapsed":
            self.set_learned(self.best)

    def get_state(self) -> State:
        """Checkpoint of networks, optimisers, environments and rollback."""
        arrays, plain = super().get_state()
        own = {"rollback": dict(vars(self.rollback)), "choiceless": self.choiceless, "certain": self.certain}
        return arrays | prefixed("best", self.best), plain | own

    def set_state(self, arrays: Arrays, plain: dict[str, Any]) -> None:
        """Restore the state that `get_state` returned."""
        super().set_state(arrays, plain)
        self.best = component(arrays, "best")
        vars(self.rollback).update(plain["rollback"])
        self.choiceless, self.certain = plain["choiceless"], plain["certain"]


def exchanges_count(task_scores: bool, n_agents: int) -> bool:
    """Whether exchanges of tasks count among the choices that are learned from.

    Their gradient moves h and not g, which lags behind where it is learned from the start: on rescue:5x10 with QUAD
    (1.5 CPU minutes, seeds 0 and 1, validation episodes) 9.53 and 9.52 steps with them, 9.50 and 9.41 without.
    """
    return not task_scores or n_agents > FEW_AGENTS


class Rollback:
    """Detects a collapse from the rewards of a run, update by update."""

    def __init__(self) -> None:
        self.recent: list[list[float]] = []
        """Mean reward, its standard deviation and the number of episodes of recent updates in which episodes ended."""
        self.best: float | None = None
        self.best_long: float | None = None
        self.std = 0.0
        self.below = self.idle = self.rollbacks = 0

    def update(self, reward: float, std: float, episodes: float, idle: float) -> Literal["best", "collapsed", ""]:
        """Verdict on the latest update; `idle` is the share of agents that took no task although they could."""
        self.idle = self.idle + 1 if idle > ALL_IDLE else 0
        if np.isfinite(reward) and np.isfinite(std):
            self.recent = [*self.recent[1 - DECLINE_WINDOW :], [reward, std, episodes]]
        if len(self.recent) < WINDOW:
            return ""
        declined = self._declined()
        rewards, stds, weights = np.array(self.recent[-WINDOW:]).T
        mean = float(np.average(rewards, weights=weights))
        if self.best is None or mean > self.best:
            self.best, self.std, self.below = mean, float(np.average(stds, weights=weights)), 0
            return "best"
        self.below = self.below + 1 if mean < self.best - COLLAPSE_STDS * self.std else 0
        all_idle = self.idle >= COLLAPSE_UPDATES // 4 and mean <= self.best - 0.1 * self.std
        if self.below < COLLAPSE_UPDATES and not all_idle and not declined:
            return ""
        self.rollbacks += 1
        self.recent, self.below, self.idle = [], 0, 0
        return "collapsed"

    def _declined(self) -> bool:
        """Whether the mean over DECLINE_WINDOW updates is significantly below its best."""
        if len(self.recent) < DECLINE_WINDOW:
            return False
        rewards, _, weights = np.array(self.recent).T
        mean = float(np.average(rewards, weights=weights))
        if self.best_long is None or mean > self.best_long:
            self.best_long = mean
        margin = max(DECLINE_STDS, DECLINE_ERRORS / float(np.sqrt(weights.sum()))) * self.std
        return mean < self.best_long - margin
