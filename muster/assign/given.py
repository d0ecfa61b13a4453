"""A batch as it comes to the kernels."""

from __future__ import annotations

from typing import NamedTuple

from muster.data import Bools, Floats, Ints


class Given(NamedTuple):
    """A batch as it comes in: `muster.data.Problem` as arrays. Blocks that are not given have no rows."""

    scores: Floats
    """[B, N, M]"""
    task_scores: Floats
    """[B, M, M], or [0, 0, 0] for none"""
    contributions: Floats
    """[B, N, M], or [0, 0, 0] for 1"""
    capacities: Floats
    """[B, M]"""
    agent_alive: Bools
    """[B, N]"""
    task_alive: Bools
    """[B, M]"""
    allowed: Bools
    """[B, N, M], or [0, 0, 0] for all; what else is given of a pair that is not allowed is never looked at."""
    end_scores: Floats
    """[B, N, M], or [0, 0, 0] for none (PLAN)"""
    routes: Ints
    """[B, N, M] those to go on from, or [0, 0, 0] for none (PLAN)"""
    by_load: bool
    """Whether task scores act on contributions instead of numbers of agents (QUAD)."""
