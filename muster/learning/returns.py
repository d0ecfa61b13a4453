"""Returns: n-step, and TD(lambda)."""

from __future__ import annotations

import numpy as np

from muster.data import Bools, Floats


def n_step_returns(rewards: Floats, ended: Bools, after: Floats, discount: float) -> Floats:
    """R_t = r_t + discount·R_{t+1}, or r_t where the episode ended; R_T is `after`, the value of the last state.

    rewards and ended are [T, B], after is [B]. A truncated step's reward must already hold the value of its last state.
    """
    returns = np.empty_like(rewards)
    following = after
    for t in reversed(range(len(rewards))):
        following = rewards[t] + discount * np.where(ended[t], 0.0, following)
        returns[t] = following
    return returns


def traced_returns(
    rewards: Floats, ended: Bools, values: Floats, after: Floats, discount: float, trace: float
) -> Floats:
    """R_t = r_t + discount·((1 - trace)·V_{t+1} + trace·R_{t+1}), or r_t where the episode ended; R_T = V_T = `after`.

    values [T, B] are those of the states decided in. With trace 1 these are n-step returns.
    """
    returns = np.empty_like(rewards)
    following = after
    for t in reversed(range(len(rewards))):
        value = values[t + 1] if t + 1 < len(rewards) else after
        mixed = (1.0 - trace) * value + trace * following
        following = rewards[t] + discount * np.where(ended[t], 0.0, mixed)
        returns[t] = following
    return returns
