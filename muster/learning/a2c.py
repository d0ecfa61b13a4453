"""A2C as in the paper (Algorithms 1 and 2): the action is the scores themselves, with correlated noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from muster.data import BatchObservation, Bools, Floats, Floats32
from muster.learning.actor import Actor
from muster.learning.critic import Critic
from muster.learning.learner import (
    CRITIC,
    Arrays,
    Learner,
    Setup,
    SlotEpisodes,
    State,
    component,
    join_states,
    prefixed,
    split_states,
    stream,
)
from muster.learning.metrics import Metrics, combine
from muster.learning.optimiser import TrainingError
from muster.learning.parallel_rollouts import ParallelCollectors
from muster.learning.rollouts import Acting, Collector, Rollout
from muster.learning.settings import A2CSettings, PPOSettings
from muster.learning.workers import WorkerPool
from muster.models.direct import DirectModel
from muster.models.limits import NETWORKS
from muster.models.spec import Parameters

SMALLEST_RATIO, LARGEST_RATIO = 1e-6, 10.0
"""Clamp of the importance ratio, as in the authors' code."""


class ActorCritic(Learner):
    """Base of A2C and PPO: collects rollouts with noise on the scores, in this process or by workers."""

    keep_history: ClassVar[bool] = False

    def __init__(
        self,
        setup: Setup,
        settings: A2CSettings | PPOSettings,
        actor: Actor,
        critic: Critic,
        pool: WorkerPool | None = None,
    ) -> None:
        super().__init__(setup)
        self.noise, self.actor, self.critic = settings.noise, actor, critic
        self.discount, self.rollout_length = settings.discount, settings.rollout_length
        heads = [NETWORKS[limit] for limit in self.spec.learned]
        self.collectors = [
            Collector(env, SlotEpisodes(env.n_envs, self.seed, k), self.noise, self.spec.task_scores, heads)
            for k, env in enumerate(self.envs)
        ]
        self.parallel = ParallelCollectors(pool, self.collectors) if pool else None
        self.n_envs = sum(env.n_envs for env in self.envs)

    def parameters(self) -> Parameters:
        """Copies of the scoring model's parameters."""
        return self.actor.parameters()

    def start(self, parameters: Parameters) -> None:
        """Set the scoring model's parameters, before the first update."""
        self.actor.start(parameters)

    def values(self, observation: BatchObservation) -> Floats32:
        """[B] values of the critic in single precision, as workers compute them."""
        return self.critic(observation).astype(np.float32)

    def collect(self) -> list[Rollout]:
        """One rollout of every environment."""
        actor = self.actor
        if self.parallel:
            rollouts = self.parallel.collect(actor.parameters(), actor.with_g, self.critic.parameters(), self.rng)
        else:
            model = getattr(actor, "model", None)
            limits = model.limits if self.spec.learned and isinstance(model, DirectModel) else None
            acting = Acting(
                spec=self.spec,
                scorer=actor.scores,
                solver=self.solver,
                values=self.values,
                steps=self.rollout_length,
                discount=self.discount,
                keep_history=self.keep_history,
                limits=limits,
            )
            rollouts = [Rollout.of([part.collect(acting, self.rng)], part.buffers) for part in self.collectors]
        self.steps += self.rollout_length * self.n_envs
        return rollouts

    def finish(self, rollouts: Sequence[Rollout], losses: Metrics) -> Metrics:
        """Metrics of the update, after the optimisers' steps; updates running statistics (BatchNorm)."""
        for rollout in rollouts:
            self.actor.update_statistics(rollout.last)
        return combine(self.envs, [rollout.metrics for rollout in rollouts]) | losses

    def get_state(self) -> State:
        """Checkpoint of networks, optimisers and environments."""
        arrays = self.learned()
        states = self.parallel.get_state() if self.parallel else [part.get_state() for part in self.collectors]
        env_arrays, env_values = join_states(states)
        values = {"rng": self.rng.bit_generator.state, "steps": self.steps, "environments": env_values}
        return arrays | env_arrays, values

    def set_state(self, arrays: Arrays, plain: dict[str, Any]) -> None:
        """Restore the state that `get_state` returned."""
        self.set_learned(arrays)
        for collector, state in zip(self.collectors, split_states(arrays, plain["environments"]), strict=True):
            collector.set_state(*state)
        if self.parallel:
            self.parallel.set_state()
        self.rng.bit_generator.state, self.steps = plain["rng"], plain["steps"]

    def learned(self) -> Arrays:
        """Copies of actor and critic with their optimisers; and the critic's parameters alone, for look-ahead."""
        arrays = prefixed("actor", self.actor.get_state()) | prefixed("critic_state", self.critic.get_state())
        return arrays | prefixed("critic", self.critic.parameters())

    def set_learned(self, arrays: Arrays) -> None:
        """Restore actor and critic from what `learned` returned."""
        self.actor.set_state(component(arrays, "actor"))
        self.critic.set_state(component(arrays, "critic_state"))


