"""n-step returns."""

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
