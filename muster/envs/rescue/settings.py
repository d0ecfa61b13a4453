"""The settings of a search-and-rescue environment, and the text that names one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from muster.envs.compiled import Threads
from muster.envs.naming import env_name, read_sized
from muster.errors import InputError
from muster.settings import AtLeast, Between, check_fields

Placement = Literal["distinct", "distinct-within-type", "independent"]


@dataclass(frozen=True, slots=True)
class RescueSettings:
    """Checked when made: settings that exist make an environment."""

    agents: Annotated[int, AtLeast(1)] = 2
    """Ambulances."""
    tasks: Annotated[int, AtLeast(1)] = 4
    """Victims."""
    grid: int | tuple[int, int] = 16
    """Side of a square grid, or (rows, columns)."""
    placement: Placement = "distinct"
    """Start cells: all distinct; distinct among ambulances and among victims, so that one may start on the cell of the
    other, who is then picked up at once; or independent."""
    random_moves: bool = False
    """Take a random move that shortens the distance, rather than diagonal first and then straight."""
    solved_assignable: bool = False
    """Let ambulances be sent to victims that are already picked up, as the paper allows."""
    mud: Annotated[float, Between(0, 1)] = 0.0
    """Share of muddy cells: an ambulance that enters one is held up for 2 steps. From afar a cell looks as it is with
    probability 0.95, and pair features count the cells on the way that look muddy."""
    max_steps: Annotated[int | None, AtLeast(1)] = None
    """Step limit; by default max(100, 2 · side · ceil(victims / ambulances)), and three times that in mud."""
    threads: Threads = "auto"
    """Step the batch on one core or on all; auto uses all when the batch is large. Changes no result."""

    def __post_init__(self) -> None:
        check_fields(self)
        if min(self.shape) < 1:
            raise InputError(f"the grid must have at least 1 row and 1 column, got {self.shape[0]}x{self.shape[1]}")
        if self.height * self.width > 2**31:
            raise InputError(f"the grid may have at most 2^31 cells, got {self.height}x{self.width}")
        if self.mud and self.random_moves:
            raise InputError("in mud ambulances keep to one way, which is what is looked along; leave out random_moves")
        cells = self.height * self.width
        needed = {"distinct": self.agents + self.tasks, "distinct-within-type": max(self.agents, self.tasks)}
        if needed.get(self.placement, 0) > cells:
            raise InputError(
                f"{needed[self.placement]} distinct start cells do not fit on the {cells} cells of a "
                f"{self.height}x{self.width} grid; enlarge grid or set placement=independent"
            )

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
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
    def step_limit(self) -> int:
        """`max_steps`, or by default twice what evenly shared victims at opposite edges take, and at least 100."""
        if self.max_steps is not None:
            return self.max_steps
        return max(100, 2 * max(self.shape) * -(-self.tasks // self.agents)) * (3 if self.mud else 1)

    @property
    def name(self) -> str:
        """The environment string that makes this environment."""
        return env_name(f"rescue:{self.agents}x{self.tasks}", self, ("agents", "tasks"))

    @classmethod
    def from_text(cls, text: str) -> RescueSettings:
        """Read "2x4" or "20x40,grid=32": agents x tasks, then any settings."""
        expected = "agents x tasks, such as rescue:2x4 or rescue:20x40,grid=32"
        return cls(**read_sized(cls, text, "rescue", expected))
