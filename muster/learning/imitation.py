"""Imitation: a teacher labels every state that is visited, and the student learns to decide alike.

One decision in every environment is one update: the scores that act are the scores that learn. What is learned from is
how far the solver's answers under noise are from the teacher's (Fenchel-Young), or, agent by agent, the chance of the
teacher's task under a softmax over all tasks, the others' being the teacher's (cross-entropy).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muster.assign.settings import InferenceSettings
from muster.assign.solver import Solver
from muster.data import BatchObservation, Bools, Floats, Floats32, Ints
from muster.envs.vector import BatchEnv, Policy, Step
from muster.errors import InputError
from muster.learning.choices import Decisions, choice_likelihood, choice_slopes
from muster.learning.episodes import EXPLORATION, stream
from muster.learning.fenchel_young import Moments, completed, draw_noise, fenchel_young, slopes_of_model
from muster.learning.learner_settings import ImitationSettings
from muster.learning.lessons import Lesson, Roles
from muster.learning.optimiser import rate_factor
from muster.learning.parts import part, under
from muster.learning.rollouts import TrainingError, check_finite, take
from muster.learning.students import Student
from muster.learning.tally import Figures, combine
from muster.models.direct import Parameters, Scores
from muster.models.reach import scale_pairs
from muster.models.spec import ModelSpec
from muster.policy.decision import Decision, alive_pairs, make_problem
from muster.policy.learned import LearnedPolicy
from muster.policy.noise import GUMBEL_DEVIATION
from muster.policy.settings import PAPER_NOISE

NONE = np.zeros((0, 0, 0), np.float32)
ROUNDING = 1e-9
"""Share of what was hoped for that is no regret."""


class Imitation:
    """The learner: one decision in every environment, labelled, is one update."""

    # Its learning rate ends at 0, and the rows of its log differ by which episodes ended more than by the policy.
    last_is_best = True

    def __init__(
        self,
        envs: Sequence[BatchEnv],
        teachers: Sequence[Policy],
        student: Student,
        spec: ModelSpec,
        inference: InferenceSettings,
        settings: ImitationSettings,
        seed: int,
        header: dict[str, Any] | None = None,
    ) -> None:
        self.spec, self.inference, self.settings, self.student = spec, inference, settings, student
        self.header = header or {}
        self.rng = stream(seed, EXPLORATION)
        # One core a run: several runs share a machine better than one run its threads.
        self.solver = Solver.of(inference, threads=1)
        self.worlds = []
        for k, (env, teacher) in enumerate(zip(envs, teachers, strict=True)):
            if settings.regret and type(teacher).expected_return is Policy.expected_return:
                raise InputError(
                    f"{teacher.name} cannot say what its plan is worth, so nobody knows what a decision cost: "
                    "leave out --imitate.regret"
                )
            roles = Roles.of(env.n_envs, *settings.shares)
            self.worlds.append(Lesson(env, teacher, roles, seed, k))
        self.n_envs = sum(env.n_envs for env in envs)
        self.steps = self.updates = 0

    def update(self, progress: float = 0.0) -> Figures:
        """One decision in every environment, and one step of the optimiser."""
        names = [world.env.name for world in self.worlds]
        figures, learned = [], dict.fromkeys(("loss", "agreement", *(("regret",) if self.settings.regret else ())), 0.0)
        for world in self.worlds:
            share = world.env.n_envs / self.n_envs
            found, of_world = self._attend(world, share)
            figures.append(found)
            for name in learned:
                learned[name] += share * of_world[name]
        if not np.isfinite(learned["loss"]):
            raise TrainingError(f"the loss became {learned['loss']}; lower --imitate.rate")
        self.updates += 1
        warm = min(1.0, self.updates / max(self.settings.warm_up, 1))
        self.student.step(self.settings.rate * warm * rate_factor(self.settings.schedule, progress))
        self.steps += self.n_envs
        return combine(names, figures) | learned

    def _attend(self, world: Lesson, share: float) -> tuple[Figures, Figures]:
        """Decide, hear what the teacher would have done, go on, add the gradient: figures of play and of learning."""
        env = world.env
        observation = env.observe()
        labels = world.ask(observation)
        hoped = world.outlook(observation) if self.settings.regret else None
        seen = self.spec.view(observation)
        h, g = self.student.scores(seen)
        scores: Scores = h, scale_pairs(self.spec, seen, g)
        check_finite("score", *scores)
        played = h + self._noise(1, h.shape)[0] * world.roles.noisy[:, None, None]
        solution = self.solver.run(make_problem(seen, played, scores[1]))[0]
        decision = Decision(seen, scores, (played, scores[1]), solution)
        learned = {"agreement": agreeing(seen, solution.assignment, labels, ~world.roles.noisy)}
        figures, step = world.step(decision.actions(env.reads_reasons))
        if hoped is None:
            return figures, learned | {"loss": self._learn(seen, scores, labels, share)}
        regret = regrets(hoped, step, world.outlook(env.observe()))
        loss = self._learn_where(np.flatnonzero(regret), regret, seen, scores, labels, share)
        return figures, learned | {"loss": loss, "regret": float(regret.mean())}

    def _learn(self, seen: BatchObservation, scores: Scores, labels: Ints, share: float) -> float:
        """Add the gradient of all states; returns the mean loss."""
        loss, slopes = self._loss(seen, scores, labels)
        self.student.add(seen, _times(slopes_of_model(self.spec, seen, slopes), np.float32(share)))
        return loss

    def _learn_where(
        self, states: Ints, weights: Floats, seen: BatchObservation, scores: Scores, labels: Ints, share: float
    ) -> float:
        """Add the gradient of some states, each by its weight; returns their mean loss, 0 of none."""
        if not len(states):
            return 0.0
        some, given = take(seen, states), (scores[0][states], None if scores[1] is None else scores[1][states])
        loss, slopes = self._loss(some, given, labels[states])
        factors = share * weights[states] / weights[states].mean()
        slopes = _times(slopes_of_model(self.spec, some, slopes), factors.astype(np.float32)[:, None, None])
        self.student.add(seen, slopes, states)
        return loss

    def _noise(self, samples: int, shape: tuple[int, ...]) -> Floats32:
        """[K, B, N, M] as the loss sees it: under a softmax over scores choices are made by Gumbel noise of scale 1."""
        if self.settings.loss == "cross-entropy":
            return np.float32(GUMBEL_DEVIATION) * draw_noise(self.rng, samples, shape, "gumbel")
        return np.float32(self.settings.epsilon) * draw_noise(self.rng, samples, shape, self.settings.noise)

    def _loss(self, seen: BatchObservation, scores: Scores, labels: Ints) -> tuple[float, Scores]:
        """The mean loss of the states and its slopes in the scores as they count."""
        if self.settings.loss == "cross-entropy":
            return cross_entropy(seen, scores, labels, idling=not self.inference.assign_all)
        wanted = completed(seen, scores, labels, self.solver)
        target = Moments.of(wanted, alive_pairs(seen)[0], pairs=scores[1] is not None)
        noise = self._noise(self.settings.perturbations, scores[0].shape)
        found = fenchel_young(seen, scores, target, noise, self.solver)
        return float(found.loss.mean()), found.slopes

    def policy(self) -> LearnedPolicy:
        """The policy as it stands. Its noise, for those who want some, is the default."""
        return LearnedPolicy("imitate", self.spec, self.student.parameters, self.inference, PAPER_NOISE, self.header)

    def start(self, parameters: Parameters) -> None:
        """Begin with these numbers."""
        self.student.start(parameters)

    def advice(self) -> str | None:
        """Nothing so far."""
        return None

    def counts(self) -> Mapping[str, int]:
        """Nothing."""
        return {}

    def get_state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Everything needed to go on bit for bit."""
        of_student, plain = self.student.get_state()
        arrays = under("student", of_student)
        worlds = []
        for k, world in enumerate(self.worlds):
            of_world, plain_of_world = world.get_state()
            arrays |= under(f"environment{k}", of_world)
            worlds.append(plain_of_world)
        counts = {"steps": self.steps, "updates": self.updates, "rng": self.rng.bit_generator.state}
        return arrays, counts | {"student": plain, "environments": worlds}

    def set_state(self, arrays: dict[str, NDArray[Any]], plain: dict[str, Any]) -> None:
        """Go on from what `get_state` returned."""
        self.student.set_state(part(arrays, "student"), plain["student"])
        for k, (world, of_world) in enumerate(zip(self.worlds, plain["environments"], strict=True)):
            world.set_state(part(arrays, f"environment{k}"), of_world)
        self.steps, self.updates = plain["steps"], plain["updates"]
        self.rng.bit_generator.state = plain["rng"]


