"""A2C as in the paper (Algorithms 1 and 2): the action is the scores themselves, with correlated noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from muster.data import BatchObservation, Bools, Floats, Floats32
from muster.learning.actor import Actor
from muster.learning.critic import Critic
from muster.learning.learner import CRITIC, Arrays, Learner, Setup, SlotEpisodes, State, component, prefixed, stream
from muster.learning.metrics import Metrics, combine
from muster.learning.optimiser import TrainingError
from muster.learning.parallel_rollouts import ParallelCollectors
from muster.learning.rollouts import Acting, Collector, Rollout
from muster.learning.settings import A2CSettings, PPOSettings
from muster.learning.workers import WorkerPool
from muster.models.direct import DirectModel, Parameters
from muster.models.limits import NETWORKS

SMALLEST_RATIO, LARGEST_RATIO = 1e-6, 10.0
"""Bounds of the importance ratio, as in the authors' code."""


class ActorCritic(Learner):
    """Collects rollouts with noise on the scores, here or by workers, and learns scoring model and critic from them."""

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
        heads = [NETWORKS[what] for what in self.spec.learned]
        self.collectors = [
            Collector(env, SlotEpisodes(env.n_envs, self.seed, k), self.noise, self.spec.task_scores, heads)
            for k, env in enumerate(self.envs)
        ]
        self.parallel = ParallelCollectors(pool, self.collectors) if pool else None
        self.n_envs = sum(env.n_envs for env in self.envs)

    def parameters(self) -> Parameters:
        """Of the scoring model."""
        return self.actor.parameters()

    def start(self, parameters: Parameters) -> None:
        """Begin with these values."""
        self.actor.start(parameters)

    def values(self, observation: BatchObservation) -> Floats32:
        """[B] of the critic, in the precision in which workers know them."""
        return self.critic(observation).astype(np.float32)

    def collect(self) -> list[Rollout]:
        """A rollout of every environment."""
        actor = self.actor
        if self.parallel:
            rollouts = self.parallel.collect(actor.parameters(), actor.with_g, self.critic.parameters(), self.rng)
        else:
            model = getattr(actor, "model", None)
            limits = model.limits if self.spec.learned and isinstance(model, DirectModel) else None
            length = self.rollout_length, self.discount
            acting = Acting(self.spec, actor.scores, self.solver, self.values, *length, self.keep_history, limits)
            rollouts = [Rollout.of([one.collect(acting, self.rng)], one.buffers) for one in self.collectors]
        self.steps += self.rollout_length * self.n_envs
        return rollouts

    def finish(self, rollouts: Sequence[Rollout], losses: Metrics) -> Metrics:
        """After the steps of the optimisers: let statistics follow the states; the metrics of the update."""
        for rollout in rollouts:
            self.actor.see(rollout.last)
        return combine(self.envs, [rollout.metrics for rollout in rollouts]) | losses

    def get_state(self) -> State:
        """Everything needed to go on bit for bit."""
        arrays = self.learned()
        states = self.parallel.get_state() if self.parallel else [one.get_state() for one in self.collectors]
        for k, (of_env, _) in enumerate(states):
            arrays |= prefixed(f"environment{k}", of_env)
        plain = {"rng": self.rng.bit_generator.state, "steps": self.steps}
        return arrays, plain | {"environments": [plain for _, plain in states]}

    def set_state(self, arrays: Arrays, plain: dict[str, Any]) -> None:
        """Go on from what `get_state` returned."""
        self.set_learned(arrays)
        for k, (collector, of_env) in enumerate(zip(self.collectors, plain["environments"], strict=True)):
            collector.set_state(component(arrays, f"environment{k}"), of_env)
        if self.parallel:
            self.parallel.set_state()
        self.rng.bit_generator.state, self.steps = plain["rng"], plain["steps"]

    def learned(self) -> Arrays:
        """Copies of parameters, statistics and the optimisers' memories; and the critic's values, for look-ahead."""
        arrays = prefixed("actor", self.actor.get_state()) | prefixed("critic_state", self.critic.get_state())
        return arrays | prefixed("critic", self.critic.parameters())

    def set_learned(self, arrays: Arrays) -> None:
        """Go on from what `learned` returned."""
        self.actor.set_state(component(arrays, "actor"))
        self.critic.set_state(component(arrays, "critic_state"))


