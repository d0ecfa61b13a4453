"""Likelihood of the agents' choices, PPO's loss, and random numbers for exploration."""

from numpy import bool_, float32, float64, int64, uint64
from numpy.typing import NDArray

class Decisions:
    """S assignments and what they were chosen under; keeps the arrays alive."""

    def __init__(
        self,
        assignment: NDArray[int64],
        history: NDArray[float32],
        contributions: NDArray[float64],
        capacities: NDArray[float64],
        agent_alive: NDArray[bool_],
        open: NDArray[bool_],
        idling: bool,
        exchanging: bool,
        minimums: NDArray[float64],
    ) -> None: ...

def fill_likelihood(
    decisions: Decisions, h: NDArray[float32], g: NDArray[float32], tau: float, likelihood: NDArray[float64]
) -> None: ...
def share_with_moves(decisions: Decisions) -> float: ...
def fill_slopes(
    decisions: Decisions,
    h: NDArray[float32],
    g: NDArray[float32],
    tau: float,
    before: NDArray[float64],
    advantage: NDArray[float64],
    clip: float,
    entropy: float,
    weight: float,
    slope_h: NDArray[float32],
    slope_g: NDArray[float32],
) -> tuple[float, float]: ...
def draw_normals(states: NDArray[uint64], draws: NDArray[float32]) -> None: ...
def draw_exponentials(states: NDArray[uint64], draws: NDArray[float32]) -> None: ...
def climb(
    gradient: NDArray[float64],
    rate: float,
    weight_decay: float,
    mean_weight: float,
    variance_weight: float,
    mean: NDArray[float64],
    variance: NDArray[float64],
    theta: NDArray[float64],
) -> None:
    """One step of Adam up the gradient, in place."""

def sum_squares(x: NDArray[float64]) -> float: ...
