"""What an environment says about pairs beside their scores: which are forbidden, and what changing tasks costs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from muster.assign.switching import less_switch_cost
from muster.data import BatchObservation, Floats


def less_switching(seen: BatchObservation, h: NDArray[Any]) -> NDArray[Any]:
    """h [B, N, M] less the switch cost where an agent would leave, as `muster.assign.switching` says."""
    if seen.switch_cost is None or seen.previous is None:
        return h
    return less_switch_cost(np.asarray(h, np.float64), seen.previous, seen.task_alive, seen.switch_cost)


def within_limits(seen: BatchObservation, h: NDArray[Any]) -> Floats:
    """The same with -inf where a pair is not allowed."""
    scores = np.asarray(less_switching(seen, h), np.float64)
    return scores if seen.allowed is None else np.where(seen.allowed, scores, -np.inf)
