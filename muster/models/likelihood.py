"""How likely the played scores are under a model's, one formula each; the kernels of `gradient` have them too."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

# Bounds of the importance ratio, as in the authors' code.
SMALLEST_RATIO, LARGEST_RATIO = 1e-6, 10.0


def log_likelihood(played: torch.Tensor, mean: torch.Tensor, sigma: float) -> torch.Tensor:
    """log N(played; mean, sigma), element by element, up to the constant that no gradient sees."""
    return -0.5 * ((played - mean) / sigma) ** 2


def importance_ratio(new: torch.Tensor, old: torch.Tensor) -> torch.Tensor:
    """exp(new - old) of log-likelihoods, clamped; constants cancel."""
    return (new - old).exp().clamp(SMALLEST_RATIO, LARGEST_RATIO)
