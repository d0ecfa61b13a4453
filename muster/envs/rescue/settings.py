"""The settings of a search-and-rescue world, and the text that names one."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from typing import Any, Literal, get_args

from muster.errors import InputError, UnknownNameError

Placement = Literal["distinct", "distinct-within-type", "independent"]
Features = Literal["raw", "pair"]
Threads = Literal["auto", "one", "all"]

_CHOICES = {"placement": get_args(Placement), "features": get_args(Features), "threads": get_args(Threads)}
_PAIR = re.compile(r"(\d+)x(\d+)")


@dataclass(frozen=True, slots=True)
class RescueSettings:
    """Checked when made: whatever exists can be played."""

    agents: int = 2
    """Ambulances."""
    tasks: int = 4
    """Victims."""
    grid: int | tuple[int, int] = 16
    """Side of a square grid, or (rows, columns)."""
    placement: Placement = "distinct"
    """Start cells: all distinct, distinct among ambulances and among victims, or independent."""
    random_moves: bool = False
    """Take a random move that shortens the distance, rather than diagonal first and then straight."""
    solved_assignable: bool = False
    """Let ambulances be sent to victims that are already picked up, as the paper allows."""
    max_steps: int | None = None
    """Step limit; None for 100, or more where the grid is large or the ambulances are few (see `step_limit`)."""
    features: Features = "raw"
    """raw: coordinates and the solved flag; pair: relative positions of pairs beside them."""
    planes: bool = False
    """Also draw the paper's four feature planes, for convolutional models."""
    threads: Threads = "auto"
    """Step the batch on one core or on all; auto uses all when the batch is large."""

    def __post_init__(self) -> None:
        for name in ("agents", "tasks"):
            if getattr(self, name) < 1:
                raise InputError(f"a rescue world needs at least 1 of {name}, got {getattr(self, name)}")
        if min(self.shape) < 1:
            raise InputError(f"the grid must have at least 1 row and 1 column, got {self.shape[0]}x{self.shape[1]}")
        if self.height * self.width > 2**31:
            raise InputError(f"the grid may have at most 2^31 cells, got {self.height}x{self.width}")
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise UnknownNameError(name, str(getattr(self, name)), choices)
        cells = self.height * self.width
        needed = {"distinct": self.agents + self.tasks, "distinct-within-type": max(self.agents, self.tasks)}
        if needed.get(self.placement, 0) > cells:
            raise InputError(
                f"{needed[self.placement]} distinct start cells do not fit on the {cells} cells of a "
                f"{self.height}x{self.width} grid; enlarge grid or set placement=independent"
            )
        if self.max_steps is not None and self.max_steps < 1:
            raise InputError(f"max_steps must be at least 1, got {self.max_steps}")

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
        return max(100, 2 * max(self.shape) * -(-self.tasks // self.agents))

    @property
    def name(self) -> str:
        """The environment string that makes this world."""
        changed = [
            f"{field.name}={_write(getattr(self, field.name))}"
            for field in dataclasses.fields(self)
            if field.name not in ("agents", "tasks") and getattr(self, field.name) != field.default
        ]
        return ",".join([f"rescue:{self.agents}x{self.tasks}", *changed])

    @classmethod
    def from_text(cls, text: str) -> RescueSettings:
        """Read "2x4" or "20x40,grid=32,features=pair": agents x tasks, then any settings."""
        size, *options = [part.strip() for part in text.split(",")]
        found = _PAIR.fullmatch(size)
        if not found:
            raise InputError(f"rescue takes agents x tasks, such as rescue:2x4 or rescue:20x40,grid=32; got {text!r}")
        values: dict[str, Any] = {"agents": int(found[1]), "tasks": int(found[2])}
        names = [field.name for field in dataclasses.fields(cls) if field.name not in values]
        for option in options:
            name, equals, value = option.partition("=")
            if name not in names:
                raise UnknownNameError("rescue setting", name, names)
            if not equals:
                raise InputError(f"a rescue setting reads name=value, got {option!r}")
            values[name] = _read(name, value)
        return cls(**values)


def _read(name: str, value: str) -> Any:
    if name in ("random_moves", "solved_assignable", "planes"):
        if value not in ("true", "false"):
            raise InputError(f"{name} is true or false, got {value!r}")
        return value == "true"
    if name in _CHOICES:
        return value
    if name == "grid" and (found := _PAIR.fullmatch(value)):
        return int(found[1]), int(found[2])
    if not value.isdecimal():
        wanted = "a whole number or rowsxcolumns, such as 32 or 20x40" if name == "grid" else "a whole number"
        raise InputError(f"{name} is {wanted}; got {value!r}")
    return int(value)


def _write(value: Any) -> str:
    if isinstance(value, tuple):
        return "x".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
