"""Kernel of method "routes". Called by `muster.assign.solver`."""

from muster._core.assign import Output, Problem, Settings
from muster.data import Floats, Ints

def solve_routes(
    begin: int,
    end: int,
    problem: Problem,
    settings: Settings,
    out: Output,
    stop: Ints,
    seconds: float,
    end_scores: Floats,
    previous: Ints,
    routes: Ints,
    power: int,
) -> None:
    """Solve instances begin..end-1, written to `out` and `routes` [B, N, M]."""
