"""Random numbers whose stream depends on one seed alone.

Every environment slot owns one 64-bit SplitMix state, so an episode is the same whatever batch it runs in and
however many threads there are. Compiled code draws from them (core/random.hpp).
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from muster.errors import InputError

Seeds = NDArray[np.uint64]
SetName = int | Literal["sealed"]
"""Which set of episodes: a number, or the sealed one, for final evaluations that nothing was tuned on."""
SEALED_SET = 0x2B1674701DE25EEF
"""Drawn once by the operating system, beyond every set that a run's seed leads to."""

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_A = np.uint64(0xBF58476D1CE4E5B9)
_MIX_B = np.uint64(0x94D049BB133111EB)

# An episode's seed begins the environment's stream. What else is random in an episode begins with the seed xor one of
# these, so that it does not repeat the environment's numbers.
TIE_STREAM = np.uint64(0xD1B54A32D192ED03)
HEURISTIC_STREAM = np.uint64(0xA5A5A5A5A5A5A5A5)
NOISE_STREAM = np.uint64(0xA5A5A5A55A5A5A5A)


def episode_seeds(seed: SetName, indices: NDArray[np.int64]) -> Seeds:
    """One well-mixed 64-bit seed for each episode index of the set that `seed` names."""
    number = SEALED_SET if seed == "sealed" else seed
    if not isinstance(number, (int, np.integer)) or not 0 <= number < 2**64:
        raise InputError(f"a seed is a whole number from 0 to 2^64 - 1, or 'sealed', got {seed!r}")
    state = np.asarray(indices).astype(np.uint64)
    # Twice, so that neighbouring (seed, index) pairs share no structure.
    with np.errstate(over="ignore"):
        state = _mix(state + np.uint64(1)) ^ _mix(np.array(number, dtype=np.uint64) * _GOLDEN + _MIX_A)
        return np.atleast_1d(_mix(state + _GOLDEN))


def _mix(z: Seeds) -> Seeds:
    z = (z ^ (z >> np.uint64(30))) * _MIX_A
    z = (z ^ (z >> np.uint64(27))) * _MIX_B
    return z ^ (z >> np.uint64(31))
