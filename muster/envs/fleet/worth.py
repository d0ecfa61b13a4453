"""What a vehicle that becomes free in a zone can still expect to earn: a mean field of the whole hour.

Let x vehicles stand free in a zone and D ~ Poisson requests leave it in a minute, of which those are worth taking
that lead to a better place than waiting does. One vehicle more is needed with probability q = P(D > X), X ~ Poisson(x):

    V(t, z) = q · mean over those destinations d of [margin(z, d) + V(t + minutes, d)] + (1 - q) · V(t + 1, z)

Vehicles flow where the requests take them, which gives x again: a few damped rounds settle it.
"""

from __future__ import annotations

import math

import numpy as np

from muster.compile import entry, maker
from muster.data import Floats, Ints

ROUNDS = 12


@entry
def meet(x: float, rate: float) -> tuple[float, float]:
    """E[min(D, X)] and P(D > X) for independent Poisson D and X of these means."""
    if rate <= 0.0:
        return 0.0, 0.0
    both, more = 0.0, 0.0
    at_x, at_d = math.exp(-x), math.exp(-rate)
    up_to_x, up_to_d = at_x, at_d
    k = 0
    while k < 1000:
        above_x, above_d = max(1.0 - up_to_x, 0.0), max(1.0 - up_to_d, 0.0)
        more += at_x * above_d
        both += above_x * above_d
        k += 1
        if above_d < 1e-9 or (above_x < 1e-9 and k > x):
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
    """[T + 1, Z] twice: V(t, z), and what a vehicle that takes a request there and then earns from it on.

    `expected` [T, Z] requests, `shares` [Z, Z] of destinations by origin, `margins` [Z, Z] fare less driving.
    """
    n_minutes, n_zones = expected.shape
    worth, taking = np.zeros((n_minutes + 1, n_zones)), np.zeros((n_minutes + 1, n_zones))
    needed, standing = np.zeros((n_minutes, n_zones)), np.zeros((n_minutes, n_zones))
    for turn in range(ROUNDS):
        _flow(expected, shares, margins, minutes, vehicles, worth, standing, needed, 1.0 if turn == 0 else 0.5)
        for t in range(n_minutes - 1, -1, -1):
            for z in range(n_zones):
                total, wanted = 0.0, 0.0
                for d in range(n_zones):
                    gain = margins[z, d] + worth[min(t + minutes[z, d], n_minutes), d]
                    if gain > worth[t + 1, z]:
                        total += shares[z, d] * gain
                        wanted += shares[z, d]
                taking[t, z] = total / wanted if wanted > 0.0 else worth[t + 1, z]
                worth[t, z] = needed[t, z] * taking[t, z] + (1.0 - needed[t, z]) * worth[t + 1, z]
    return worth, taking


@maker
def _flow(
    expected: Floats,
    shares: Floats,
    margins: Floats,
    minutes: Ints,
    vehicles: float,
    worth: Floats,
    standing: Floats,
    needed: Floats,
    damping: float,
) -> None:
    """Who stands where, given what is worth taking: `standing` moves by `damping`, `needed` becomes P(D > X)."""
    n_minutes, n_zones = expected.shape
    arriving = np.zeros((n_minutes, n_zones))
    now, served = np.full(n_zones, vehicles / n_zones), np.zeros(n_zones)
    for t in range(n_minutes):
        now += arriving[t]
        for z in range(n_zones):
            wanted = 0.0
            for d in range(n_zones):
                if margins[z, d] + worth[min(t + minutes[z, d], n_minutes), d] > worth[t + 1, z]:
                    wanted += shares[z, d]
            standing[t, z] += damping * (now[z] - standing[t, z])
            served[z], needed[t, z] = meet(standing[t, z], expected[t, z] * wanted)
            served[z] = min(served[z], now[z])
            for d in range(n_zones):
                # A trip takes a minute at least, as far as this is concerned.
                after = t + max(minutes[z, d], 1)
                if after < n_minutes and margins[z, d] + worth[after, d] > worth[t + 1, z]:
                    arriving[after, d] += served[z] * shares[z, d] / wanted
        now -= served
