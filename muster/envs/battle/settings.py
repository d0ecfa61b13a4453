"""Every mechanic of the simulator that is uncertain, fitted or worth switching off, as one named setting."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated

import numpy as np

from muster.envs.battle.layout import Int64s
from muster.errors import InputError
from muster.settings import AtLeast, Between, check_fields


@dataclass(frozen=True, slots=True)
class BattleSettings:
    """How faithfully, and in which of its uncertain details, the engine is imitated."""

    latency: Annotated[int, Between(0, 5)] = 2
    """Frames from a command to its effect, 0 to 5."""
    bot_step: Annotated[int, AtLeast(1)] = 1
    """Frames between two steps of the bot; a unit without target is stopped at each. 1, 2, 3 or 6."""
    decision_frames: Annotated[int, Between(1, 60)] = 6
    """Frames between two decisions."""
    reissue: Annotated[int, Between(1, 10_000)] = 60
    """Frames between two attack-move orders of the opponent."""
    first_order: Annotated[int, Between(-60, 10_000)] = 3
    """Frames by which the opponent's first order follows ours; negative: comes before it."""
    neutral_timer: bool = False
    """Draw the opponent's acquisition timer afresh at its first order, instead of what idling left."""
    bullet_limit: Annotated[int, Between(0, 10_000)] = 100
    """Shots that may exist at once; a shot beyond it is lost. 0 lifts the limit."""
    miss: bool = True
    """A shot misses once in 256."""
    missiles: bool = True
    """Wraiths' missiles fly; otherwise they hit at once."""
    homing: bool = False
    """Missiles follow their target; otherwise they fly to where it was, and hit it all the same."""
    jitter: bool = True
    """Cooldowns vary by -1 to +2 frames."""
    windup: bool = True
    """The first shot after another activity comes later."""
    unbreakable: bool = True
    """Orders wait for the unbreakable part of an attack."""
    halt_bonus: bool = True
    """A moving flyer counts its braking distance as range when it decides to stop."""
    look_period: Annotated[int, Between(1, 100)] = 9
    """An order is looked at every so many frames."""
    chase_period: Annotated[int, Between(0, 1_000)] = 15
    """Frames for which a chaser keeps flying to where its target was."""
    candidates: Annotated[int, Between(1, 64)] = 16
    """Enemies considered when a unit looks for a target by itself."""
    auto_target: bool = True
    """Units under fire, and their neighbours, turn on the shooter when they have nothing better."""
    follow_unseen: Annotated[int, Between(0, 100_000)] = 448
    """Pixels within which a chaser keeps track of a target that nobody sees."""
    fog: bool = True
    """A target can be judged in range only once an ally has seen it."""
    repulsion: bool = True
    """Flyers in one cell push each other apart."""
    collision: bool = True
    """Ground units do not walk through each other."""
    half_steps: bool = False
    """Blocked walkers try half and quarter steps."""
    start_delay: bool = True
    """Ground units wait 0 to 2 frames before they walk off on a command."""
    timer_reset: bool = True
    """Every 150 frames the order timers of all units are staggered."""
    opponent_first: bool = True
    """The opponent's units are updated before ours, as in the engine (they were created last)."""
    late_death: bool = False
    """A killed unit leaves at its own next update, so that others may still shoot at it; otherwise at once."""
    give_up: bool = False
    """A walker for whom no way round standing units exists stops where it is."""
    standing: int = 0
    """Frames, up to look_period, since all units appeared, at our first decision; 0: their timers are random."""

    def __post_init__(self) -> None:
        check_fields(self)
        if not 0 <= self.standing <= self.look_period:
            raise InputError(f"standing must be between 0 and {self.look_period}, got {self.standing}")
        if self.decision_frames % self.bot_step:
            raise InputError(f"bot_step must divide decision_frames ({self.decision_frames}), got {self.bot_step}")
        if self.latency >= self.decision_frames:
            raise InputError(f"latency must be below decision_frames ({self.decision_frames}), got {self.latency}")

    def pack(self) -> Int64s:
        """The settings as the kernels read them: one integer each, in the order of the fields."""
        return np.array([int(getattr(self, field.name)) for field in fields(self)], dtype=np.int64)


(
    P_LATENCY, P_BOT_STEP, P_DECISION, P_REISSUE, P_FIRST_ORDER, P_NEUTRAL_TIMER, P_BULLET_LIMIT, P_MISS,
    P_MISSILES, P_HOMING, P_JITTER, P_WINDUP, P_UNBREAKABLE, P_HALT_BONUS, P_LOOK, P_CHASE, P_CANDIDATES,
    P_AUTO_TARGET, P_FOLLOW_UNSEEN, P_FOG, P_REPULSION, P_COLLISION, P_HALF_STEPS, P_START_DELAY, P_TIMER_RESET,
    P_OPPONENT_FIRST, P_LATE_DEATH, P_GIVE_UP, P_STANDING,
) = range(len(fields(BattleSettings)))  # fmt: skip
"""Places of the settings in the array that `pack` gives."""
