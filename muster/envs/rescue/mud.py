"""Mud: cells that hold ambulances up, and whose looks from afar are not certain.

The look of a cell is drawn first, and whether it is muddy given the look, so that the mud of unvisited cells can be
drawn again. Ambulances move diagonally first, then straight.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from muster.data import Bools, Floats, Ints
from muster.kernels import core

HELD_UP: int = core.rescue.HELD_UP
"""Steps that an ambulance spends in a muddy cell before it can move on."""
LOOKS_MUDDY: int = core.rescue.LOOKS_MUDDY
KNOWN: int = core.rescue.KNOWN


class Ground(NamedTuple):
    """The ground of B environments, and the ambulances that are stuck in it."""

    muddy: Bools
    """[B, H, W]"""
    look: NDArray[np.uint8]
    """[B, H, W] LOOKS_MUDDY or 0, plus KNOWN in visited cells, whose look is certain."""
    held: Ints
    """[B, N] steps until an ambulance can move again."""

    @classmethod
    def dry(cls, n_envs: int, n_agents: int, height: int, width: int) -> Ground:
        """Ground without mud."""
        return cls(
            np.zeros((n_envs, height, width), np.bool_),
            np.zeros((n_envs, height, width), np.uint8),
            np.zeros((n_envs, n_agents), np.int64),
        )

    def looks_muddy(self) -> Bools:
        """[B, H, W] whether a cell looks muddy."""
        return (self.look & LOOKS_MUDDY).astype(np.bool_)


def mud_to_cross(agents: Ints, victims: Ints, held: Ints, muddy: Bools) -> tuple[Floats, Floats]:
    """Numbers of muddy cells to leave on the way from ambulances [B, N, M] and from victims [B, M, M] to victims.

    A cell in which an ambulance is stuck counts by the share of the delay that is left.
    """
    row, column = victims[..., 0], victims[..., 1]
    first = muddy[np.arange(len(victims))[:, None], row, column].astype(np.float64)
    return _count_mud(agents, victims, held / HELD_UP, muddy), _count_mud(victims, victims, first, muddy)


def _count_mud(sources: Ints, targets: Ints, first: Floats, muddy: Bools) -> Floats:
    """[B, S, T] muddy cells to leave on the way; the source's own cell counts as `first` [B, S]."""
    counts = np.empty((*sources.shape[:2], targets.shape[1]))
    core.rescue.count_mud(sources, targets, first, muddy, counts)
    return counts
