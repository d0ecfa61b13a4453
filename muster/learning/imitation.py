"""Imitation learning by DAgger: a teacher labels every visited state, and the student learns its decisions.

If only the teacher acted, the student would never see where its own mistakes lead (Ross et al., 2011). So the teacher
acts in some slots of an environment, the student in others, with noise in some of them. One decision in every slot is
one update: the scores that act are the scores that learn. The loss is the perturbed Fenchel-Young loss between the
solver's answers and the teacher's assignment, or for each agent the cross-entropy of the teacher's task under a softmax
over all tasks, with the other agents on the teacher's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from muster.data import BatchObservation, Bools, Floats, Floats32, Ints
from muster.envs.vector import BatchEnv, Policy, Step
from muster.errors import InputError
from muster.learning.a2c import check_loss
from muster.learning.actor import Actor
from muster.learning.learner import (
    Arrays,
    Learner,
    Setup,
    SlotEpisodes,
    State,
    component,
    join_states,
    prefixed,
    split_states,
)
from muster.learning.losses.choices import Choices
from muster.learning.losses.fenchel_young import Moments, completed, draw_noise, fenchel_young, slopes_of_model
from muster.learning.metrics import Metrics, combine, episode_metrics, mean_metrics
from muster.learning.optimiser import cosine_decay
from muster.learning.rollouts import check_finite
from muster.learning.settings import ImitationSettings
from muster.models.spec import Parameters, Scores
from muster.policy.decision import Decision, decide
from muster.policy.noise import GUMBEL_STD
from muster.rollout import act_with, reset, rollout

# Constants rather than settings: no recorded run has varied them.
PERTURBATIONS = 4
"""Perturbed problems that are solved for each state (fenchel-young)."""
EPSILON = 0.3
"""Standard deviation of the perturbations of h (fenchel-young)."""
WARM_UP = 50
"""Updates over which the learning rate rises linearly."""
MAX_GRAD_NORM = 1.0
WEIGHT_DECAY = 0.01
ROUNDING = 1e-9
"""Regret below this share of the expected return counts as 0."""


class Roles(NamedTuple):
    """Who acts in each slot [B]: the teacher, the student with noise, or, where neither is True, the student."""

    teacher: Bools
    noisy: Bools

    @classmethod
    def of(cls, n_envs: int, mixed: bool) -> Roles:
        """With `mixed` the teacher acts in the first quarter of the slots, the student with noise in the second."""
        slots = np.arange(n_envs)
        first, second = (round(0.25 * n_envs), round(0.5 * n_envs)) if mixed else (0, 0)
        return cls(slots < first, (slots >= first) & (slots < second))


class LabelledEnv:
    """One environment of the run, its teacher, and the episodes in progress."""

    def __init__(self, env: BatchEnv, teacher: Policy, roles: Roles, seed: int, index: int = 0) -> None:
        self.env, self.teacher, self.roles = env, teacher, roles
        self.episodes = SlotEpisodes(env.n_envs, seed, index)
        self.running_reward = np.zeros(env.n_envs)
        self._actions: Ints | None = None
        """[B, N] the teacher's actions in the present states; None until they are computed."""
        self._begin(np.arange(env.n_envs))

    def _begin(self, slots: Ints) -> None:
        if len(slots):
            reset(self.env, self.teacher, slots, self.episodes.take(slots))

    def labels(self, observation: BatchObservation) -> Ints:
        """[B, N] the teacher's tasks in the present states, -1 for none; computed once for each step."""
        if self._actions is None:
            self._actions = act_with(self.teacher, self.env)(observation)
        return np.where(self._actions < 0, -1, self._actions)

    def executed(self, actions: Ints) -> Ints:
        """Actions to execute [B, N]: the student's, and the teacher's where it acts."""
        assert self._actions is not None
        return np.where(self.roles.teacher[:, None], self._actions, actions)

    def finish(self, action: Ints, result: Step) -> Metrics:
        """Reset slots whose episodes ended; metrics of those episodes.

        Metrics are of slots in which the student acts without noise, or the teacher's where there are none.
        """
        teacher_action = self._actions
        assert teacher_action is not None
        self.running_reward += result.reward
        ended = np.flatnonzero(result.terminated | result.truncated)
        student = ~(self.roles.teacher | self.roles.noisy)
        counted = student if student.any() else self.roles.teacher
        over = ended[counted[ended]]
        by_slot = episode_metrics(self.env, self.running_reward) if len(over) else {}
        metrics = mean_metrics({name: values[over] for name, values in by_slot.items()}, len(over))
        self.running_reward[ended] = 0.0
        # The teacher's plan is void where the student did something else.
        strayed = (np.where(action < 0, -1, action) != np.where(teacher_action < 0, -1, teacher_action)).any(axis=1)
        self.teacher.replan(np.flatnonzero(strayed))
        self._begin(ended)
        self._actions = None
        return metrics

    def expected_return(self, observation: BatchObservation) -> Floats:
        """[B] return of the teacher's plan from the present states on."""
        self.labels(observation)
        expected = self.teacher.expected_return(observation)
        assert expected is not None
        return expected

    def get_state(self) -> State:
        """Checkpoint of environment, teacher and episodes, between two decisions."""
        arrays = prefixed("env", self.env.get_state()) | prefixed("teacher", self.teacher.get_memory())
        if self._actions is not None:
            arrays["actions"] = self._actions.copy()
        return arrays | {"running_reward": self.running_reward.copy(), "begun": self.episodes.begun.copy()}, {}

    def set_state(self, arrays: Arrays, plain: dict[str, Any]) -> None:
        """Restore the state that `get_state` returned."""
        self.env.set_state(component(arrays, "env"))
        self.teacher.set_memory(component(arrays, "teacher"))
        self._actions = np.array(arrays["actions"]) if "actions" in arrays else None
        self.running_reward[...], self.episodes.begun[...] = arrays["running_reward"], arrays["begun"]


