"""Settings of pursuit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar

from muster.envs.compiled import Threads
from muster.envs.grid import GridSettings
from muster.errors import InputError
from muster.settings import AtLeast, Between, check_fields

MOST_SIGHT = 16
"""Largest `sight`: danger is a sum of powers of 4, which must fit in 64 bits for any number of pursuers."""


@dataclass(frozen=True, slots=True)
class PursuitSettings(GridSettings):
    """Settings of a pursuit environment, checked when made."""

    family: ClassVar[str] = "pursuit"
    expected: ClassVar[str] = "pursuers x evaders, such as pursuit:4x2 or pursuit:40x20,needed=3"
    agents: Annotated[int, AtLeast(1)] = 4
    """Pursuers."""
    tasks: Annotated[int, AtLeast(1)] = 2
    """Evaders."""
    grid: int | tuple[int, int] | None = None
    """Side of a square grid, or (rows, columns); None for a square with the density of 4x2 on 16x16."""
    walls: bool = False
    """Whether the grid has walls; without walls it wraps."""
    needed: Annotated[int, AtLeast(1)] = 2
    """Pursuers that must stand beside an evader to catch it; also the capacity of the task."""
    sight: Annotated[int, Between(1, MOST_SIGHT)] = 6
    """Distance in king's moves up to which an evader sees a pursuer."""
    speed: Annotated[float, Between(0, 1)] = 0.75
    """Probability that an evader moves in a step; pursuers always may."""
    max_steps: Annotated[int, AtLeast(1)] = 200
    """Step limit."""
    threads: Threads = "auto"
    """Cores for a step of the batch: one, all, or all only if the batch is large (auto). Changes no result."""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.needed > self.agents:
            raise InputError(f"needed={self.needed} pursuers to catch an evader, but there are {self.agents} pursuers")
        self.check_grid(self.agents + self.tasks, "enlarge grid")

    @property
    def default_side(self) -> int:
        """Side of a square with as many cells for each pursuer and evader as 4x2 has on 16x16."""
        return round(16 * math.sqrt((self.agents + self.tasks) / 6))
