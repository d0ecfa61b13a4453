"""Mud: cells that hold up the ambulances that enter them, and that can only be guessed from afar.

How a cell looks is drawn first, and whether it is muddy given that; so the mud of unvisited cells can be drawn again.
Paths are the ambulances' own: diagonally first, then straight.
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
    """[B, H, W] LOOKS_MUDDY if it does, plus KNOWN where an ambulance has been: it looks as it is there."""
    held: Ints
    """[B, N] steps for which an ambulance still cannot move."""

    @classmethod
    def dry(cls, n_envs: int, n_agents: int, height: int, width: int) -> Ground:
        """Ground without mud."""
        return cls(
            np.zeros((n_envs, height, width), np.bool_),
            np.zeros((n_envs, height, width), np.uint8),
            np.zeros((n_envs, n_agents), np.int64),
        )

    def looks_muddy(self) -> Bools:
        """[B, H, W] where the ground looks muddy from afar."""
        return (self.look & LOOKS_MUDDY).astype(np.bool_)


def mud_to_cross(agents: Ints, victims: Ints, held: Ints, muddy: Bools) -> tuple[Floats, Floats]:
    """Muddy cells to be left from ambulance to victim [B, N, M] and from victim to victim [B, M, M].

    A cell that an ambulance is already stuck in counts for the part that is left.
    """
    row, column = victims[..., 0], victims[..., 1]
    first = muddy[np.arange(len(victims))[:, None], row, column].astype(np.float64)
    return _count_mud(agents, victims, held / HELD_UP, muddy), _count_mud(victims, victims, first, muddy)


def _count_mud(sources: Ints, targets: Ints, first: Floats, muddy: Bools) -> Floats:
    """[B, S, T] muddy cells to be left on the way, of which the source's own counts as `first` [B, S]."""
    counts = np.empty((*sources.shape[:2], targets.shape[1]))
    core.rescue.count_mud(sources, targets, first, muddy, counts)
    return counts
