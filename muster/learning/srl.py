"""Structured reinforcement learning (Hoppe et al., 2025): learn what the better of several assignments have in common.

In each state noise on h makes the solver answer otherwise, K times; each answer is valued; the softmax of the values
weights the answers, and their weighted mean is the target of a Fenchel-Young loss (losses/fenchel_young.py). Its slopes
are the plain mean of the answers less the weighted one: what is better than usual becomes likelier, and nothing moves
where all answers have the same value. No gradient runs through the solver or through the environment.

Answers are valued by candidate rollouts on copies of the environment; a critic values what comes after them.
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
    prefixed,
    stream,
)
from muster.learning.losses.fenchel_young import Moments, slopes_of_model
from muster.learning.metrics import Metrics, combine
from muster.learning.optimiser import cosine_decay
from muster.learning.rollouts import Acting, Collector, Rollout, check_finite
from muster.models.direct import Parameters, Scores
from muster.models.spec import ModelSpec
from muster.policy.candidates import HeldNoise
from muster.policy.decision import Decision, Explore, decide
from muster.policy.noise import ScoreNoise
from muster.policy.settings import NoiseSettings
from muster.rng import Seeds
from muster.rollout import rollout

# What no recorded run has varied.
CANDIDATES = 8
"""Assignments valued in each state."""
SIGMA = 0.5
"""Standard deviation of the candidates' noise on h; times that of h at the start, where that is above 1."""
HOLD = 8
"""Decisions for which a candidate keeps its noise in a rollout."""
HORIZON = 10
"""Decisions of a candidate's rollout."""
SPACING = 4
"""Decisions between two updates."""
TEMPERATURE = 1.0
"""Of the softmax over the candidates' values, in standard deviations of a state's values."""
DISCOUNT = 0.999
LEARNING_RATE, CRITIC_LEARNING_RATE = 3e-3, 2e-3
"""At the start; a cosine takes them to 0."""
MAX_GRAD_NORM = 1.0
MEMORY = 0.99
"""Share of what is known of the values' standard deviation that an update keeps."""
ALIKE = 20
"""Updates in which all candidates have the same value, after which the user is told."""


class Valued(NamedTuple):
    """K assignments in each of S states, and what is learned of values there."""

    observation: BatchObservation
    answers: Ints
    """[K, S, N]"""
    values: Floats
    """[K, S]"""
    seen: BatchObservation
    """States, or assignments in them, whose returns are known,"""
    returns: Floats
    """and those returns."""
    metrics: Metrics
    """Of the episodes that ended meanwhile."""


class Candidates(NamedTuple):
    """K candidates in each of S states, tried out."""

    first: Ints
    """[K, S, N] their assignments in those states."""
    values: Floats
    """[K, S] their rewards, and the value of the state where they were cut off, discounted."""
    midway: BatchObservation
    """[K·S] of the copies after some decisions."""
    returns: Floats
    """[K·S] what was earned from there on."""
    going: Bools
    """[K·S] whether they had not ended by then."""
    steps: int
    """Environment steps."""


