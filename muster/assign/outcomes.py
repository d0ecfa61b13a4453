"""How an answer came about, in words and in the kernels' codes: what a status says, and why an agent has no task."""

from __future__ import annotations

STATUSES = ("optimal", "rounded", "local_optimum", "converged", "stalled", "iteration_limit", "time_limit")
"""What a Solution's status can be, by the kernels' codes.

optimal: no assignment is worth more (AMAX: for its own objective), which is proven; rounded: the relaxation is solved
exactly and the assignment is its rounding; local_optimum: no move, swap or tried kick improves the assignment;
converged, stalled, iteration_limit: Frank-Wolfe reached its gap, took a step too small to matter, or ran out of steps,
and its point was rounded; time_limit: the best feasible assignment found in time.
"""
OPTIMAL, ROUNDED, LOCAL_OPTIMUM, CONVERGED, STALLED, ITERATION_LIMIT, TIME_LIMIT = range(7)

INVALID = 7
"""An instance that holds an entry which cannot be worked with; never seen outside."""

REASONS = ("", "negative scores", "no capacity left", "better left out", "not alive")
"""Why an agent has no task, by the kernels' codes; "" for one that has."""
ASSIGNED, NEGATIVE_SCORES, NO_CAPACITY, BETTER_LEFT_OUT, NOT_ALIVE = range(5)