class Imitation(Learner):
    """DAgger: one update is one labelled decision in every slot, and one step of the optimiser."""

    name = "imitation"
    # The learning rate ends at 0, and rewards of the log differ by the episodes that ended more than by the policy.
    last_is_best = True

    def __init__(self, setup: Setup, settings: ImitationSettings, teachers: Sequence[Policy], student: Actor) -> None:
        super().__init__(setup)
        self.settings, self.student = settings, student
        self.by_regret = settings.states == "regret"
        self.labelled = []
        for k, (env, teacher) in enumerate(zip(self.envs, teachers, strict=True)):
            if self.by_regret and type(teacher).expected_return is Policy.expected_return:
                raise InputError(
                    f"{teacher.name} cannot say what its plan is worth, so the cost of a decision is unknown: "
                    "leave out --imitation.states regret"
                )
            roles = Roles.of(env.n_envs, settings.states == "mixed")
            self.labelled.append(LabelledEnv(env, teacher, roles, self.seed, k))
        self.n_envs = sum(env.n_envs for env in self.envs)
        self.updates = 0

    def parameters(self) -> Parameters:
        """Copies of the student's parameters."""
        return self.student.parameters()

    def start(self, parameters: Parameters) -> None:
        """Set the student's parameters, before the first update."""
        self.student.start(parameters)

    def update(self, progress: float = 0.0) -> Metrics:
        """Decide in every slot, and take one step of the optimiser."""
        episodes: list[Metrics] = []
        learned = dict.fromkeys(("loss", "agreement", *(("regret",) if self.by_regret else ())), 0.0)
        for labelled in self.labelled:
            share = labelled.env.n_envs / self.n_envs
            metrics, env_learned = self._decide_and_learn(labelled, share)
            episodes.append(metrics)
            for name in learned:
                learned[name] += share * env_learned[name]
        check_loss("loss", learned["loss"])
        self.updates += 1
        warm_up = min(1.0, self.updates / WARM_UP)
        self.student.step(self.settings.learning_rate * warm_up * cosine_decay(progress))
        self.steps += self.n_envs
        return combine(self.envs, episodes) | learned

    def _decide_and_learn(self, labelled: LabelledEnv, share: float) -> tuple[Metrics, Metrics]:
        """One decision of student and teacher, and its gradient; metrics of ended episodes, and of learning."""
        env, noisy = labelled.env, labelled.roles.noisy
        made: list[tuple[Decision, Ints, Floats | None]] = []

        def act(observation: BatchObservation) -> Ints:
            labels = labelled.labels(observation)
            expected = labelled.expected_return(observation) if self.by_regret else None
            decision = decide(observation, self.spec, self.student.forward, self.solver, explore)
            made.append((decision, labels, expected))
            return labelled.executed(decision.actions(env.reads_reasons))

        def explore(scores: Scores) -> Scores:
            check_finite("score", *scores)
            h, g = scores
            return h + self._noise(1, h.shape)[0] * noisy[:, None, None], g

        transition = next(rollout(env, act, np.ones(env.n_envs, np.bool_)))
        decision, labels, expected = made[0]
        observation, scores = decision.observation, decision.scores
        learned = {"agreement": agreement(observation, decision.assignment, labels, ~noisy)}
        metrics = labelled.finish(transition.action, transition.result)
        if expected is None:
            loss, slopes = self._loss(observation, scores, labels)
            slopes = _times(slopes_of_model(self.spec, observation, slopes), np.float32(share))
            self.student.backward(observation, slopes)
            return metrics, learned | {"loss": loss}
        regret = regrets(expected, transition.result, labelled.expected_return(env.observe()))
        loss = self._learn_where(np.flatnonzero(regret), regret, observation, scores, labels, share)
        return metrics, learned | {"loss": loss, "regret": float(regret.mean())}

    def _learn_where(
        self, states: Ints, weights: Floats, observation: BatchObservation, scores: Scores, labels: Ints, share: float
    ) -> float:
        """Add the gradient of some states, weighted by state; their mean loss, 0 where there are none."""
        if not len(states):
            return 0.0
        h, g = scores
        some = observation.take(states)
        loss, slopes = self._loss(some, (h[states], None if g is None else g[states]), labels[states])
        factors = share * weights[states] / weights[states].mean()
        slopes = _times(slopes_of_model(self.spec, some, slopes), factors.astype(np.float32)[:, None, None])
        self.student.backward(observation, slopes, states=states)
        return loss

    def _noise(self, samples: int, shape: tuple[int, ...]) -> Floats32:
        """Perturbations of h [K, B, N, M]: Gumbel noise of scale 1 for the softmax of cross-entropy, else normal."""
        if self.settings.loss == "cross-entropy":
            return np.float32(GUMBEL_STD) * draw_noise(self.rng, samples, shape, "gumbel")
        return np.float32(EPSILON) * draw_noise(self.rng, samples, shape, "normal")

    def _loss(self, observation: BatchObservation, scores: Scores, labels: Ints) -> tuple[float, Scores]:
        """Mean loss of the states, and its slopes in h and the scaled g."""
        if self.settings.loss == "cross-entropy":
            return cross_entropy(observation, scores, labels, idling=not self.inference.assign_all)
        target = completed(observation, scores, labels, self.solver)
        moments = Moments.of(target, observation.pairs, pairs=scores[1] is not None)
        noise = self._noise(PERTURBATIONS, scores[0].shape)
        result = fenchel_young(observation, scores, moments, noise, self.solver)
        return float(result.loss.mean()), result.slopes

    def get_state(self) -> State:
        """Checkpoint of student, optimiser, environments and random generator."""
        arrays, env_values = join_states([labelled.get_state() for labelled in self.labelled])
        values = {"steps": self.steps, "updates": self.updates, "rng": self.rng.bit_generator.state}
        arrays |= prefixed("student", self.student.get_state())
        return arrays, values | {"environments": env_values}

    def set_state(self, arrays: Arrays, plain: dict[str, Any]) -> None:
        """Restore the state that `get_state` returned."""
        self.student.set_state(component(arrays, "student"))
        for labelled, state in zip(self.labelled, split_states(arrays, plain["environments"]), strict=True):
            labelled.set_state(*state)
        self.steps, self.updates = plain["steps"], plain["updates"]
        self.rng.bit_generator.state = plain["rng"]


