"""The arrays of a batch of battles, and the calls that start and advance them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from muster.data import Ints
from muster.envs.battle import layout as lay
from muster.envs.battle.catalogue import Scenario, type_table, unit_types
from muster.envs.battle.dynamics import play_ahead, play_decisions
from muster.envs.battle.settings import BattleSettings
from muster.envs.battle.spawn import start_battles
from muster.parallel import share_out, thread_count
from muster.rng import Seeds

_WORTH_A_THREAD = 500
"""Units in a thread's share of the battles from which it is worth its start."""
_UNLIMITED = 4
"""Bullet slots a unit when there is no limit: more than it can have in the air."""


class World:
    """B battles of one scenario as plain arrays (see `muster.envs.battle.layout`)."""

    STATE = ("units", "counters", "bullets", "field", "rng")
    """The arrays that make up the battles; everything else is the scenario's."""

    def __init__(self, scenario: Scenario, settings: BattleSettings, n_envs: int) -> None:
        self.scenario = scenario
        self.settings = settings
        self.n_ours = scenario.n_ours
        self.n_units = scenario.n_ours + scenario.n_theirs
        self.types = type_table([unit_types()[name] for name in scenario.unit_names])
        self.params = settings.pack()
        self.roster = scenario.roster()
        limit = settings.bullet_limit or _UNLIMITED * self.n_units
        self.units = np.zeros((n_envs, lay.UNIT_FIELDS, self.n_units), dtype=np.int32)
        self.counters = np.zeros((n_envs, lay.COUNTERS), dtype=np.int64)
        self.bullets = np.zeros((n_envs, limit, lay.BULLET_FIELDS), dtype=np.int32)
        self.field = np.zeros((n_envs, lay.CELLS * lay.CELLS), dtype=np.int16)
        self.rng = np.zeros(n_envs, dtype=np.uint64)
        # Nothing goes on in a slot until an episode is started there.
        self.counters[:, lay.ENDED] = 1

    def reset(self, slots: Ints, seeds: Seeds) -> None:
        """Begin the battle of `seeds[k]` in slot `slots[k]`."""
        slots = np.asarray(slots, dtype=np.int64)
        start_battles(
            self.units, self.types, self.params, self.counters, self.bullets, self.field, self.n_ours, self.rng,
            self.roster, slots, np.asarray(seeds, dtype=np.uint64),
        )  # fmt: skip
        if self.settings.first_order < 0:
            play_ahead(
                self.units, self.types, self.params, self.counters, self.bullets, self.field, self.n_ours, self.rng,
                slots,
            )  # fmt: skip

    def play(self, orders: Ints, threads: int | None = None, frames: int | None = None) -> None:
        """One decision in every battle that goes on: `orders` [B, N] has enemy indices, HOLD or MARCH.

        `frames` stops in the middle of the decision, to look at; one cannot go on from there.
        """
        count = self.settings.decision_frames if frames is None else frames

        def play_part(begin: int, end: int) -> None:
            part = slice(begin, end)
            play_decisions(
                self.units[part], self.types, self.params, self.counters[part], self.bullets[part], self.field[part],
                self.n_ours, self.rng[part], orders[part], count,
            )  # fmt: skip

        self.share_out(threads, play_part)

    def share_out(self, threads: int | None, work: Callable[[int, int], None]) -> None:
        """Call `work(begin, end)` on shares of the battles, in so many threads (None: one a core) if they are many."""
        count = len(self.units)
        share_out(count, min(threads or thread_count(), count * self.n_units // _WORTH_A_THREAD), work)
