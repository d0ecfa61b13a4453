"""Structured reinforcement learning (Hoppe et al., 2025): learn towards the better of several candidate assignments.

In each state the solver answers K perturbed problems h + noise. With values v_k of the answers y_k, the target of a
Fenchel-Young loss (losses/fenchel_young.py) is their weighted mean, and the loss has the slopes

    dL/dh = mean of y_k - sum over k of softmax(v / temperature)_k · y_k

so better answers become likelier, and nothing moves where all values are equal. No gradient runs through the solver or
the environment. Values are returns of candidate rollouts on copies of the environment, with a critic at their horizon.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from muster.data import BatchObservation, Bools, Floats, Floats32, Ints
from muster.envs.registry import another
from muster.envs.vector import BatchEnv
from muster.errors import InputError, MusterError
from muster.learning.actor import DirectActor
from muster.learning.critic import Critic
from muster.learning.learner import (
    CRITIC,
    WEIGHTS,
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
from muster.learning.losses.fenchel_young import Moments, slopes_of_model
from muster.learning.metrics import Metrics, combine
from muster.learning.optimiser import cosine_decay
from muster.learning.rollouts import Acting, Collector, Rollout, check_finite
from muster.models.spec import ModelSpec, Parameters, Scores
from muster.policy.candidates import HeldNoise
from muster.policy.decision import Decision, Explore, decide
from muster.policy.noise import ScoreNoise
from muster.policy.settings import NoiseSettings
from muster.rng import Seeds
from muster.rollout import rollout

# Constants rather than settings: no recorded run has varied them.
CANDIDATES = 8
"""K, assignments valued in each state."""
SIGMA = 0.5
"""Standard deviation of the candidates' noise on h; multiplied by that of the initial h where it is above 1."""
HOLD = 8
"""Decisions of a rollout for which a candidate keeps its noise."""
HORIZON = 10
"""Decisions of a candidate's rollout."""
SPACING = 4
"""Decisions of the policy between two updates."""
TEMPERATURE = 1.0
"""Temperature of the softmax over the candidates' values, in standard deviations of a state's values."""
DISCOUNT = 0.999
LEARNING_RATE, CRITIC_LEARNING_RATE = 3e-3, 2e-3
"""Initial values of a cosine schedule that ends at 0."""
MAX_GRAD_NORM = 1.0
MEMORY = 0.99
"""Decay of the running standard deviation of the values."""
ALIKE = 20
"""Updates with equal values of all candidates, after which the user gets advice."""


class Experience(NamedTuple):
    """K valued assignments in each of S states, and targets of the critic."""

    observation: BatchObservation
    assignments: Ints
    """[K, S, N]"""
    values: Floats
    """[K, S]"""
    critic_states: BatchObservation
    """States of the rollouts in which the critic learns,"""
    returns: Floats
    """and their returns."""
    metrics: Metrics
    """Metrics of the episodes that ended meanwhile."""


class CandidateReturns(NamedTuple):
    """Result of the rollouts of K candidates in each of S states."""

    first: Ints
    """[K, S, N] first assignments."""
    values: Floats
    """[K, S] discounted returns, with the critic's value at the horizon."""
    midway: BatchObservation
    """[K·S] observations of the copies after a random number of decisions."""
    returns: Floats
    """[K·S] returns from there on."""
    going: Bools
    """[K·S] whether the episode was still under way there."""
    steps: int
    """Environment steps."""


