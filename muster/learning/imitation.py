"""Imitation: a teacher labels every visited state (DAgger), and the student learns to decide alike.

Were the teacher alone followed, a student would never see where its own mistakes lead (Ross et al., 2011). So in some
slots of an environment the teacher is followed, in some the student, in some the student with noise. One decision in
every slot is one update: the scores that act are the scores that learn. The loss is how far the solver's answers under
noise are from the teacher's (Fenchel-Young), or, agent by agent, the cross-entropy of the teacher's task under a
softmax over all tasks, the others' being the teacher's.
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
from muster.learning.learner import Arrays, Learner, Setup, SlotEpisodes, State, component, prefixed
from muster.learning.losses.choices import Choices
from muster.learning.losses.fenchel_young import Moments, completed, draw_noise, fenchel_young, slopes_of_model
from muster.learning.metrics import Metrics, combine, episode_metrics, mean_metrics
from muster.learning.optimiser import cosine_decay
from muster.learning.rollouts import check_finite
from muster.learning.settings import ImitationSettings
from muster.models.direct import Parameters, Scores
from muster.policy.decision import Decision, decide
from muster.policy.noise import GUMBEL_STD
from muster.rollout import act_with, reset, rollout

# What no recorded run has varied.
PERTURBATIONS = 4
"""Perturbed problems that are solved for each state (fenchel-young)."""
EPSILON = 0.3
"""Standard deviation of the perturbations of h (fenchel-young)."""
WARM_UP = 50
"""Updates over which the learning rate rises."""
MAX_GRAD_NORM = 1.0
WEIGHT_DECAY = 0.01
ROUNDING = 1e-9
"""Share of the expected return that is no regret."""


class Roles(NamedTuple):
    """Who is followed in each slot [B]; where neither is True, the student as it is."""

    teacher: Bools
    noisy: Bools

    @classmethod
    def of(cls, n_envs: int, mixed: bool) -> Roles:
        """Mixed: a quarter of the slots follow the teacher, the next quarter the student with noise."""
        slots = np.arange(n_envs)
        first, second = (round(0.25 * n_envs), round(0.5 * n_envs)) if mixed else (0, 0)
        return cls(slots < first, (slots >= first) & (slots < second))


class LabelledEnv:
    """One environment of the run, its teacher, and the episodes under way."""

    def __init__(self, env: BatchEnv, teacher: Policy, roles: Roles, seed: int, index: int = 0) -> None:
        self.env, self.teacher, self.roles = env, teacher, roles
        self.episodes = SlotEpisodes(env.n_envs, seed, index)
        self.running_reward = np.zeros(env.n_envs)
        self._actions: Ints | None = None
        """[B, N] the teacher's in the present states; None before it was asked."""
        self._begin(np.arange(env.n_envs))

    def _begin(self, slots: Ints) -> None:
        if len(slots):
            reset(self.env, self.teacher, slots, self.episodes.take(slots))

    def labels(self, observation: BatchObservation) -> Ints:
        """[B, N] what the teacher would do now, -1 for no task. It is asked once before each step."""
        if self._actions is None:
            self._actions = act_with(self.teacher, self.env)(observation)
        return np.where(self._actions < 0, -1, self._actions)

    def followed(self, actions: Ints) -> Ints:
        """The student's actions [B, N], and the teacher's where it is followed."""
        assert self._actions is not None
        return np.where(self.roles.teacher[:, None], self._actions, actions)

    def finish(self, action: Ints, result: Step) -> Metrics:
        """Begin new episodes where some ended; metrics of those.

        Only where the student is followed, without noise, is it known how good it is; where the teacher alone is
        followed, metrics are the teacher's.
        """
        asked = self._actions
        assert asked is not None
        self.running_reward += result.reward
        ended = np.flatnonzero(result.terminated | result.truncated)
        own = ~(self.roles.teacher | self.roles.noisy)
        counted = own if own.any() else self.roles.teacher
        over = ended[counted[ended]]
        known = episode_metrics(self.env, self.running_reward) if len(over) else {}
        metrics = mean_metrics({name: values[over] for name, values in known.items()}, len(over))
        self.running_reward[ended] = 0.0
        # A plan holds only as long as it is followed.
        strayed = (np.where(action < 0, -1, action) != np.where(asked < 0, -1, asked)).any(axis=1)
        self.teacher.replan(np.flatnonzero(strayed))
        self._begin(ended)
        self._actions = None
        return metrics

    def expected_return(self, observation: BatchObservation) -> Floats:
        """[B] what the teacher's plan is to earn from the present states on."""
        self.labels(observation)
        found = self.teacher.expected_return(observation)
        assert found is not None
        return found

    def get_state(self) -> State:
        """Everything needed to go on bit for bit, between two decisions."""
        arrays = prefixed("env", self.env.get_state()) | prefixed("teacher", self.teacher.get_memory())
        if self._actions is not None:
            arrays["actions"] = self._actions.copy()
        return arrays | {"running_reward": self.running_reward.copy(), "begun": self.episodes.begun.copy()}, {}

    def set_state(self, arrays: Arrays, plain: dict[str, Any]) -> None:
        """Go on from what `get_state` returned."""
        self.env.set_state(component(arrays, "env"))
        self.teacher.set_memory(component(arrays, "teacher"))
        self._actions = np.array(arrays["actions"]) if "actions" in arrays else None
        self.running_reward[...], self.episodes.begun[...] = arrays["running_reward"], arrays["begun"]


