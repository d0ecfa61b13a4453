"""The paper's heuristics as policies, with the search bug of the authors' code and without it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from muster.data import BatchObservation, Ints
from muster.envs.battle import layout as lay
from muster.envs.vector import Policy
from muster.rng import HEURISTIC_STREAM, Seeds

if TYPE_CHECKING:
    from muster.envs.battle.env import BattleEnv

CLOSEST, WEAKEST, NO_OVERKILL, NO_OVERKILL_NO_CHANGE, NO_OVERKILL_SMART, RANDOM, ATTACK_MOVE = range(7)
"""The engine's codes of the heuristics (core/envs/battle/heuristics.hpp)."""


class Heuristic(NamedTuple):
    """A heuristic; `fixed`: without the authors' search bug."""

    code: int
    fixed: bool
    summary: str


HEURISTICS = {
    "c": Heuristic(CLOSEST, False, "each unit attacks the closest enemy"),
    "wc": Heuristic(WEAKEST, False, "all attack the weakest enemy, the closest of equals"),
    "wcnok": Heuristic(NO_OVERKILL, False, "weakest first, no more attackers than needed to kill"),
    "wcnoknc": Heuristic(NO_OVERKILL_NO_CHANGE, False, "as wcnok, but a target is kept until it dies"),
    "wcnoks": Heuristic(
        NO_OVERKILL_SMART, False, "as wcnoknc, but a target is kept only while that does not over-kill"
    ),
    "rand-nc": Heuristic(RANDOM, False, "a random target, kept until it dies"),
    "wcnok-fixed": Heuristic(NO_OVERKILL, True, "wcnok without the authors' search bug"),
    "wcnoknc-fixed": Heuristic(NO_OVERKILL_NO_CHANGE, True, "wcnoknc without the authors' search bug"),
    "wcnoks-fixed": Heuristic(NO_OVERKILL_SMART, True, "wcnoks without the authors' search bug"),
    "attack-move": Heuristic(ATTACK_MOVE, False, "the opponent's own behaviour: attack-move to the enemy's middle"),
}
"""{name of a baseline: heuristic}."""


class HeuristicPolicy(Policy):
    """A heuristic for one environment object, whose state it reads instead of observations."""

    remembered = ("rng", "memory")

    def __init__(self, name: str, env: BattleEnv) -> None:
        self.name = name
        self._heuristic = HEURISTICS[name]
        self.about = self._heuristic.summary
        self._env = env
        self.rng = np.zeros(env.n_envs, dtype=np.uint64)
        self.memory = np.zeros((env.n_envs, env.n_agents + 2), dtype=np.int64)

    def reset(self, slots: Ints, seeds: Seeds) -> None:
        """Forget the targets in these slots, and seed the random stream, which only `rand-nc` uses."""
        self.memory[slots] = 0
        self.rng[slots] = np.asarray(seeds, dtype=np.uint64) ^ HEURISTIC_STREAM

    def act(self, observation: BatchObservation | None = None) -> Ints:
        """[B, N] orders: an enemy's index, -2 to stop or -3 to attack-move (see `BattleEnv.step`)."""
        env, heuristic = self._env, self._heuristic
        orders = np.full((env.n_envs, env.n_agents), lay.HOLD, dtype=np.int64)
        env.share_out(
            lambda begin, end: env.kernel.decide(
                heuristic.code, heuristic.fixed, self.rng, self.memory, orders, begin, end
            )
        )
        return orders
