"""Kernels of the fleet; arrays that are written to come last."""

from typing import Any

from numpy.typing import NDArray

AHEAD: int
HORIZON: int

class Fleet:
    def __init__(
        self,
        arrays: dict[str, NDArray[Any]],
        *,
        wait: int,
        cost: float,
        evenly: bool,
        unit: float,
        trip: float,
    ) -> None: ...
    def reset(self, slots: NDArray[Any], seeds: NDArray[Any]) -> None: ...
    def draw_requests(self, busyness: NDArray[Any]) -> None: ...
    def step(
        self,
        begin: int,
        end: int,
        assignment: NDArray[Any],
        reward: NDArray[Any],
        terminated: NDArray[Any],
        truncated: NDArray[Any],
    ) -> None: ...
    def observe(
        self,
        begin: int,
        end: int,
        agents: NDArray[Any],
        tasks: NDArray[Any],
        pairs: NDArray[Any],
        task_pairs: NDArray[Any],
        global_features: NDArray[Any],
        task_alive: NDArray[Any],
        allowed: NDArray[Any],
        prior: NDArray[Any],
    ) -> None: ...
    def send_greedily(self, assignment: NDArray[Any]) -> None: ...
    def score_flow(self, slot: int, requests: NDArray[Any], scores: NDArray[Any]) -> None: ...
    def first_bad_task(self, assignment: NDArray[Any]) -> int: ...

def meet(x: float, rate: float) -> tuple[float, float]: ...
def expect_worth(
    expected: NDArray[Any],
    shares: NDArray[Any],
    margins: NDArray[Any],
    minutes: NDArray[Any],
    vehicles: float,
    worth: NDArray[Any],
    taking: NDArray[Any],
) -> None: ...
