"""Structured reinforcement learning (Hoppe et al., 2025): learn what the better of several assignments have in common.

In each state noise on h makes the solver answer otherwise, K times; each answer is valued; the softmax of the values
weighs the answers, and their weighted mean is the target of a Fenchel-Young loss (fenchel_young.py). Its slopes are the
plain mean of the answers less the weighted one: what is better than usual becomes likelier, and nothing moves where all
answers are worth the same. No gradient runs through the solver or through the environment.

Answers are valued by rollouts on copies of the env, cut by a critic (trials.py), or by a critic of assignments alone.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from muster.assign.settings import InferenceSettings
from muster.assign.solver import Solver
from muster.data import BatchObservation, Floats, Floats32, Ints
from muster.envs.vector import BatchEnv
from muster.learning.critic import Critic, with_choices
from muster.learning.episodes import CRITIC, EXPLORATION, WEIGHTS, stream
from muster.learning.fenchel_young import Moments, slopes_of_model, solve_perturbed
from muster.learning.learner_settings import SRLSettings
from muster.learning.optimiser import Descent, rate_factor
from muster.learning.parts import part, under
from muster.learning.returns import traced_returns
from muster.learning.rollouts import Manner, Rollout, Worker, check_finite, take
from muster.learning.tally import Figures, combine
from muster.learning.trials import Player, Trials
from muster.models.direct import DirectModel, Parameters, Scores, init_parameters
from muster.models.gradient import score_gradient
from muster.models.spec import ModelSpec
from muster.policy.decision import Decision, alive_pairs, decide
from muster.policy.learned import LearnedPolicy
from muster.policy.noise import ScoreNoise

MEMORY = 0.99
"""Share of what is known of the values' spread that an update keeps."""
TRACE = 0.95
"""TD(lambda)'s share of the longer returns, for a critic of assignments."""
ALIKE = 20
"""Updates in which all candidates are worth the same, after which it is time to say so."""


class Valued(NamedTuple):
    """K assignments in each of S states, and what is learned of values there."""

    seen: BatchObservation
    answers: Ints
    """[K, S, N]"""
    worth: Floats
    """[K, S]"""
    shown: BatchObservation
    """States, or assignments in them, whose returns are known,"""
    returns: Floats
    """and those returns."""
    figures: Figures
    """Of the episodes that ended meanwhile."""


class Place:
    """One environment of the run."""

    def __init__(self, env: BatchEnv, spec: ModelSpec, settings: SRLSettings, seed: int, number: int) -> None:
        self.env = env
        self.worker = Worker(env, seed, settings.noise, spec.task_scores, number)
        self.trials = None
        if settings.horizon is not None:
            self.trials = Trials(env, spec, settings.candidates, settings.hold, settings.horizon, settings.discount)
        self.usual = 0.0
        """Deviation of the values of a state's candidates, as it usually is."""

    def weigh(self, worth: Floats, temperature: float) -> Floats:
        """[K, S] each candidate's share in what is learned."""
        spread = float(np.sqrt(worth.var(axis=0).mean()))
        self.usual = MEMORY * self.usual + (1 - MEMORY) * spread if self.usual else spread
        return candidate_weights(worth, temperature, self.usual)


def candidate_weights(worth: Floats, temperature: float, usual: float) -> Floats:
    """Shares [K, S] of the candidates of S states in what is learned: softmax of worth / (temperature · spread).

    The spread is that of a state's own values, at least half of it what is `usual`: where all candidates are worth
    next to the same, so are their shares. With no spread at all every candidate has the same share.
    """
    own = worth.std(axis=0)
    spread = np.sqrt(0.5 * (own**2 + usual**2))
    height = (worth - worth.max(axis=0)) / np.where(spread > 0, temperature * spread, 1.0)
    shares = np.exp(height)
    return shares / shares.sum(axis=0)


