"""Scoring models and the critic (core/models)."""

import numpy as np
from numpy.typing import NDArray

class Pairs:
    """Inputs of a network for B instances: objects on two sides, their pairs, and which objects are alive.

    Empty arrays stand for: all allowed, no prior, no features of the environment.
    """

    def __init__(
        self,
        left: NDArray[np.float32],
        right: NDArray[np.float32],
        pair: NDArray[np.float32],
        left_alive: NDArray[np.bool_],
        right_alive: NDArray[np.bool_],
        allowed: NDArray[np.bool_],
        prior: NDArray[np.float64],
        shared: NDArray[np.float32],
    ) -> None: ...

class PairNetwork:
    """P networks over pairs of objects; `parameters` [P, size] lie one array after the other (`direct.PARTS`)."""

    def __init__(
        self, parameters: NDArray[np.float32], left: int, right: int, pair: int, hidden: int, has_scale: bool
    ) -> None: ...
    @property
    def words(self) -> int:
        """Words of 32 bits that hold the gates of a pair."""

    def score(self, pairs: Pairs, scores: NDArray[np.float32], gates: NDArray[np.uint32] | None) -> None:
        """Fill scores [B, N, M], and gates [B, N, M, words]: which hidden units are above 0."""

    def add_gradient(
        self,
        pairs: Pairs,
        slopes: NDArray[np.float32],
        gates: NDArray[np.uint32] | None,
        gradient: NDArray[np.float64],
    ) -> None:
        """Add to gradient [size] that of a loss whose slopes in the scores are given."""

class EntityCritic:
    """The critic's three networks; `parameters` lie one array after the other (`critic.critic_shapes`)."""

    def __init__(self, parameters: NDArray[np.float32], agents: int, tasks: int, shared: int, width: int) -> None: ...
    def value(
        self,
        agents: NDArray[np.float32],
        tasks: NDArray[np.float32],
        agent_alive: NDArray[np.bool_],
        task_alive: NDArray[np.bool_],
        shared: NDArray[np.float32],
        values: NDArray[np.float32],
    ) -> None:
        """Fill values [B]."""

    def add_gradient(
        self,
        agents: NDArray[np.float32],
        tasks: NDArray[np.float32],
        agent_alive: NDArray[np.bool_],
        task_alive: NDArray[np.bool_],
        shared: NDArray[np.float32],
        target: NDArray[np.float32],
        values: NDArray[np.float32],
        gradient: NDArray[np.float64],
    ) -> float:
        """Fill values [B], add the gradient of their mean Huber loss, and return the loss."""

def fill_layer(
    x: NDArray[np.float32],
    weight: NDArray[np.float32],
    bias: NDArray[np.float32],
    rectified: bool,
    y: NDArray[np.float32],
) -> None:
    """y [B, N, C] = x weight + bias, no less than 0 if rectified."""

def listen(
    relation: NDArray[np.float32],
    logit: NDArray[np.float32],
    pull: NDArray[np.float32],
    x: NDArray[np.float32],
    y: NDArray[np.float32],
    features: NDArray[np.float32],
    distance: NDArray[np.float32],
    audible: NDArray[np.bool_],
    heard: NDArray[np.float32],
) -> None:
    """Fill heard [B, X, C]: the attention of listeners x to speakers y."""

def exp(x: NDArray[np.float32]) -> None:
    """e^x in place."""