class A2C(ActorCritic):
    """One gradient step on every rollout, with n-step returns and the likelihood of the noisy scores."""

    name = "a2c"

    def __init__(self, setup: Setup, settings: A2CSettings, pool: WorkerPool | None = None) -> None:
        actor = setup.make_actor(method=settings.optimiser)
        critic = Critic(setup.spec, stream(setup.seed, CRITIC), method=settings.optimiser)
        super().__init__(setup, settings, actor, critic, pool)
        self.settings = settings

    def update(self, progress: float = 0.0) -> Metrics:
        """Collect rollouts, and take one step of critic and scoring model."""
        del progress
        rollouts = self.collect()
        losses = {"value_loss": 0.0, "policy_loss": 0.0, "advantage": 0.0}
        shares = [rollout.rewards.shape[1] / self.n_envs for rollout in rollouts]
        advantages: list[Floats32] = []
        for rollout, share in zip(rollouts, shares, strict=True):
            after = self.critic(rollout.after)
            returns = returns_of(rollout.rewards, rollout.ended, after, self.discount)
            target = returns.reshape(-1).astype(np.float32)
            values, loss = self.critic.add_gradient(rollout.observation, target, share)
            advantages.append(target - values.astype(np.float32))
            losses["value_loss"] += share * loss
            losses["advantage"] += share * float(np.abs(advantages[-1]).mean())
        check_loss("value loss", losses["value_loss"])
        self.critic.step(self.settings.critic_learning_rate)
        for rollout, share, advantage in zip(rollouts, shares, advantages, strict=True):
            losses["policy_loss"] += share * self._policy_gradient(rollout, advantage, share)
        check_loss("policy loss", losses["policy_loss"])
        self.actor.step(self.settings.learning_rate)
        return self.finish(rollouts, losses)

    def _policy_gradient(self, rollout: Rollout, advantage: Floats32, share: float) -> float:
        """Policy loss; adds its gradient, weighted by lambda and the environment's share of the slots."""
        observation = rollout.observation
        means = self.actor.forward(observation)
        weight = np.float32(share * self.settings.policy_weight)
        total = 0.0
        slopes: list[Floats32 | None] = []
        masks = observation.pairs, observation.task_pairs
        for mean, alive, old, explored in zip(means, masks, rollout.scores, rollout.explored, strict=True):
            if mean is None or old is None or explored is None:
                slopes.append(None)
                continue
            loss, slope = explored_slopes(mean, old, explored, alive, advantage, self.settings.sigma)
            total += loss
            slopes.append(weight * slope)
        assert slopes[0] is not None
        self.actor.backward(observation, (slopes[0], slopes[1]))
        return total


def explored_slopes(
    mean: Floats32, old: Floats32, explored: Floats32, alive: Bools, advantage: Floats32, sigma: float
) -> tuple[float, Floats32]:
    """Loss L = -mean over states of A · sum over living pairs of ratio · log N(explored; mean, sigma), and its slopes.

    ratio = N(explored; mean, sigma) / N(explored; old, sigma), clamped and without a gradient; `old` are the scores of
    the policy that acted, A is the advantage.
    """
    residual = explored - mean
    log_likelihood = -0.5 * (residual / np.float32(sigma)) ** 2
    old_log_likelihood = -0.5 * ((explored - old) / np.float32(sigma)) ** 2
    ratio = np.clip(np.exp(log_likelihood - old_log_likelihood), SMALLEST_RATIO, LARGEST_RATIO)
    gain = ratio * alive * advantage[:, None, None]
    loss = -float((gain * log_likelihood).sum(axis=(1, 2), dtype=np.float64).mean())
    return loss, (-gain * residual / np.float32(sigma * sigma * len(mean))).astype(np.float32)


def returns_of(
    rewards: Floats, ended: Bools, after: Floats, discount: float, values: Floats | None = None, gae_lambda: float = 1.0
) -> Floats:
    """TD(lambda) returns R_t = r_t + discount·((1 - lambda)·V_{t+1} + lambda·R_{t+1}), or r_t where the episode ended.

    rewards, ended and values V_0 .. V_{T-1} are [T, B]; `after` [B] is R_T = V_T. R_t - V_t is the generalised
    advantage estimate. With lambda 1 these are n-step returns, which need no values. The reward of a truncated step
    must include discount·V of the episode's last state.
    """
    returns = np.empty_like(rewards)
    next_return = after
    for t in reversed(range(len(rewards))):
        if values is not None and t + 1 < len(rewards):
            next_return = (1.0 - gae_lambda) * values[t + 1] + gae_lambda * next_return
        next_return = rewards[t] + discount * np.where(ended[t], 0.0, next_return)
        returns[t] = next_return
    return returns


def check_loss(name: str, loss: float) -> None:
    """Raise TrainingError if a loss is not finite."""
    if not np.isfinite(loss):
        raise TrainingError(f"the {name} became {loss}; lower the learning rate or sigma")