class CandidateRollouts:
    """Rollouts of candidates, scores with noise held for HOLD decisions, on copies of the environment.

    All candidates of a state have common random numbers, which are not those of the environment itself: values differ
    by the decisions alone, and no candidate knows the future.
    """

    def __init__(self, env: BatchEnv, spec: ModelSpec, horizon: int = HORIZON, candidates: int = CANDIDATES) -> None:
        self.env, self.candidates, self.horizon = env, candidates, horizon
        self.copies = another(env, candidates * env.n_envs)
        self.copies.show(**spec.shown)
        self.copies.threads = env.threads
        try:
            self._copy(np.zeros(env.n_envs, np.uint64))
        except (MusterError, NotImplementedError) as why:
            raise InputError(
                f"candidates are tried on copies of the environment with fresh random numbers, and {env.name} cannot "
                f"be copied so: {why}. Use --learner ppo or es"
            ) from None

    def _copy(self, seeds: Seeds) -> None:
        """Copy every present state for each candidate; the copies of a state have the same new seed [S]."""
        state = self.env.get_state()
        self.copies.set_state({name: np.concatenate([array] * self.candidates) for name, array in state.items()})
        self.copies.reseed(np.tile(seeds, self.candidates))

    def run(self, learner: SRL, noise: Floats32, rng: np.random.Generator) -> CandidateReturns:
        """Roll the candidates out, each with its noise [K, S, N, M] on h."""
        copies, states = self.copies, self.env.n_envs
        self._copy(rng.integers(2**63, size=states, dtype=np.uint64))
        midway = int(rng.integers(self.horizon))
        size = copies.n_envs
        returns, discount = np.zeros(size), np.ones(size)
        active, terminated = np.ones(size, np.bool_), np.zeros(size, np.bool_)
        held = HeldNoise(noise.reshape(size, *noise.shape[2:]), copies.observe())
        decisions: list[Decision | None] = []

        def act(observation: BatchObservation) -> Ints:
            explore = None if len(decisions) >= HOLD else lambda scores: held.add(scores, observation)
            decision = learner.decide(observation, explore)
            check_finite("score", decision.explored[0])
            decisions.append(decision if len(decisions) in (0, midway) else None)
            return decision.actions(copies.reads_reasons)

        steps, midway_returns, midway_discount, going = 0, returns, discount, np.zeros(size, np.bool_)
        for t, transition in enumerate(islice(rollout(copies, act, active), self.horizon)):
            running = np.zeros(size, np.bool_)
            running[transition.active] = True
            if t == midway:
                midway_returns, midway_discount, going = returns.copy(), discount.copy(), running
            returns += discount * transition.result.reward
            steps += len(transition.active)
            discount[running] *= DISCOUNT
            terminated |= transition.result.terminated
        # Bootstrap where the horizon or the environment's step limit cut an episode off.
        values = returns + np.where(terminated, 0.0, discount * learner.critic(learner.spec.read(copies.observe())))
        first, at_midway = decisions[0], decisions[min(midway, len(decisions) - 1)]
        assert first is not None
        return CandidateReturns(
            first=first.assignment.reshape(self.candidates, states, -1),
            values=values.reshape(self.candidates, states),
            midway=(at_midway or first).observation,
            returns=(values - midway_returns) / midway_discount,
            going=going,
            steps=steps,
        )


def candidate_weights(values: Floats, temperature: float, usual: float) -> Floats:
    """Weights [K, S] of the candidates of S states: softmax over K of value / (temperature · spread).

    spread² is the mean of the state's own variance and `usual`²: where all candidates have nearly the same value, they
    have nearly the same weight. With no spread at all the weights are equal.
    """
    own = values.std(axis=0)
    spread = np.sqrt(0.5 * (own**2 + usual**2))
    logits = (values - values.max(axis=0)) / np.where(spread > 0, temperature * spread, 1.0)
    weights = np.exp(logits)
    return weights / weights.sum(axis=0)


