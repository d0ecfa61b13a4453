"""The settings of a pursuit environment, and the text that names one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

from muster.envs.compiled import Threads
from muster.envs.naming import env_name, read_sized
from muster.errors import InputError
from muster.settings import AtLeast, Between, check_fields

UNITS_PER_CELL = 1 / 8
"""Distances are observed in units of 8 cells."""
MOST_SIGHT = 16
"""Danger is counted in powers of 4, which must fit in 64 bits for any number of pursuers."""


@dataclass(frozen=True, slots=True)
class PursuitSettings:
    """Checked when made: settings that exist make an environment."""

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
        if min(self.shape) < 1:
            raise InputError(f"the grid must have at least 1 row and 1 column, got {self.height}x{self.width}")
        cells = self.height * self.width
        if cells > 2**31:
            raise InputError(f"the grid may have at most 2^31 cells, got {self.height}x{self.width}")
        if self.agents + self.tasks > cells:
            raise InputError(
                f"{self.agents + self.tasks} distinct start cells do not fit on the {cells} cells of a "
                f"{self.height}x{self.width} grid; enlarge grid"
            )

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns; by default as many cells for each pursuer and evader as 4x2 has on 16x16."""
        if self.grid is None:
            side = round(16 * math.sqrt((self.agents + self.tasks) / 6))
            return side, side
        return self.grid if isinstance(self.grid, tuple) else (self.grid, self.grid)

    @property
    def height(self) -> int:
        """Rows."""
        return self.shape[0]

    @property
    def width(self) -> int:
        """Columns."""
        return self.shape[1]

    @property
    def name(self) -> str:
        """The environment string that makes this environment."""
        return env_name(f"pursuit:{self.agents}x{self.tasks}", self, ("agents", "tasks"))

    @classmethod
    def from_text(cls, text: str) -> PursuitSettings:
        """Read "4x2" or "40x20,needed=3,grid=64": pursuers x evaders, then any settings."""
        expected = "pursuers x evaders, such as pursuit:4x2 or pursuit:40x20,needed=3"
        return cls(**read_sized(cls, text, "pursuit", expected))
