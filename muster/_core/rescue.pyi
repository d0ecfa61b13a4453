"""Kernels of search and rescue; arrays that are written to come last."""

from typing import Any

from numpy.typing import NDArray

HELD_UP: int
LOOKS_MUDDY: int
KNOWN: int

class Rescue:
    def __init__(
        self,
        arrays: dict[str, NDArray[Any]],
        *,
        placement: int,
        height: int,
        width: int,
        random_moves: bool,
        solved_assignable: bool,
        max_steps: int,
        mud: float,
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
    def redraw_mud(self) -> None: ...
    def first_bad_task(self, assignment: NDArray[Any]) -> int: ...

def observe_objects(
    agents: NDArray[Any],
    victims: NDArray[Any],
    waiting: NDArray[Any],
    height: int,
    width: int,
    agent_features: NDArray[Any],
    task_features: NDArray[Any],
) -> None: ...
def observe_pairs(sources: NDArray[Any], targets: NDArray[Any], features: NDArray[Any]) -> None: ...
def measure_distances(sources: NDArray[Any], targets: NDArray[Any], scale: float, distances: NDArray[Any]) -> None: ...
def draw_planes(agents: NDArray[Any], victims: NDArray[Any], waiting: NDArray[Any], planes: NDArray[Any]) -> None: ...
def count_mud(
    sources: NDArray[Any], targets: NDArray[Any], first: NDArray[Any], muddy: NDArray[Any], counts: NDArray[Any]
) -> None: ...
def send_to_closest(
    agents: NDArray[Any],
    victims: NDArray[Any],
    open: NDArray[Any],
    manhattan: bool,
    rng: NDArray[Any],
    assignment: NDArray[Any],
) -> None: ...
def follow_routes(routes: NDArray[Any], waiting: NDArray[Any], assignment: NDArray[Any]) -> None: ...
def fastest_routes(from_vehicles: NDArray[Any], between: NDArray[Any], routes: NDArray[Any]) -> int: ...
