"""Coordination inference: scores in, assignment out. Knows no torch and no environment."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from muster.assign.answer import Answer
    from muster.assign.api import assign
    from muster.assign.check import Verdict, check
    from muster.assign.outcomes import REASONS
    from muster.assign.settings import Effort, InferenceSettings, Method, Rounding
    from muster.assign.solver import Solver, solve
    from muster.assign.outcomes import STATUSES

# Name -> module that defines it. Loaded on first use: the settings are light, the solver is not.
_PUBLIC = {
    **dict.fromkeys(("Effort", "InferenceSettings", "Method", "Rounding"), "muster.assign.settings"),
    "REASONS": "muster.assign.outcomes",
    "STATUSES": "muster.assign.outcomes",
    **dict.fromkeys(("Solver", "solve"), "muster.assign.solver"),
    "Answer": "muster.assign.answer",
    "assign": "muster.assign.api",
    **dict.fromkeys(("Verdict", "check"), "muster.assign.check"),
}

__all__ = [
    "REASONS",
    "STATUSES",
    "Answer",
    "Effort",
    "InferenceSettings",
    "Method",
    "Rounding",
    "Solver",
    "Verdict",
    "assign",
    "check",
    "solve",
]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'muster.assign' has no attribute {name!r}")
    value = getattr(import_module(_PUBLIC[name]), name)
    globals()[name] = value
    return value
