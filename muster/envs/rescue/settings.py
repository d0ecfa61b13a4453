"""Settings of search and rescue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from muster.envs.compiled import Threads
from muster.envs.grid import GridSettings
from muster.errors import InputError
from muster.settings import AtLeast, Between, check_fields

Placement = Literal["distinct", "distinct-within-type", "independent"]


@dataclass(frozen=True, slots=True)
class RescueSettings(GridSettings):
    """Settings of a search-and-rescue environment, checked when made."""

    family: ClassVar[str] = "rescue"
    expected: ClassVar[str] = "agents x tasks, such as rescue:2x4 or rescue:20x40,grid=32"
    agents: Annotated[int, AtLeast(1)] = 2
    """Ambulances."""
    tasks: Annotated[int, AtLeast(1)] = 4
    """Victims."""
    grid: int | tuple[int, int] = 16
    """Side of a square grid, or (rows, columns)."""
    placement: Placement = "distinct"
    """Start cells: all distinct; distinct among ambulances and among victims, so that a victim may start on the cell of
    an ambulance and is picked up at once; or independent."""
    random_moves: bool = False
    """Take a random move that shortens the distance, rather than diagonal first and then straight."""
    solved_assignable: bool = False
    """Keep victims that are picked up alive as tasks, as in the paper."""
    mud: Annotated[float, Between(0, 1)] = 0.0
    """Share of muddy cells, each of which holds an ambulance up for 2 steps. A cell looks from afar as it is with
    probability 0.95, and pair features count the cells on the way that look muddy."""
    max_steps: Annotated[int | None, AtLeast(1)] = None
    """Step limit; by default max(100, 2 · side · ceil(victims / ambulances)), and three times that in mud."""
    threads: Threads = "auto"
    """Cores for a step of the batch: one, all, or all only if the batch is large (auto). Changes no result."""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.mud and self.random_moves:
            raise InputError("mud is counted along fixed paths, which random moves leave; leave out random_moves")
        starts = {"distinct": self.agents + self.tasks, "distinct-within-type": max(self.agents, self.tasks)}
        self.check_grid(starts.get(self.placement, 0), "enlarge grid or set placement=independent")

    @property
    def step_limit(self) -> int:
        """`max_steps`, or by default twice the steps for evenly shared victims at opposite edges, and at least 100."""
        if self.max_steps is not None:
            return self.max_steps
        return max(100, 2 * max(self.shape) * -(-self.tasks // self.agents)) * (3 if self.mud else 1)
