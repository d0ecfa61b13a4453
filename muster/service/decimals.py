"""Decimal numbers as the nearest double, in a kernel: m·10^e for whole m below 10^18.

Where m and 10^|e| are doubles themselves, one multiplication or division rounds correctly. Otherwise both are sums of
two doubles, and so is their product: its error is below 2^-100 of it, so that it rounds as the true value does unless
that lies next to the middle between two doubles. Those (one in some 2^40) are left to others, as are exponents beyond
44.
"""

from __future__ import annotations

import math

import numpy as np

from muster.compile import leaf

MOST_DIGITS = 18
FARTHEST = 44
"""5^44 is the sum of two doubles."""
_EXACT = 22
"""10^22 is a double."""
_SPLIT = 134217729.0
_POWERS = np.array([float(10**k) for k in range(FARTHEST + 1)])
_POWERS_REST = np.array([float(10**k - int(float(10**k))) for k in range(FARTHEST + 1)])
UNSETTLED = math.nan
_MIDDLE = 2.0**-95
"""Of a number: how far from the middle between two doubles it has to be."""


@leaf
def two_product(a: float, b: float) -> tuple[float, float]:
    """a·b as the sum of two doubles (Dekker): the rounded product, and what rounding took."""
    product = a * b
    wide = _SPLIT * a
    a_high = wide - (wide - a)
    a_low = a - a_high
    wide = _SPLIT * b
    b_high = wide - (wide - b)
    b_low = b - b_high
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


@leaf
def settled(near: float, rest: float) -> float:
    """near + rest, |rest| below near's last digits; UNSETTLED where an error of 2^-100 could change the answer."""
    total = near + rest
    left = abs(rest - (total - near))
    _, exponent = math.frexp(total)
    half = math.ldexp(0.5, exponent - 53)
    # Below a power of two doubles lie twice as close.
    close = min(abs(left - half), abs(left - 0.5 * half)) <= _MIDDLE * total
    return UNSETTLED if close else total


@leaf
def decimal(m: int, e: int) -> float:
    """The double nearest to m·10^e for 0 <= m < 10^18, or UNSETTLED."""
    high = float(m)
    low = float(m - int(high))
    size = abs(e)
    if m == 0:
        return 0.0
    if size > FARTHEST:
        return UNSETTLED
    power, power_rest = _POWERS[size], _POWERS_REST[size]
    if low == 0.0 and size <= _EXACT:
        return high * power if e >= 0 else high / power
    if e >= 0:
        product, error = two_product(high, power)
        return settled(product, error + (high * power_rest + low * power))
    quotient = high / power
    product, error = two_product(quotient, power)
    return settled(quotient, (((high - product) - error) + low - quotient * power_rest) / power)
