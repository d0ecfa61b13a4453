"""The settings of a pursuit environment, and the text that names one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar

from muster.envs.compiled import Threads
from muster.envs.grid import GridSettings
from muster.errors import InputError
from muster.settings import AtLeast, Between, check_fields

MOST_SIGHT = 16
"""Danger is counted in powers of 4, which must fit in 64 bits for any number of pursuers."""


@dataclass(frozen=True, slots=True)
class PursuitSettings(GridSettings):
    """Checked when made: settings that exist make an environment."""

    family: ClassVar[str] = "pursuit"
    expected: ClassVar[str] = "pursuers x evaders, such as pursuit:4x2 or pursuit:40x20,needed=3"
    agents: Annotated[int, AtLeast(1)] = 4
    """Pursuers."""
    tasks: Annotated[int, AtLeast(1)] = 2
    """Evaders."""
    grid: int | tuple[int, int] | None = None
    """Side of a square grid, or (rows, columns); None for a side that keeps the density of 4x2 on 16x16."""
    walls: bool = False
    """Walls round the grid; otherwise one that leaves it on one side comes in on the other."""
    needed: Annotated[int, AtLeast(1)] = 2
    """Pursuers that must stand beside an evader at once to catch it; also its capacity."""
    sight: Annotated[int, Between(1, MOST_SIGHT)] = 6
    """Cells from which an evader sees a pursuer (king's moves)."""
    speed: Annotated[float, Between(0, 1)] = 0.75
    """Chance that an evader moves in a step; pursuers always may."""
    max_steps: Annotated[int, AtLeast(1)] = 200
    """Step limit."""
    threads: Threads = "auto"
    """Step the batch on one core or on all; auto uses all when the batch is large."""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.needed > self.agents:
            raise InputError(f"{self.agents} pursuers can never be the {self.needed} needed to catch an evader")
        self.check_grid(self.agents + self.tasks, "enlarge grid")

    @property
    def default_side(self) -> int:
        """As many cells for each pursuer and evader as 4x2 has on 16x16."""
        return round(16 * math.sqrt((self.agents + self.tasks) / 6))