def cross_entropy(observation: BatchObservation, scores: Scores, labels: Ints, idling: bool) -> tuple[float, Scores]:
    """Loss -mean over agents of log softmax(u)[label] with utilities u of the tasks, and its slopes.

    An agent's options are all tasks that it may take, whatever their loads, and no task, worth 0, where `idling` is a
    choice. Where it is not, agents without a label are left out.
    """
    counted = observation.agent_alive if idling else observation.agent_alive & (labels >= 0)
    alive = observation.pairs
    # A label that is not allowed cannot be learned.
    rows, agents = np.nonzero(labels >= 0)
    counted = counted.copy()
    counted[rows, agents] &= alive[rows, agents, labels[rows, agents]]
    choices = Choices(
        assignment=labels,
        history=np.zeros(scores[0].shape, np.float32),
        contributions=np.ascontiguousarray(observation.contributions),
        capacities=np.full(observation.capacities.shape, np.inf),
        agent_alive=counted,
        open=alive,
        idling=idling,
        exchanging=False,
    )
    likelihood = choices.likelihood(scores, 1.0)
    # At a ratio of 1 the slopes of PPO's loss for advantages of 1 are those of the mean log-likelihood.
    slopes = choices.clipped_loss(scores, 1.0, likelihood, np.ones(len(labels)))[2]
    return -float(likelihood.sum()) / max(int(counted.sum()), 1), slopes


def agreement(observation: BatchObservation, assignment: Ints, labels: Ints, slots: Bools) -> float:
    """Share of the agents with tasks to choose from, in `slots` [B], whose task is the teacher's."""
    could = observation.pairs.any(axis=2) & slots[:, None]
    return float((assignment == labels)[could].mean()) if could.any() else float("nan")


def regrets(expected: Floats, result: Step, after: Floats) -> Floats:
    """[B] regret of a decision by the teacher's plan: expected return before it - reward - expected return `after` it.

    It is 0 where chance or a better plan made up for it, and where an episode was truncated, whose end is unknown.
    """
    cost = expected - result.reward - np.where(result.terminated, 0.0, after)
    return np.where(result.truncated | (cost <= ROUNDING * np.abs(expected)), 0.0, cost)


def _times(slopes: Scores, factor: np.float32 | Floats32) -> Scores:
    h, g = slopes
    return factor * h, None if g is None else factor * g
