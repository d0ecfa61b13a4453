"""Coordination inference: scores in, assignment out. Knows no torch and no environment."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from muster.inference.outcomes import REASONS, STATUSES
    from muster.inference.settings import Effort, InferenceSettings, Method, Rounding
    from muster.inference.solver import Solver, assign, solve

# Name -> module that defines it. Loaded on first use: the settings are light, the solver is not.
_PUBLIC = {
    **dict.fromkeys(("Effort", "InferenceSettings", "Method", "Rounding"), "muster.inference.settings"),
    **dict.fromkeys(("REASONS", "STATUSES"), "muster.inference.outcomes"),
    **dict.fromkeys(("Solver", "assign", "solve"), "muster.inference.solver"),
}

__all__ = ["REASONS", "STATUSES", "Effort", "InferenceSettings", "Method", "Rounding", "Solver", "assign", "solve"]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'muster.inference' has no attribute {name!r}")
    value = getattr(import_module(_PUBLIC[name]), name)
    globals()[name] = value
    return value
