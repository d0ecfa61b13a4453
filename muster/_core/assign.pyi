"""Kernels of `muster.assign`: batches of dense problems. Called by `muster.assign.solver`.

Each works on instances begin..end-1, or on those that rows[begin:end] lists, and writes to `out`; `stop` [1] ends it
when it is not 0, and so do `seconds`.
"""

from muster.data import Bools, Floats, Ints

class Problem:
    """The arrays of `muster.assign.problem.ProblemArrays`."""

    def __init__(
        self,
        scores: Floats,
        task_scores: Floats,
        contributions: Floats,
        capacities: Floats,
        agent_alive: Bools,
        task_alive: Bools,
        allowed: Bools,
        by_load: bool,
    ) -> None: ...

class Settings:
    def __init__(
        self,
        effort: int,
        steps: int,
        rounding: int,
        assign_all: bool,
        rounds: int,
        certify: bool,
        report_proof: bool,
        prove: bool,
    ) -> None: ...

class Output:
    """The arrays of `muster.assign.problem.Output` but for the routes."""

    def __init__(
        self,
        assignment: Ints,
        values: Floats,
        status: Ints,
        loads: Floats,
        prices: Floats,
        reason: Ints,
    ) -> None: ...

def solve_amax(
    begin: int, end: int, problem: Problem, settings: Settings, out: Output, stop: Ints, seconds: float
) -> None:
    """AMAX: each agent's best task."""

def solve_linear(
    begin: int, end: int, problem: Problem, settings: Settings, out: Output, stop: Ints, seconds: float
) -> None:
    """LP: relax, round, certify."""

def solve_quadratic(
    begin: int, end: int, problem: Problem, settings: Settings, out: Output, stop: Ints, seconds: float
) -> None:
    """QUAD: Frank-Wolfe, rounding, local search, bounds."""

def keep_previous(
    begin: int, end: int, problem: Problem, settings: Settings, out: Output, stop: Ints, seconds: float, previous: Ints
) -> None:
    """Replace answers that are worth less than what is still possible of the previous plan."""

def improve_batch(
    begin: int, end: int, problem: Problem, settings: Settings, out: Output, stop: Ints, seconds: float, rows: Ints
) -> None:
    """Improve LP's answers in rows[begin:end] by tabu search and path relinking."""

def prove_batch(
    begin: int,
    end: int,
    problem: Problem,
    settings: Settings,
    out: Output,
    stop: Ints,
    seconds: float,
    rows: Ints,
    cells: float,
) -> None:
    """Improve or prove LP's answers in rows[begin:end] by branch and bound, with so many cells of knapsack tables."""

def tighten_bounds(
    begin: int, end: int, problem: Problem, settings: Settings, out: Output, stop: Ints, seconds: float, rows: Ints
) -> None:
    """Tighten the bounds of QUAD's unproven answers in rows[begin:end] by concave instances."""

def meet_minimums(
    begin: int,
    end: int,
    problem: Problem,
    settings: Settings,
    out: Output,
    stop: Ints,
    seconds: float,
    minimums: Floats,
    required: Bools,
    previous: Ints,
    nodes: int,
) -> None:
    """Make answers meet the minimums, by branch and bound with at most so many nodes."""
