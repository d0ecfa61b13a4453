"""King's moves between cells."""

from __future__ import annotations

import numpy as np

from muster.data import Ints


def chebyshev(sources: Ints, targets: Ints) -> Ints:
    """[B, S, T] king's moves from each source cell [B, S, 2] to each target cell [B, T, 2]."""
    return np.abs(sources[:, :, None] - targets[:, None]).max(axis=-1)
