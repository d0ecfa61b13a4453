"""Kernels of pursuit; arrays that are written to come last."""

from typing import Any

from numpy.typing import NDArray

class Pursuit:
    def __init__(
        self,
        arrays: dict[str, NDArray[Any]],
        *,
        height: int,
        width: int,
        walls: bool,
        needed: int,
        sight: int,
        speed: float,
        max_steps: int,
    ) -> None: ...
    def reset(self, slots: NDArray[Any], seeds: NDArray[Any]) -> None: ...
    def step(
        self,
        begin: int,
        end: int,
        assignment: NDArray[Any],
        reward: NDArray[Any],
        terminated: NDArray[Any],
        truncated: NDArray[Any],
    ) -> None: ...
    def measure_distances(self, prior: NDArray[Any]) -> None: ...
    def observe_coordinates(self, agents: NDArray[Any], tasks: NDArray[Any]) -> None: ...
    def observe_relations(
        self, agents: NDArray[Any], tasks: NDArray[Any], pairs: NDArray[Any], task_pairs: NDArray[Any]
    ) -> None: ...
    def first_bad_task(self, assignment: NDArray[Any]) -> int: ...

def send_to_closest(
    distances: NDArray[Any], free: NDArray[Any], rng: NDArray[Any], assignment: NDArray[Any]
) -> None: ...
def gather_greedily(distances: NDArray[Any], free: NDArray[Any], needed: int, assignment: NDArray[Any]) -> None: ...
