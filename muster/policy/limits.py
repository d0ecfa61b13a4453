"""What a world says about pairs beside their scores: which are forbidden, and what changing tasks costs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from muster.data import Floats, Observation


def within_limits(seen: Observation, h: NDArray[Any]) -> Floats:
    """h [B, N, M] for the solver: -inf where a pair is not allowed, less the switch cost where an agent would leave.

    An agent leaves when it takes another task than `previous` while that one is still there. Staying idle costs
    nothing, as it always does.
    """
    scores = np.asarray(h, np.float64)
    if seen.switch_cost is not None and seen.previous is not None:
        had = np.maximum(seen.previous, 0)
        leaves = (seen.previous >= 0) & np.take_along_axis(seen.task_alive, had, axis=1)
        other = had[:, :, None] != np.arange(scores.shape[2])
        scores = scores - seen.switch_cost * (leaves[:, :, None] & other)
    if seen.allowed is not None:
        scores = np.where(seen.allowed, scores, -np.inf)
    return scores
