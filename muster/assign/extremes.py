"""The largest of many numbers, several at once.

A maximum as Python writes it has to say what it is of NaN and of -0, so the compiler takes one number after the other,
and each waits for the one before. These are of numbers that are not NaN, where the order does not matter to the result:
the compiler takes as many side by side as the processor can.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import config, types
from numba.extending import intrinsic

from muster.compile import leaf
from muster.data import Floats

_FREE = ("nnan", "nsz")


def _chosen(sign: str) -> Callable[..., tuple[Any, Any]]:
    def choose(typing: Any, a: Any, b: Any) -> tuple[Any, Any]:
        del typing, a, b

        def generate(context: Any, builder: ir.IRBuilder, signature: Any, given: Any) -> Any:
            del context, signature
            first, second = given
            return builder.select(builder.fcmp_ordered(sign, first, second, flags=_FREE), first, second, flags=_FREE)

        return types.float64(types.float64, types.float64), generate

    return choose


larger: Callable[[float, float], float] = max if config.DISABLE_JIT else intrinsic(_chosen(">"))  # type: ignore[attr-defined]
"""The larger of two numbers, neither of which is NaN; of 0 and -0 either."""

smaller: Callable[[float, float], float] = min if config.DISABLE_JIT else intrinsic(_chosen("<"))  # type: ignore[attr-defined]
"""The smaller of them."""


@leaf
def extent(values: Floats) -> tuple[float, float]:
    """The smallest and the largest; both NaN if any of them is, inf and -inf if there are none."""
    low, high, sound = np.inf, -np.inf, True
    for j in range(values.shape[0]):
        sound &= values[j] == values[j]
        low, high = smaller(values[j], low), larger(values[j], high)
    return (low, high) if sound else (np.nan, np.nan)


@leaf
def largest_margin(values: Floats, prices: Floats) -> float:
    """The largest values[j] - prices[j]; -inf if there are none."""
    best = -np.inf
    for j in range(values.shape[0]):
        best = larger(values[j] - prices[j], best)
    return best


@leaf
def place_of(margin: float, values: Floats, prices: Floats) -> int:
    """The first j where values[j] - prices[j] is the margin, which is that of one of them."""
    j = 0
    while values[j] - prices[j] != margin:
        j += 1
    return j