class SRL(Learner):
    """Structured RL: an update values the candidates of every state, learns, and advances the environments."""

    name = "srl"
    # Rewards of the log are means of few episodes, and learning rates fall to 0: the last policy is the best estimate.
    last_is_best = True

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.actor = DirectActor(self.spec, stream(self.seed, WEIGHTS), MAX_GRAD_NORM)
        self.critic = Critic(self.spec, stream(self.seed, CRITIC), MAX_GRAD_NORM)
        self.collectors = [
            Collector(env, SlotEpisodes(env.n_envs, self.seed, k), self._noise(SIGMA), self.spec.task_scores)
            for k, env in enumerate(self.envs)
        ]
        self.candidates = [CandidateRollouts(env, self.spec) for env in self.envs]
        self.usual = [0.0] * len(self.envs)
        """Running standard deviation of the values of a state's candidates, in each environment."""
        self.alike = 0
        """Consecutive updates, up to the last, in which all candidates had the same value."""
        self._set_sigma(self._initial_sigma())

    def _initial_sigma(self) -> float:
        """SIGMA, multiplied by the standard deviation of the initial scores where that is above 1."""
        spreads = []
        for env in self.envs:
            observation = self.spec.read(env.observe())
            living = self.actor.scores(observation)[0][observation.pairs]
            spreads.append(float(living.std()) if living.size else 0.0)
        return SIGMA * max(1.0, float(np.mean(spreads)))

    def _noise(self, sigma: float) -> NoiseSettings:
        """Exploration noise between updates: far smaller than a candidate's, so that states stay near the policy's."""
        return NoiseSettings(0.5 * sigma, HOLD, task_scores=False)

    def _set_sigma(self, sigma: float) -> None:
        self.sigma, self.noise = sigma, self._noise(sigma)
        for collector in self.collectors:
            env = collector.env
            collector.noise = ScoreNoise(self.noise, env.n_envs, env.n_agents, env.n_tasks, self.spec.task_scores)

    def parameters(self) -> Parameters:
        """Copies of the scoring model's parameters."""
        return self.actor.parameters()

    def start(self, parameters: Parameters) -> None:
        """Set the scoring model's parameters, before the first update."""
        self.actor.start(parameters)
        self._set_sigma(self._initial_sigma())

    def decide(self, observation: BatchObservation, explore: Explore | None = None) -> Decision:
        """Decisions of the present policy."""
        return decide(observation, self.spec, self.actor.scores, self.solver, explore)

    def update(self, progress: float = 0.0) -> Metrics:
        """Value candidates and advance every environment, then take a step of scoring model and critic."""
        batch = [self.value(k) for k in range(len(self.envs))]
        factor = cosine_decay(progress)
        self.alike = self.alike + 1 if all((one.values == one.values[0]).all() for one in batch) else 0
        norm = self.learn(batch, factor)
        loss = float(np.mean([self.learn_values(experience, factor) for experience in batch]))
        metrics = combine(self.envs, [experience.metrics for experience in batch])
        spread = float(np.mean(self.usual))
        return metrics | {"value_loss": loss, "policy_gradient": norm, "advantage": spread}

    def value(self, k: int) -> Experience:
        """Valued candidates of environment k's present states; the environment then advances."""
        env = self.envs[k]
        observation = self.spec.read(env.observe())
        rollouts = self.candidates[k].run(self, self.draw(env.n_envs, env.n_agents, env.n_tasks), self.rng)
        self.steps += rollouts.steps
        metrics = self.collect(k)
        going = np.flatnonzero(rollouts.going)
        targets = rollouts.midway.take(going), rollouts.returns[going]
        return Experience(observation, rollouts.first, rollouts.values, *targets, metrics)

    def collect(self, k: int) -> Metrics:
        """SPACING decisions with noise in every slot of environment k; metrics of the episodes that ended."""
        collector = self.collectors[k]
        acting = Acting(self.spec, self.actor.scores, self.solver, self.critic, SPACING, DISCOUNT)
        part = collector.collect(acting, self.rng)
        self.steps += SPACING * self.envs[k].n_envs
        return Rollout.of([part], collector.buffers).metrics

    def draw(self, *shape: int) -> Floats32:
        """Noise of the candidates on h [K, S, N, M]."""
        return np.float32(self.sigma) * self.rng.standard_normal((CANDIDATES, *shape), np.float32)

    def learn(self, batch: Sequence[Experience], factor: float) -> float:
        """One step of the scoring model; returns the norm of its gradient."""
        for k, experience in enumerate(batch):
            spread = float(np.sqrt(experience.values.var(axis=0).mean()))
            self.usual[k] = MEMORY * self.usual[k] + (1 - MEMORY) * spread if self.usual[k] else spread
            weights = candidate_weights(experience.values, TEMPERATURE, self.usual[k])
            self.actor.backward(experience.observation, self.slopes(experience, weights, len(batch)))
        norm = self.actor.norm()
        self.actor.step(factor * LEARNING_RATE)
        return norm

    def slopes(self, experience: Experience, weights: Floats, n_envs: int) -> Scores:
        """Slopes in h and g of the mean Fenchel-Young loss: plain mean of the assignments minus the weighted one."""
        alive, pairs = experience.observation.pairs, self.spec.task_scores
        target = Moments.of(experience.assignments, alive, pairs, weights)
        mean = Moments.of(experience.assignments, alive, pairs)
        states = np.float32(len(alive) * n_envs)
        slope_g = None if mean.g is None or target.g is None else (mean.g - target.g) / states
        return slopes_of_model(self.spec, experience.observation, ((mean.h - target.h) / states, slope_g))

    def learn_values(self, experience: Experience, factor: float) -> float:
        """One step of the critic; returns its loss, in standard deviations of the returns."""
        if not len(experience.returns):
            return 0.0
        self.critic.update_units(experience.returns)
        _, loss = self.critic.add_gradient(experience.critic_states, experience.returns)
        self.critic.step(factor * CRITIC_LEARNING_RATE)
        return loss / self.critic.unit

    def advice(self) -> str | None:
        """Advice where all candidates have the same value."""
        if self.alike != ALIKE:
            return None
        return (
            f"all {CANDIDATES} candidates of every state had exactly the same value in {ALIKE} updates in a row, so "
            f"there is nothing to learn from: rewards come later than {HORIZON} decisions, or no candidate decides "
            "otherwise. Use --learner ppo or es"
        )

    def get_state(self) -> State:
        """Checkpoint of networks, optimisers, environments and random generator."""
        arrays = prefixed("actor", self.actor.get_state()) | prefixed("critic", self.critic.get_state())
        env_arrays, env_values = join_states([collector.get_state() for collector in self.collectors])
        plain = {"rng": self.rng.bit_generator.state, "steps": self.steps, "alike": self.alike, "sigma": self.sigma}
        return arrays | env_arrays, plain | {"environments": env_values, "usual": self.usual}

    def set_state(self, arrays: Arrays, plain: dict[str, Any]) -> None:
        """Restore the state that `get_state` returned."""
        self.actor.set_state(component(arrays, "actor"))
        self.critic.set_state(component(arrays, "critic"))
        self._set_sigma(plain["sigma"])
        for collector, state in zip(self.collectors, split_states(arrays, plain["environments"]), strict=True):
            collector.set_state(*state)
        self.rng.bit_generator.state, self.steps = plain["rng"], plain["steps"]
        self.alike, self.usual = plain["alike"], list(plain["usual"])