class CandidateRollouts:
    """Tries candidates on copies of the environment: scores with noise that is kept for a while.

    All candidates of a state have the same fresh random numbers: what they differ by is what they do, and none of them
    knows what chance will bring in the environment itself.
    """

    def __init__(self, env: BatchEnv, spec: ModelSpec, horizon: int = HORIZON, times: int = CANDIDATES) -> None:
        self.env, self.times, self.horizon = env, times, horizon
        self.copies = another(env, times * env.n_envs)
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
        """Every present state, once for each candidate; all candidates of a state with the same fresh seed [S]."""
        state = self.env.get_state()
        self.copies.set_state({name: np.concatenate([array] * self.times) for name, array in state.items()})
        self.copies.reseed(np.tile(seeds, self.times))

    def run(self, learner: SRL, noise: Floats32, rng: np.random.Generator) -> Candidates:
        """Noise is [K, S, N, M]."""
        copies, states = self.copies, self.env.n_envs
        self._copy(rng.integers(2**63, size=states, dtype=np.uint64))
        midway = int(rng.integers(self.horizon))
        size = copies.n_envs
        earned, factor = np.zeros(size), np.ones(size)
        active, terminated = np.ones(size, np.bool_), np.zeros(size, np.bool_)
        held = HeldNoise(noise.reshape(size, *noise.shape[2:]), copies.observe())
        made, kept = 0, {}

        def act(observation: BatchObservation) -> Ints:
            nonlocal made
            explore = None if made >= HOLD else lambda scores: held.add(scores, observation)
            decision = learner.decide(observation, explore)
            check_finite("score", decision.explored[0])
            if made in (0, midway):
                kept[made] = decision
            made += 1
            return decision.actions(copies.reads_reasons)

        steps, marks = 0, (earned, factor, active)
        for t, transition in enumerate(islice(rollout(copies, act, active), self.horizon)):
            running = np.zeros(size, np.bool_)
            running[transition.active] = True
            if t == midway:
                marks = earned.copy(), factor.copy(), running
            earned += factor * transition.result.reward
            steps += len(transition.active)
            factor[running] *= DISCOUNT
            terminated |= transition.result.terminated
        read = learner.spec.read
        # What was cut off, by the horizon or by the environment's step limit, would have gone on.
        values = earned + np.where(terminated, 0.0, factor * learner.critic(read(copies.observe())))
        so_far, since, going = marks
        reached = midway in kept
        return Candidates(
            first=kept[0].assignment.reshape(self.times, states, -1),
            values=values.reshape(self.times, states),
            midway=kept[midway if reached else 0].observation,
            returns=(values - so_far) / since,
            going=going if reached else np.zeros(size, np.bool_),
            steps=steps,
        )


def candidate_weights(values: Floats, temperature: float, usual: float) -> Floats:
    """Shares [K, S] of the candidates of S states in what is learned: softmax of value / (temperature · spread).

    The spread is that of a state's own values, at least half of it what is `usual`: where all candidates have nearly
    the same value, they have nearly the same share. With no spread at all every candidate has the same share.
    """
    own = values.std(axis=0)
    spread = np.sqrt(0.5 * (own**2 + usual**2))
    height = (values - values.max(axis=0)) / np.where(spread > 0, temperature * spread, 1.0)
    weights = np.exp(height)
    return weights / weights.sum(axis=0)


