"""What a vehicle that becomes free in a zone can still expect to earn: a mean field of the whole hour.

Let x vehicles stand free in a zone, and D ~ Poisson requests leave it in a minute; whoever can takes one. One vehicle
more is needed with probability q = P(D > X), X ~ Poisson(x), so that it is worth

    taking(t, z) = mean over destinations d of [margin(z, d) + worth(t + minutes, d)]
    worth(t, z) = q · taking(t, z) + (1 - q) · worth(t + 1, z)

Vehicles flow where the requests take them, which gives x: a few damped rounds settle it.
"""

from __future__ import annotations

import math

import numpy as np

from muster.compile import entry, maker
from muster.data import Floats, Ints

ROUNDS = 12
DAMPING = 0.5
"""Undamped, the rounds swing between two answers."""
NEGLIGIBLE = 1e-9


@entry
def meet(x: float, rate: float) -> tuple[float, float]:
    """E[min(D, X)] and P(D > X) for independent Poisson D and X of means `rate` and `x`."""
    both, more = 0.0, 0.0
    at_x, at_d = math.exp(-x), math.exp(-rate)
    up_to_x, up_to_d = at_x, at_d
    for k in range(1, 1000):
        above_x, above_d = max(1.0 - up_to_x, 0.0), max(1.0 - up_to_d, 0.0)
        more += at_x * above_d
        both += above_x * above_d
        if (above_d < NEGLIGIBLE and k > rate) or (above_x < NEGLIGIBLE and k > x):
            break
        at_x *= x / k
        at_d *= rate / k
        up_to_x += at_x
        up_to_d += at_d
    return both, more


@entry
def expect_worth(
    expected: Floats, shares: Floats, margins: Floats, minutes: Ints, vehicles: float
) -> tuple[Floats, Floats]:
    """[T + 1, Z] twice: worth, and taking.

    `expected` [T, Z] requests, `shares` [Z, Z] of destinations by origin, `margins` [Z, Z] fare less driving.
    """
    n_minutes, n_zones = expected.shape
    worth, taking = np.zeros((n_minutes + 1, n_zones)), np.zeros((n_minutes + 1, n_zones))
    needed = find_needed(expected, shares, minutes, vehicles)
    for t in range(n_minutes - 1, -1, -1):
        for z in range(n_zones):
            for d in range(n_zones):
                taking[t, z] += shares[z, d] * (margins[z, d] + worth[min(t + max(minutes[z, d], 1), n_minutes), d])
            worth[t, z] = needed[t, z] * taking[t, z] + (1.0 - needed[t, z]) * worth[t + 1, z]
    return worth, taking


@maker
def find_needed(expected: Floats, shares: Floats, minutes: Ints, vehicles: float) -> Floats:
    """[T, Z] the chance that one vehicle more is needed, with vehicles spread evenly at first."""
    n_minutes, n_zones = expected.shape
    needed, standing = np.zeros((n_minutes, n_zones)), np.zeros((n_minutes, n_zones))
    for turn in range(ROUNDS):
        arriving = np.zeros((n_minutes, n_zones))
        now, served = np.full(n_zones, vehicles / n_zones), np.zeros(n_zones)
        for t in range(n_minutes):
            now += arriving[t]
            for z in range(n_zones):
                standing[t, z] += (1.0 if turn == 0 else DAMPING) * (now[z] - standing[t, z])
                both, needed[t, z] = meet(standing[t, z], expected[t, z])
                served[z] = min(both, now[z])
                for d in range(n_zones):
                    # A trip takes a minute at least, as far as this is concerned.
                    after = t + max(minutes[z, d], 1)
                    if after < n_minutes:
                        arriving[after, d] += served[z] * shares[z, d]
            now -= served
    return needed