def cross_entropy(seen: BatchObservation, scores: Scores, labels: Ints, idling: bool) -> tuple[float, Scores]:
    """Mean over the agents of -log softmax of the teacher's task, and its slopes.

    An agent's options are all tasks that it may take, whatever room there is, and no task, worth 0, where `idling`
    is a choice. Where it is not, agents without a label teach nothing.
    """
    h, given = scores
    g = NONE if given is None else given
    counted = seen.agent_alive if idling else seen.agent_alive & (labels >= 0)
    alive = alive_pairs(seen)[0]
    # A label that the rules do not allow cannot be learned.
    rows, agents = np.nonzero(labels >= 0)
    counted = counted.copy()
    counted[rows, agents] &= alive[rows, agents, labels[rows, agents]]
    decisions = Decisions(
        assignment=labels,
        history=np.zeros(h.shape, np.float32),
        contributions=np.ascontiguousarray(seen.contributions),
        capacities=np.full(seen.capacities.shape, np.inf),
        agent_alive=counted,
        open=alive,
        idling=idling,
        exchanging=False,
    )
    count = max(int(counted.sum()), 1)
    likelihood, slope_h, slope_g = np.zeros(labels.shape), np.zeros(h.shape), np.zeros(g.shape)
    choice_likelihood(decisions, h, g, 1.0, likelihood)
    choice_slopes(decisions, h, g, 1.0, np.full(labels.shape, -1.0 / count), 0.0, slope_h, slope_g)
    slopes = slope_h.astype(np.float32), None if given is None else slope_g.astype(np.float32)
    return -float(likelihood.sum()) / count, slopes


def agreeing(seen: BatchObservation, assignment: Ints, labels: Ints, slots: Bools) -> float:
    """Share of the living agents with a choice of tasks that do what the teacher would, in some of the slots."""
    could = alive_pairs(seen)[0].any(axis=2) & slots[:, None]
    return float((assignment == labels)[could].mean()) if could.any() else float("nan")


def regrets(hoped: Floats, step: Step, outlook: Floats) -> Floats:
    """[B] what a decision cost by the teacher's reckoning: what its plan was to earn, less what was earned and what its
    plan is to earn from there on.

    0 where chance or a better plan made up for it, and where an episode was cut short: who knows what would have come.
    """
    after = np.where(step.terminated, 0.0, outlook)
    cost = hoped - step.reward - after
    return np.where(step.truncated | (cost <= ROUNDING * np.abs(hoped)), 0.0, cost)


def _times(slopes: Scores, factor: np.float32 | Floats32) -> Scores:
    h, g = slopes
    return factor * h, None if g is None else factor * g
