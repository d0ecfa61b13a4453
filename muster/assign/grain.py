"""What numbers are multiples of: sums of multiples of a grain can be no more than the next multiple below a bound."""

from __future__ import annotations

import numpy as np

from muster.assign.instance import Instance
from muster.compile import kernel
from muster.data import Floats

# Numbers are looked at as multiples of 1 over these ...
SCALES = (1.0, 2.0, 4.0, 5.0, 8.0, 10.0, 20.0, 100.0, 1000.0)
# ... to this accuracy, and are whole only below this size.
WHOLE_TOLERANCE = 1e-9
LARGEST_WHOLE = 1e9


@kernel
def scale_to_whole(values: Floats, n: int, m: int) -> float:
    """The first of SCALES that makes all finite values[:n, :m] whole numbers, or 0 if none does."""
    for scale in SCALES:
        whole = True
        for i in range(n):
            for j in range(m):
                value = scale * values[i, j]
                if value != -np.inf and whole:
                    whole = abs(value) < LARGEST_WHOLE and abs(value - np.rint(value)) <= WHOLE_TOLERANCE
            if not whole:
                break
        if whole:
            return scale
    return 0.0


@kernel
def common_divisor(a: int, b: int) -> int:
    """The largest whole number that divides both."""
    while b != 0:
        a, b = b, a % b
    return a


@kernel
def grain_of(it: Instance) -> float:
    """What every score, and so the value of every assignment, is a multiple of; 0 if there is no such number."""
    n, m = it.facts[0].n, it.facts[0].m
    scale = scale_to_whole(it.score, n, m)
    if scale == 0.0:
        return 0.0
    divisor = 0
    for i in range(n):
        for j in range(m):
            if it.score[i, j] > -np.inf and divisor != 1:
                divisor = common_divisor(abs(int(np.rint(scale * it.score[i, j]))), divisor)
    return divisor / scale


@kernel
def whole_limit(it: Instance, limit: float, grain: float) -> float:
    """The largest value within `limit` that an assignment can have.

    A limit below what any assignment of all agents is worth counts penalties for agents left out, and stays as it is
    (as where an agent can do nothing at all).
    """
    if grain == 0.0:
        return limit
    least = 0.0
    if it.facts[0].idle < 0.0:
        for i in range(it.facts[0].n):
            low = np.inf
            for j in range(it.facts[0].m):
                if it.score[i, j] > -np.inf:
                    low = min(low, it.score[i, j])
            least += low
    if limit < least or abs(limit) > LARGEST_WHOLE * grain:
        return limit
    return float(np.floor(limit / grain + 1e-6) * grain)