class SRL(Learner):
    """An update values the candidates of every state, learns, and goes on to the next states."""

    name = "srl"
    # Rows of its log are means of few episodes, and rates fall to 0: the last policy is the most settled one.
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
        """Standard deviation of the values of a state's candidates, as it usually is, in each environment."""
        self.alike = 0
        """Updates, up to the last, in which all candidates had the same value."""
        self._set_sigma(self._initial_sigma())

    def _initial_sigma(self) -> float:
        """The usual one, but no smaller beside the scores that the run begins with."""
        spreads = []
        for env in self.envs:
            observation = self.spec.read(env.observe())
            living = self.actor.scores(observation)[0][observation.pairs]
            spreads.append(float(living.std()) if living.size else 0.0)
        return SIGMA * max(1.0, float(np.mean(spreads)))

    def _noise(self, sigma: float) -> NoiseSettings:
        """Of exploration: far smaller than a candidate's, so that states are those of the policy, or near them."""
        return NoiseSettings(0.5 * sigma, HOLD, task_scores=False)

    def _set_sigma(self, sigma: float) -> None:
        self.sigma, self.noise = sigma, self._noise(sigma)
        for collector in self.collectors:
            env = collector.env
            collector.noise = ScoreNoise(self.noise, env.n_envs, env.n_agents, env.n_tasks, self.spec.task_scores)

    def parameters(self) -> Parameters:
        """Of the scoring model."""
        return self.actor.parameters()

    def start(self, parameters: Parameters) -> None:
        """Begin with these values."""
        self.actor.start(parameters)
        self._set_sigma(self._initial_sigma())

    def decide(self, observation: BatchObservation, explore: Explore | None = None) -> Decision:
        """One decision of the present policy."""
        return decide(observation, self.spec, self.actor.scores, self.solver, explore)

    def update(self, progress: float = 0.0) -> Metrics:
        """Value candidates, learn and go on, in every environment."""
        found = [self.value(k) for k in range(len(self.envs))]
        factor = cosine_decay(progress)
        self.alike = self.alike + 1 if all((one.values == one.values[0]).all() for one in found) else 0
        norm = self.learn(found, factor)
        loss = float(np.mean([self.learn_values(one, factor) for one in found]))
        metrics = combine(self.envs, [one.metrics for one in found])
        spread = float(np.mean(self.usual))
        return metrics | {"value_loss": loss, "policy_gradient": norm, "advantage": spread}

    def value(self, k: int) -> Valued:
        """The candidates of an environment's states and their values; the environment goes on."""
        env = self.envs[k]
        observation = self.spec.read(env.observe())
        tried = self.candidates[k].run(self, self.draw(env.n_envs, env.n_agents, env.n_tasks), self.rng)
        self.steps += tried.steps
        metrics = self.collect(k)
        going = np.flatnonzero(tried.going)
        return Valued(observation, tried.first, tried.values, tried.midway.take(going), tried.returns[going], metrics)

    def collect(self, k: int) -> Metrics:
        """Some decisions in every slot of an environment, with some noise; metrics of the episodes that ended."""
        collector = self.collectors[k]
        acting = Acting(self.spec, self.actor.scores, self.solver, self.critic, SPACING, DISCOUNT)
        part = collector.collect(acting, self.rng)
        self.steps += SPACING * self.envs[k].n_envs
        return Rollout.of([part], collector.buffers).metrics

    def draw(self, *shape: int) -> Floats32:
        """Noise of the candidates [K, S, N, M]."""
        return np.float32(self.sigma) * self.rng.standard_normal((CANDIDATES, *shape), np.float32)

    def learn(self, found: Sequence[Valued], factor: float) -> float:
        """One step of the scoring model; returns the norm of its gradient."""
        for k, one in enumerate(found):
            spread = float(np.sqrt(one.values.var(axis=0).mean()))
            self.usual[k] = MEMORY * self.usual[k] + (1 - MEMORY) * spread if self.usual[k] else spread
            weights = candidate_weights(one.values, TEMPERATURE, self.usual[k])
            self.actor.backward(one.observation, self.slopes(one, weights, len(found)))
        norm = self.actor.norm()
        self.actor.step(factor * LEARNING_RATE)
        return norm

    def slopes(self, one: Valued, weights: Floats, n_envs: int) -> Scores:
        """Of the mean loss whose target is the weighted mean of the answers, of which the plain mean is the sample."""
        alive, pairs = one.observation.pairs, self.spec.task_scores
        target, found = Moments.of(one.answers, alive, pairs, weights), Moments.of(one.answers, alive, pairs)
        states = np.float32(len(alive) * n_envs)
        slope_g = None if found.g is None or target.g is None else (found.g - target.g) / states
        return slopes_of_model(self.spec, one.observation, ((found.h - target.h) / states, slope_g))

    def learn_values(self, one: Valued, factor: float) -> float:
        """One step of the critic; returns its loss, in standard deviations of the returns."""
        if not len(one.returns):
            return 0.0
        self.critic.update_units(one.returns)
        _, loss = self.critic.add_gradient(one.seen, one.returns)
        self.critic.step(factor * CRITIC_LEARNING_RATE)
        return loss / self.critic.unit

    def advice(self) -> str | None:
        """What to do where all candidates have the same value."""
        if self.alike != ALIKE:
            return None
        return (
            f"all {CANDIDATES} candidates of every state had exactly the same value in {ALIKE} updates in a row, so "
            f"there is nothing to learn from: rewards come later than {HORIZON} decisions, or no candidate decides "
            "otherwise. Use --learner ppo or es"
        )

    def get_state(self) -> State:
        """Everything needed to go on bit for bit."""
        arrays = prefixed("actor", self.actor.get_state()) | prefixed("critic", self.critic.get_state())
        states = [collector.get_state() for collector in self.collectors]
        for k, (of_env, _) in enumerate(states):
            arrays |= prefixed(f"environment{k}", of_env)
        plain = {"rng": self.rng.bit_generator.state, "steps": self.steps, "alike": self.alike, "sigma": self.sigma}
        return arrays, plain | {"environments": [plain for _, plain in states], "usual": self.usual}

    def set_state(self, arrays: Arrays, plain: dict[str, Any]) -> None:
        """Go on from what `get_state` returned."""
        self.actor.set_state(component(arrays, "actor"))
        self.critic.set_state(component(arrays, "critic"))
        self._set_sigma(plain["sigma"])
        for k, (collector, of_env) in enumerate(zip(self.collectors, plain["environments"], strict=True)):
            collector.set_state(component(arrays, f"environment{k}"), of_env)
        self.rng.bit_generator.state, self.steps = plain["rng"], plain["steps"]
        self.alike, self.usual = plain["alike"], list(plain["usual"])
