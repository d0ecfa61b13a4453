"""What a world says about pairs beside their scores: which are forbidden, and what changing tasks costs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from muster.data import Floats, Observation
from muster.inference.switching import less_switch_cost


def within_limits(seen: Observation, h: NDArray[Any]) -> Floats:
    """h [B, N, M] for the solver: -inf where a pair is not allowed, less the switch cost where an agent would leave.

    What leaving means is said in `muster.inference.switching`.
    """
    scores = np.asarray(h, np.float64)
    if seen.switch_cost is not None and seen.previous is not None:
        scores = less_switch_cost(scores, seen.previous, seen.task_alive, seen.switch_cost)
    if seen.allowed is not None:
        scores = np.where(seen.allowed, scores, -np.inf)
    return scores
