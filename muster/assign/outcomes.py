"""Status of an answer, and reasons why an agent has no task, by the codes of the compiled core."""

from __future__ import annotations

STATUSES = (
    "optimal",
    "rounded",
    "local_optimum",
    "converged",
    "stalled",
    "iteration_limit",
    "time_limit",
    "incomplete",
    "feasible",
)
"""Statuses of a Solution.

optimal: proven that no assignment is worth more (AMAX: for its own objective); rounded: the relaxation is solved
exactly and the assignment is its rounding; local_optimum: no move, swap or tried kick improves the assignment;
converged, stalled, iteration_limit: Frank-Wolfe reached its gap, took a step too small to matter, or ran out of steps,
and its point was rounded; time_limit: the best feasible assignment found in time; incomplete: all agents have to be
assigned, and no assignment was found that leaves out no agent which fits somewhere, though there may be one. Where it
is proven that there is none, the best of those that leave out fewest is optimal. feasible: of a custom procedure
without a certificate.
"""

STATUS_NAMES = (*STATUSES[:7], "invalid", *STATUSES[7:])
"""By code; "invalid" is an instance with an invalid entry, which raises InputError."""
OPTIMAL, ROUNDED, LOCAL_OPTIMUM, CONVERGED, STALLED, ITERATION_LIMIT, TIME_LIMIT, INVALID, INCOMPLETE, FEASIBLE = range(
    10
)

REASONS = ("", "negative scores", "no capacity left", "better left out", "not alive", "minimum not reached")
"""Why an agent has no task, by code; "" for one that has."""
ASSIGNED, NEGATIVE_SCORES, NO_CAPACITY, BETTER_LEFT_OUT, NOT_ALIVE, BELOW_MINIMUM = range(6)