class A2C(ActorCritic):
    """One step on every rollout, with n-step returns and the likelihood of the explored scores."""

    name = "a2c"

    def __init__(self, setup: Setup, settings: A2CSettings, pool: WorkerPool | None = None) -> None:
        actor = setup.make_actor(method=settings.optimiser)
        critic = Critic(setup.spec, stream(setup.seed, CRITIC), method=settings.optimiser)
        super().__init__(setup, settings, actor, critic, pool)
        self.settings = settings

    def update(self, progress: float = 0.0) -> Metrics:
        """Collect rollouts, and one step of critic and scoring model."""
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
        """Loss of the policy; adds its gradient, times lambda and the environment's share of the slots."""
        seen = rollout.observation
        now = self.actor.forward(seen)
        weight = np.float32(share * self.settings.policy_weight)
        total = 0.0
        slopes: list[Floats32 | None] = []
        there = seen.pairs, seen.task_pairs
        for mean, alive, old, explored in zip(now, there, rollout.scores, rollout.explored, strict=True):
            if mean is None or old is None or explored is None:
                slopes.append(None)
                continue
            loss, slope = explored_slopes(mean, old, explored, alive, advantage, self.settings.sigma)
            total += loss
            slopes.append(weight * slope)
        assert slopes[0] is not None
        self.actor.backward(seen, (slopes[0], slopes[1]))
        return total


def explored_slopes(
    mean: Floats32, old: Floats32, explored: Floats32, alive: Bools, advantage: Floats32, sigma: float
) -> tuple[float, Floats32]:
    """Loss -mean over states of advantage · sum over living pairs of ratio·log N(explored; mean, sigma); its slopes.

    ratio is that of the likelihoods under the present scores and under the `old` ones that acted, clamped; no
    gradient runs through it.
    """
    off = explored - mean
    likelihood = -0.5 * (off / np.float32(sigma)) ** 2
    before = -0.5 * ((explored - old) / np.float32(sigma)) ** 2
    ratio = np.clip(np.exp(likelihood - before), SMALLEST_RATIO, LARGEST_RATIO)
    gain = ratio * alive * advantage[:, None, None]
    loss = -float((gain * likelihood).sum(axis=(1, 2), dtype=np.float64).mean())
    return loss, (-gain * off / np.float32(sigma * sigma * len(mean))).astype(np.float32)


def returns_of(
    rewards: Floats, ended: Bools, after: Floats, discount: float, values: Floats | None = None, gae_lambda: float = 1.0
) -> Floats:
    """R_t = r_t + discount·((1 - lambda)·V_{t+1} + lambda·R_{t+1}), or r_t where the episode ended; R_T = V_T = after.

    rewards, ended and values, those of the states decided in, are [T, B], after is [B]. With lambda 1 these are n-step
    returns, for which values are not needed; less the values they are generalised advantage estimates. A truncated
    step's reward must already hold the value of its last state.
    """
    returns = np.empty_like(rewards)
    following = after
    for t in reversed(range(len(rewards))):
        if values is not None and t + 1 < len(rewards):
            following = (1.0 - gae_lambda) * values[t + 1] + gae_lambda * following
        following = rewards[t] + discount * np.where(ended[t], 0.0, following)
        returns[t] = following
    return returns


def check_loss(name: str, loss: float) -> None:
    """Raise TrainingError if a loss is not finite."""
    if not np.isfinite(loss):
        raise TrainingError(f"the {name} became {loss}; lower the learning rate or sigma")