class Imitation(Learner):
    """One labelled decision in every slot is one update."""

    name = "imitation"
    # Its learning rate ends at 0, and the rows of its log differ by which episodes ended more than by the policy.
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
        """Of the student."""
        return self.student.parameters()

    def start(self, parameters: Parameters) -> None:
        """Begin with these values."""
        self.student.start(parameters)

    def update(self, progress: float = 0.0) -> Metrics:
        """One decision in every slot, and one step of the optimiser."""
        found, learned = [], dict.fromkeys(("loss", "agreement", *(("regret",) if self.by_regret else ())), 0.0)
        for labelled in self.labelled:
            share = labelled.env.n_envs / self.n_envs
            metrics, of_env = self._decide_and_learn(labelled, share)
            found.append(metrics)
            for name in learned:
                learned[name] += share * of_env[name]
        check_loss("loss", learned["loss"])
        self.updates += 1
        warm = min(1.0, self.updates / WARM_UP)
        self.student.step(self.settings.learning_rate * warm * cosine_decay(progress))
        self.steps += self.n_envs
        return combine(self.envs, found) | learned

    def _decide_and_learn(self, labelled: LabelledEnv, share: float) -> tuple[Metrics, Metrics]:
        """Decide, ask the teacher, step, add the gradient: metrics of the episodes that ended, and of learning."""
        env, noisy = labelled.env, labelled.roles.noisy
        made: list[tuple[Decision, Ints, Floats | None]] = []

        def act(observation: BatchObservation) -> Ints:
            labels = labelled.labels(observation)
            expected = labelled.expected_return(observation) if self.by_regret else None
            decision = decide(observation, self.spec, self.student.forward, self.solver, explore)
            made.append((decision, labels, expected))
            return labelled.followed(decision.actions(env.reads_reasons))

        def explore(scores: Scores) -> Scores:
            check_finite("score", *scores)
            h, g = scores
            return h + self._noise(1, h.shape)[0] * noisy[:, None, None], g

        transition = next(rollout(env, act, np.ones(env.n_envs, np.bool_)))
        decision, labels, expected = made[0]
        seen, scores = decision.observation, decision.scores
        learned = {"agreement": agreement(seen, decision.assignment, labels, ~noisy)}
        metrics = labelled.finish(transition.action, transition.result)
        if expected is None:
            loss, slopes = self._loss(seen, scores, labels)
            self.student.backward(seen, _times(slopes_of_model(self.spec, seen, slopes), np.float32(share)))
            return metrics, learned | {"loss": loss}
        regret = regrets(expected, transition.result, labelled.expected_return(env.observe()))
        loss = self._learn_where(np.flatnonzero(regret), regret, seen, scores, labels, share)
        return metrics, learned | {"loss": loss, "regret": float(regret.mean())}

    def _learn_where(
        self, states: Ints, weights: Floats, seen: BatchObservation, scores: Scores, labels: Ints, share: float
    ) -> float:
        """Add the gradient of some states, each by its weight; returns their mean loss, 0 of none."""
        if not len(states):
            return 0.0
        some, given = seen.take(states), (scores[0][states], None if scores[1] is None else scores[1][states])
        loss, slopes = self._loss(some, given, labels[states])
        factors = share * weights[states] / weights[states].mean()
        slopes = _times(slopes_of_model(self.spec, some, slopes), factors.astype(np.float32)[:, None, None])
        self.student.backward(seen, slopes, states=states)
        return loss

    def _noise(self, samples: int, shape: tuple[int, ...]) -> Floats32:
        """[K, B, N, M] as in the loss: under a softmax over scores, choices are made by Gumbel noise of scale 1."""
        if self.settings.loss == "cross-entropy":
            return np.float32(GUMBEL_STD) * draw_noise(self.rng, samples, shape, "gumbel")
        return np.float32(EPSILON) * draw_noise(self.rng, samples, shape, "normal")

    def _loss(self, seen: BatchObservation, scores: Scores, labels: Ints) -> tuple[float, Scores]:
        """The mean loss of the states and its slopes in the scores as they count."""
        if self.settings.loss == "cross-entropy":
            return cross_entropy(seen, scores, labels, idling=not self.inference.assign_all)
        target = completed(seen, scores, labels, self.solver)
        moments = Moments.of(target, seen.pairs, pairs=scores[1] is not None)
        noise = self._noise(PERTURBATIONS, scores[0].shape)
        found = fenchel_young(seen, scores, moments, noise, self.solver)
        return float(found.loss.mean()), found.slopes

    def get_state(self) -> State:
        """Everything needed to go on bit for bit."""
        arrays = prefixed("student", self.student.get_state())
        states = [labelled.get_state() for labelled in self.labelled]
        for k, (of_env, _) in enumerate(states):
            arrays |= prefixed(f"environment{k}", of_env)
        counts = {"steps": self.steps, "updates": self.updates, "rng": self.rng.bit_generator.state}
        return arrays, counts | {"environments": [plain for _, plain in states]}

    def set_state(self, arrays: Arrays, plain: dict[str, Any]) -> None:
        """Go on from what `get_state` returned."""
        self.student.set_state(component(arrays, "student"))
        for k, (labelled, of_env) in enumerate(zip(self.labelled, plain["environments"], strict=True)):
            labelled.set_state(component(arrays, f"environment{k}"), of_env)
        self.steps, self.updates = plain["steps"], plain["updates"]
        self.rng.bit_generator.state = plain["rng"]