class Structured:
    """The learner: an update values the candidates of every state, learns, and plays on to the next states."""

    # Rows of its log are means of few episodes, and rates fall to 0: the last policy is the most settled one.
    last_is_best = True

    def __init__(
        self,
        envs: Sequence[BatchEnv],
        spec: ModelSpec,
        inference: InferenceSettings,
        settings: SRLSettings,
        seed: int,
        header: dict[str, Any] | None = None,
    ) -> None:
        self.spec, self.inference, self.settings = spec, inference, settings
        self.header = header or {}
        self.rng = stream(seed, EXPLORATION)
        self.actor = Descent(init_parameters(spec, stream(seed, WEIGHTS)), settings.gradient_norm)
        choices = settings.valuation == "critic"
        self.critic = Critic(spec, stream(seed, CRITIC), settings.gradient_norm, choices)
        # One core a run: several runs share a machine better than one run its threads.
        self.solver = Solver.of(inference, threads=1)
        self.worlds = [Place(env, spec, settings, seed, k) for k, env in enumerate(envs)]
        self.steps = 0
        self.alike = 0
        """Updates, up to the last, in which all candidates were worth the same."""
        self._pack()
        self._set_sigma(self._usual_sigma())

    def _pack(self) -> None:
        """Pack the weights for the kernels: once an update, after which they are constant."""
        self._direct = DirectModel(self.actor.parameters(), self.spec.task_scores)

    def _usual_sigma(self) -> float:
        """As the settings say, but no smaller beside the scores that the run begins with."""
        spreads = []
        for place in self.worlds:
            seen = self.spec.view(place.env.observe())
            living = self.scores(seen)[0][alive_pairs(seen)[0]]
            spreads.append(float(living.std()) if living.size else 0.0)
        return self.settings.sigma * max(1.0, float(np.mean(spreads)))

    def _set_sigma(self, sigma: float) -> None:
        self.sigma = sigma
        self.noise = dataclasses.replace(self.settings, sigma=sigma).noise
        for place in self.worlds:
            env = place.env
            place.worker.noise = ScoreNoise(self.noise, env.n_envs, env.n_agents, env.n_tasks, self.spec.task_scores)

    def policy(self) -> LearnedPolicy:
        """The policy as it stands."""
        return LearnedPolicy("srl", self.spec, self.actor.parameters(), self.inference, self.noise, self.header)

    def start(self, parameters: Parameters) -> None:
        """Begin with these numbers in the scoring model."""
        self.actor.start(parameters)
        self._pack()
        self._set_sigma(self._usual_sigma())

    def scores(self, seen: BatchObservation) -> Scores:
        """h and g as the model gives them now."""
        return self._direct(seen)

    def decide(self, observation: BatchObservation, explore: Any = None) -> Decision:
        """One decision of the present policy."""
        return decide(observation, self.spec, self.scores, self.solver, explore)

    def update(self, progress: float = 0.0) -> Figures:
        """Value candidates, learn and play on, in every environment."""
        found = [self.value(place) for place in self.worlds]
        factor = rate_factor(self.settings.schedule, progress)
        self.alike = self.alike + 1 if all((one.worth == one.worth[0]).all() for one in found) else 0
        length = self.learn(found, factor)
        loss = float(np.mean([self.learn_values(one, factor) for one in found]))
        figures = combine([place.env.name for place in self.worlds], [one.figures for one in found])
        spread = float(np.mean([place.usual for place in self.worlds]))
        return figures | {"value_loss": loss, "policy_gradient": length, "advantage": spread}

    def value(self, place: Place) -> Valued:
        """The candidates of an environment's states and their values; the environment is played on."""
        if place.trials is None:
            return self._by_critic(place)
        env = place.env
        seen = self.spec.view(env.observe())
        noise = self.draw(env.n_envs, env.n_agents, env.n_tasks)
        tried = place.trials.play(Player(self.spec, self.scores, self.solver, self.critic), noise, self.rng)
        self.steps += tried.steps
        rollout = self.play(place)
        going = np.flatnonzero(tried.going)
        return Valued(seen, tried.first, tried.worth, take(tried.midway, going), tried.returns[going], rollout.figures)

    def _by_critic(self, place: Place) -> Valued:
        rollout = self.play(place)
        seen = rollout.seen
        answers = solve_perturbed(seen, rollout.scores, self.draw(*rollout.scores[0].shape), self.solver)
        worth = np.stack([self.critic(with_choices(seen, answer)) for answer in answers])
        shown = with_choices(seen, rollout.assignment)
        values = self.critic(shown).reshape(rollout.rewards.shape)
        after = self._value_of_policy(rollout.after)
        returns = traced_returns(rollout.rewards, rollout.ended, values, after, self.settings.discount, TRACE)
        return Valued(seen, answers, worth, shown, returns.reshape(-1), rollout.figures)

    def play(self, place: Place) -> Rollout:
        """Some decisions in every environment of an environment, with some noise."""
        settings = self.settings
        values = self.critic if place.trials else self._value_of_policy
        manner = Manner(settings.spacing, settings.discount, False, self.decide, self.spec.view, values)
        rollout = place.worker.play(manner, self.rng)
        self.steps += settings.spacing * place.env.n_envs
        return rollout

    def _value_of_policy(self, seen: BatchObservation) -> Floats:
        """[B] what the critic of assignments expects of the policy's own."""
        return self.critic(with_choices(seen, self.decide(seen).assignment))

    def draw(self, *shape: int) -> Floats32:
        """Noise of the candidates [K, S, N, M]."""
        drawn = self.rng.standard_normal((self.settings.candidates, *shape), np.float32)
        return np.float32(self.sigma) * drawn

    def learn(self, found: Sequence[Valued], factor: float) -> float:
        """One step of the scoring model; returns the length of its gradient."""
        gradients: Parameters = {}
        for place, one in zip(self.worlds, found, strict=True):
            weights = place.weigh(one.worth, self.settings.temperature)
            for name, slope in self.gradient(one.seen, one.answers, weights).items():
                gradients[name] = gradients.get(name, np.float32(0.0)) + slope / np.float32(len(found))
        self.actor.add(gradients)
        length = self.actor.length()
        self.actor.step(factor * self.settings.rate)
        check_finite("parameter", self.actor.theta)
        self._pack()
        return length

    def gradient(self, seen: BatchObservation, answers: Ints, weights: Floats) -> Parameters:
        """Of the mean loss whose target is the weighted mean of the answers, of which the plain mean is the sample."""
        alive, pairs = alive_pairs(seen)[0], self.spec.task_scores
        target, found = Moments.of(answers, alive, pairs, weights), Moments.of(answers, alive, pairs)
        states = np.float32(len(alive))
        slope_g = None if found.g is None or target.g is None else (found.g - target.g) / states
        slopes = slopes_of_model(self.spec, seen, ((found.h - target.h) / states, slope_g))
        return score_gradient(self._direct, seen, slopes)

    def learn_values(self, one: Valued, factor: float) -> float:
        """One step of the critic; returns its loss."""
        if not len(one.returns):
            return 0.0
        return self.critic.learn(one.shown, one.returns, factor * self.settings.value_rate)

    def advice(self) -> str | None:
        """What to do where candidates cannot be told apart, once that is clear; otherwise nothing."""
        if self.alike != ALIKE:
            return None
        return (
            f"all {self.settings.candidates} candidates of every state were worth exactly the same in {ALIKE} updates "
            "running, so there is nothing to learn from: raise --srl.sigma so that they differ, or --srl.horizon so "
            "that rewards come within it"
        )

    def counts(self) -> Mapping[str, int]:
        """Nothing."""
        return {}

    def get_state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Everything needed to go on bit for bit."""
        arrays = under("actor", self.actor.get_state())
        arrays |= under("values", self.critic.get_state())
        worlds = []
        for k, place in enumerate(self.worlds):
            of_world, plain = place.worker.get_state()
            arrays |= under(f"environment{k}", of_world)
            worlds.append(plain | {"usual": place.usual})
        plain = {"rng": self.rng.bit_generator.state, "steps": self.steps, "environments": worlds}
        return arrays, plain | {"alike": self.alike, "sigma": self.sigma}

    def set_state(self, arrays: dict[str, NDArray[Any]], plain: dict[str, Any]) -> None:
        """Go on from what `get_state` returned."""
        self.actor.set_state(part(arrays, "actor"))
        self.critic.set_state(part(arrays, "values"))
        self._pack()
        self._set_sigma(plain["sigma"])
        for k, (place, of_world) in enumerate(zip(self.worlds, plain["environments"], strict=True)):
            place.worker.set_state(part(arrays, f"environment{k}"), of_world)
            place.usual = of_world["usual"]
        self.rng.bit_generator.state, self.steps, self.alike = plain["rng"], plain["steps"], plain["alike"]
