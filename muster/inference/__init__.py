"""Coordination inference: scores in, assignment out. Knows no torch and no environment."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from muster.inference.answer import Answer
    from muster.inference.assigning import assign
    from muster.inference.checking import Verdict, check
    from muster.inference.outcomes import REASONS
    from muster.inference.settings import Effort, InferenceSettings, Method, Rounding
    from muster.inference.solver import Solver, solve
    from muster.inference.statuses import STATUSES

# Name -> module that defines it. Loaded on first use: the settings are light, the solver is not.
_PUBLIC = {
    **dict.fromkeys(("Effort", "InferenceSettings", "Method", "Rounding"), "muster.inference.settings"),
    "REASONS": "muster.inference.outcomes",
    "STATUSES": "muster.inference.statuses",
    **dict.fromkeys(("Solver", "solve"), "muster.inference.solver"),
    "Answer": "muster.inference.answer",
    "assign": "muster.inference.assigning",
    **dict.fromkeys(("Verdict", "check"), "muster.inference.checking"),
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
        raise AttributeError(f"module 'muster.inference' has no attribute {name!r}")
    value = getattr(import_module(_PUBLIC[name]), name)
    globals()[name] = value
    return value
