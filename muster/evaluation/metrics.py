"""What each metric counts, how it is said, and which way is better."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from muster.envs.vector import Metric


@dataclass(frozen=True, slots=True)
class Meaning:
    """How one metric is read."""

    label: str
    """For the axis of a picture."""
    short: str
    """For the head of a column."""
    digits: int
    better: Literal[1, -1]
    """1 if more is better, -1 if less is."""
    counts_all: bool
    """Whether an episode that hit the step limit counts like any other, rather than as failed."""


MEANINGS: dict[Metric, Meaning] = {
    "steps": Meaning("steps to the last task, T", "steps T", 2, -1, counts_all=False),
    "win_rate": Meaning("win rate", "win rate", 3, 1, counts_all=True),
    "return": Meaning("return: sum of rewards", "return", 2, 1, counts_all=True),
}
