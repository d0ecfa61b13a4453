"""Battles of StarCraft: Brood War units (core/envs/battle)."""

import numpy as np
from numpy.typing import NDArray

class Battles:
    """A batch of battles on arrays that Python owns, reads and may overwrite between two calls.

    A call works on battles begin..end-1.
    """

    def __init__(
        self,
        units: NDArray[np.int32],
        counters: NDArray[np.int64],
        bullets: NDArray[np.int32],
        cells: NDArray[np.int16],
        rng: NDArray[np.uint64],
        types: NDArray[np.int64],
        roster: NDArray[np.int64],
        n_ours: int,
        latency: int,
        bot_step: int,
        first_order: int,
        standing: int,
        fog: bool,
        opponent_first: bool,
    ) -> None: ...
    def reset(self, slots: NDArray[np.int64], seeds: NDArray[np.uint64]) -> None:
        """Begin the battle of `seeds[k]` in slot `slots[k]`."""

    def run_frames(self, orders: NDArray[np.int64], frames: int, begin: int, end: int) -> None:
        """Carry out `orders` [B, N] (enemy index, -2 stop, -3 attack-move) for so many frames."""

    def step(
        self,
        orders: NDArray[np.int64],
        max_steps: int,
        final_reward: bool,
        rewards: NDArray[np.float64],
        terminated: NDArray[np.bool_],
        truncated: NDArray[np.bool_],
        begin: int,
        end: int,
    ) -> None:
        """Carry out one decision and fill what it gives: rewards [B], terminated [B] and truncated [B]."""

    def observe(
        self,
        ranges: NDArray[np.float64],
        one_hot: bool,
        distance_scale: float,
        agents: NDArray[np.float32],
        tasks: NDArray[np.float32],
        pairs: NDArray[np.float32],
        contributions: NDArray[np.float64],
        capacities: NDArray[np.float64],
        begin: int,
        end: int,
    ) -> None:
        """Fill agents [B, N, F], tasks [B, M, F], pairs [B, N, M, 2], contributions [B, N, M], capacities [B, M]."""

    def draw_planes(
        self,
        agents: NDArray[np.float32],
        tasks: NDArray[np.float32],
        planes: NDArray[np.float32],
        places: NDArray[np.int64],
    ) -> None:
        """Add the units' features to planes [B, 2F, 100, 100] at the places [B, U, 2] (row, column) that it fills."""

    def resolve(self, guess: bool, assignment: NDArray[np.int64], orders: NDArray[np.int64]) -> bool:
        """Fill the orders [B, N] that an assignment [B, N] leads to; `guess` from capacities which chose to idle.

        False if the assignment holds an impossible number.
        """

    def decide(
        self,
        heuristic: int,
        fixed: bool,
        rng: NDArray[np.uint64],
        memory: NDArray[np.int64],
        orders: NDArray[np.int64],
        begin: int,
        end: int,
    ) -> None:
        """Fill the orders [B, N] of one heuristic; `memory` [B, N + 2] is its own."""

def length(x: int, y: int) -> int:
    """The engine's length of a vector."""

def direction(x: int, y: int) -> int:
    """Direction 0..255 of a vector, 0 up, clockwise."""

def hash_order(keys: NDArray[np.int64], order: NDArray[np.int64]) -> int:
    """Put `order` into the iteration order of a C++ hash map of `keys`, in place; how often the map grew."""
