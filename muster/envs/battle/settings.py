"""Settings of battles: uncertain details of the engine, and observations and rewards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from muster.envs.battle.layout import DECISION_FRAMES, LOOK_PERIOD
from muster.errors import InputError
from muster.settings import AtLeast, Between, check_fields

SHOWN = ("final_reward", "planes", "raw_distance", "idle")
"""Settings of observations and rewards; the others are the engine's."""


@dataclass(frozen=True, slots=True)
class BattleSettings:
    """Details of the engine that are uncertain or fitted; then settings of observations and rewards."""

    latency: Annotated[int, Between(0, DECISION_FRAMES - 1)] = 2
    """Frames from a command to its effect, 0 to 5."""
    bot_step: Annotated[int, AtLeast(1)] = 1
    """Frames between two steps of the bot; a unit without target is stopped at each. 1, 2, 3 or 6."""
    first_order: Annotated[int, Between(-60, 10_000)] = 3
    """Frames from our first order to the opponent's; negative if theirs comes first."""
    fog: bool = True
    """Whether a target counts as in range only after an ally has seen it."""
    opponent_first: bool = True
    """Whether the opponent's units are updated before ours, as in the game, where they were created last."""
    standing: Annotated[int, Between(0, LOOK_PERIOD)] = 0
    """Frames, up to 9, since all units appeared, at our first decision; 0: their timers are random."""
    final_reward: bool = False
    """Add (our health - theirs) / our initial health at the end, as the authors' code does."""
    planes: bool = False
    """Draw the units' features on a 100 x 100 grid of walk tiles, for convolutional models (slow)."""
    raw_distance: bool = False
    """Observe distances in walk tiles instead of in units of 25 walk tiles."""
    idle: Literal["capacity", "reasons"] = "capacity"
    """How a unit that chose to idle is recognised. "capacity": any enemy has capacity left for it, wanted or not, as in
    the authors' code. "reasons": the policy says so, whose inference knows: -2 stops a unit, -1 keeps its last
    target."""

    def __post_init__(self) -> None:
        check_fields(self)
        if DECISION_FRAMES % self.bot_step:
            raise InputError(f"bot_step must divide the {DECISION_FRAMES} frames of a decision, got {self.bot_step}")
