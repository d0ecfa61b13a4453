"""Coordination inference: scores in, assignment out. Knows no torch and no environment."""

from muster.inference.solver import REASONS, STATUSES, Solver, assign, solve
from muster.options import Effort, Method, Rounding

__all__ = ["REASONS", "STATUSES", "Effort", "Method", "Rounding", "Solver", "assign", "solve"]