def cross_entropy(seen: BatchObservation, scores: Scores, labels: Ints, idling: bool) -> tuple[float, Scores]:
    """Mean over the agents of -log softmax of the teacher's task, and its slopes.

    An agent's options are all tasks that it may take, whatever their loads, and no task, worth 0, where `idling` is a
    choice. Where it is not, agents without a label teach nothing.
    """
    counted = seen.agent_alive if idling else seen.agent_alive & (labels >= 0)
    alive = seen.pairs
    # A label that is not allowed cannot be learned.
    rows, agents = np.nonzero(labels >= 0)
    counted = counted.copy()
    counted[rows, agents] &= alive[rows, agents, labels[rows, agents]]
    choices = Choices(
        assignment=labels,
        history=np.zeros(scores[0].shape, np.float32),
        contributions=np.ascontiguousarray(seen.contributions),
        capacities=np.full(seen.capacities.shape, np.inf),
        agent_alive=counted,
        open=alive,
        idling=idling,
        exchanging=False,
    )
    likelihood = choices.likelihood(scores, 1.0)
    # At a ratio of 1 the slopes of PPO's loss for advantages of 1 are those of the mean log-likelihood.
    slopes = choices.clipped_loss(scores, 1.0, likelihood, np.ones(len(labels)))[2]
    return -float(likelihood.sum()) / max(int(counted.sum()), 1), slopes


def agreement(seen: BatchObservation, assignment: Ints, labels: Ints, slots: Bools) -> float:
    """Share of the living agents with a choice of tasks that do what the teacher would, in some of the slots."""
    could = seen.pairs.any(axis=2) & slots[:, None]
    return float((assignment == labels)[could].mean()) if could.any() else float("nan")


def regrets(expected: Floats, result: Step, after: Floats) -> Floats:
    """[B] cost of a decision by the teacher's plan: the return expected before it, less the reward and the return
    expected `after` it.

    0 where chance or a better plan made up for it, and where an episode was truncated, which leaves its end unknown.
    """
    cost = expected - result.reward - np.where(result.terminated, 0.0, after)
    return np.where(result.truncated | (cost <= ROUNDING * np.abs(expected)), 0.0, cost)


def _times(slopes: Scores, factor: np.float32 | Floats32) -> Scores:
    h, g = slopes
    return factor * h, None if g is None else factor * g
