"""Returns, likelihoods and ratios: pure functions, one formula each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from muster.data import Bools, Floats

if TYPE_CHECKING:
    import torch

# Bounds of the importance ratio, as in the authors' code.
SMALLEST_RATIO, LARGEST_RATIO = 1e-6, 10.0


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


def log_likelihood(played: torch.Tensor, mean: torch.Tensor, sigma: float) -> torch.Tensor:
    """Log N(played; mean, sigma), element by element, up to the constant that no gradient sees."""
    return -0.5 * ((played - mean) / sigma) ** 2


def importance_ratio(new: torch.Tensor, old: torch.Tensor) -> torch.Tensor:
    """exp(new - old) of log-likelihoods, clamped; constants cancel."""
    return (new - old).exp().clamp(SMALLEST_RATIO, LARGEST_RATIO)
