"""Random numbers whose stream depends on one seed alone.

Every environment slot owns one 64-bit SplitMix state, so an episode is the same whatever batch it runs in and
however many threads there are. The kernels take the array of states and a slot, and advance that slot's state.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from muster.compile import glue, leaf

Seeds = NDArray[np.uint64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_A = np.uint64(0xBF58476D1CE4E5B9)
_MIX_B = np.uint64(0x94D049BB133111EB)

# An episode's seed begins its env's stream. What else is random in an episode begins with the seed xor one of these,
# so that it does not repeat the environment's numbers.
TIE_STREAM = np.uint64(0xD1B54A32D192ED03)
HEURISTIC_STREAM = np.uint64(0xA5A5A5A5A5A5A5A5)
NOISE_STREAM = np.uint64(0xA5A5A5A55A5A5A5A)


def episode_seeds(seed: int, indices: NDArray[np.int64]) -> Seeds:
    """One well-mixed 64-bit seed for each episode index of the set that `seed` names."""
    state = np.asarray(indices).astype(np.uint64)
    # Twice, so that neighbouring (seed, index) pairs share no structure.
    with np.errstate(over="ignore"):
        state = _mix(state + np.uint64(1)) ^ _mix(np.array(seed % 2**64, dtype=np.uint64) * _GOLDEN + _MIX_A)
        return np.atleast_1d(_mix(state + _GOLDEN))


def _mix(z: Seeds) -> Seeds:
    z = (z ^ (z >> np.uint64(30))) * _MIX_A
    z = (z ^ (z >> np.uint64(27))) * _MIX_B
    return z ^ (z >> np.uint64(31))


@glue
def next_u64(states: Seeds, slot: int) -> np.uint64:
    """The next 64 random bits of `slot`; advances `states[slot]`."""
    states[slot] += _GOLDEN
    z = states[slot]
    z = (z ^ (z >> np.uint64(30))) * _MIX_A
    z = (z ^ (z >> np.uint64(27))) * _MIX_B
    return z ^ (z >> np.uint64(31))


@leaf
def uniform(states: Seeds, slot: int) -> float:
    """Uniform in [0, 1)."""
    return (next_u64(states, slot) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@leaf
def below(states: Seeds, slot: int, n: int) -> np.int64:
    """Uniform integer in 0..n-1 (n up to 2^32, by multiply and shift)."""
    return np.int64(((next_u64(states, slot) >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))


@leaf
def normal(states: Seeds, slot: int) -> float:
    """Standard normal, by Box and Muller (one of the pair, so that the state is all there is to save)."""
    radius = math.sqrt(-2.0 * math.log(1.0 - uniform(states, slot)))
    return radius * math.cos(2.0 * math.pi * uniform(states, slot))
