"""Returns: n-step, and TD(lambda), whose difference from the values is generalised advantage estimation."""

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


def lambda_returns(
    rewards: Floats, ended: Bools, values: Floats, after: Floats, discount: float, gae_lambda: float
) -> Floats:
    """R_t = r_t + discount·((1 - lambda)·V_{t+1} + lambda·R_{t+1}), or r_t where the episode ended; R_T = V_T = after.

    values [T, B] are those of the states decided in. With lambda 1 these are n-step returns.
    """
    returns = np.empty_like(rewards)
    following = after
    for t in reversed(range(len(rewards))):
        value = values[t + 1] if t + 1 < len(rewards) else after
        mixed = (1.0 - gae_lambda) * value + gae_lambda * following
        following = rewards[t] + discount * np.where(ended[t], 0.0, mixed)
        returns[t] = following
    return returns
