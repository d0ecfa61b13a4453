"""An environment in which a teacher says at every decision what it would do, whoever is followed.

Were the teacher alone followed, a student would never see where its own mistakes lead (Ross et al., 2011). So the slots
of an env have three roles: in some the teacher is followed, in some the student, in some the student with noise.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from muster.data import BatchObservation, Bools, Floats, Ints
from muster.envs.vector import BatchEnv, Policy, Step
from muster.learning.episodes import TrainingEpisodes
from muster.learning.parts import part, under
from muster.learning.rollouts import check_finite
from muster.learning.tally import Ended, Figures
from muster.rollout import act_with, reset


class Roles(NamedTuple):
    """Who is followed in each slot [B]; where neither is True, the student as it is."""

    teacher: Bools
    noisy: Bools

    @classmethod
    def of(cls, n_envs: int, teacher_share: float, noisy_share: float) -> Roles:
        """The first slots follow the teacher, the next ones the student with noise."""
        slots = np.arange(n_envs)
        first, second = round(teacher_share * n_envs), round((teacher_share + noisy_share) * n_envs)
        return cls(slots < first, (slots >= first) & (slots < second))


class Lesson:
    """One environment of the run, its teacher, and the episodes under way."""

    def __init__(self, env: BatchEnv, teacher: Policy, roles: Roles, seed: int, world: int = 0) -> None:
        self.env, self.teacher, self.roles = env, teacher, roles
        self.episodes = TrainingEpisodes(env, seed, world)
        self.running_reward = np.zeros(env.n_envs)
        self._orders: Ints | None = None
        """[B, N] the teacher's for the present states; None before it was asked."""
        self._begin(np.arange(env.n_envs))

    def _begin(self, slots: Ints) -> None:
        if len(slots):
            reset(self.env, self.teacher, slots, self.episodes.take(len(slots)))

    def ask(self, observation: BatchObservation) -> Ints:
        """[B, N] what the teacher would do now, -1 for no task. It is asked once before each step."""
        if self._orders is None:
            self._orders = act_with(self.teacher, self.env)(observation)
        return np.where(self._orders < 0, -1, self._orders)

    def step(self, orders: Ints) -> tuple[Figures, Step]:
        """Carry out the student's orders [B, N], and the teacher's where it is followed; figures of ended episodes.

        Only where the student is followed, without noise, is it known how good it is; where nobody but the teacher is
        followed, figures are the teacher's.
        """
        env, asked = self.env, self._orders
        assert asked is not None
        played = np.where(self.roles.teacher[:, None], asked, orders)
        result = env.step(played)
        check_finite("reward", result.reward)
        self.running_reward += result.reward
        ended = np.flatnonzero(result.terminated | result.truncated)
        own = ~(self.roles.teacher | self.roles.noisy)
        counted = own if own.any() else self.roles.teacher
        over = Ended()
        over.add(env, ended[counted[ended]], self.running_reward)
        self.running_reward[ended] = 0.0
        # A plan holds only as long as it is followed.
        strayed = (np.where(played < 0, -1, played) != np.where(asked < 0, -1, asked)).any(axis=1)
        self.teacher.replan(np.flatnonzero(strayed))
        self._begin(ended)
        self._orders = None
        return over.metrics(), result

    def outlook(self, observation: BatchObservation) -> Floats:
        """[B] what the teacher's plan is to earn from the present states on."""
        self.ask(observation)
        expected = self.teacher.expected_return(observation)
        assert expected is not None
        return expected

    def get_state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Everything needed to go on bit for bit, between two decisions: arrays, and plain values."""
        arrays = under("env", self.env.get_state())
        arrays |= under("teacher", self.teacher.get_memory())
        if self._orders is not None:
            arrays["orders"] = self._orders.copy()
        return arrays | {"running_reward": self.running_reward.copy()}, {"begun": self.episodes.begun}

    def set_state(self, arrays: dict[str, NDArray[Any]], plain: dict[str, Any]) -> None:
        """Go on from what `get_state` returned."""
        self.env.set_state(part(arrays, "env"))
        self.teacher.set_memory(part(arrays, "teacher"))
        self._orders = np.array(arrays["orders"]) if "orders" in arrays else None
        self.running_reward[...] = arrays["running_reward"]
        self.episodes.begun = plain["begun"]
