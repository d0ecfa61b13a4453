"""Coordination inference: scores in, assignment out. Knows no torch and no environment.

The package is called as a function, too: `muster.assign(scores)` is `muster.assign.api.assign`.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from muster.assign.answer import Answer
    from muster.assign.api import assign
    from muster.assign.check import Verdict, check_plan
    from muster.assign.outcomes import REASONS, STATUSES
    from muster.assign.settings import Effort, InferenceSettings, Method, Rounding
    from muster.assign.solver import Solver, solve

# Name -> module that defines it. Loaded on first use: the settings are light, the solver is not.
_PUBLIC = {
    **dict.fromkeys(("Effort", "InferenceSettings", "Method", "Rounding"), "muster.assign.settings"),
    **dict.fromkeys(("REASONS", "STATUSES"), "muster.assign.outcomes"),
    **dict.fromkeys(("Solver", "solve"), "muster.assign.solver"),
    "Answer": "muster.assign.answer",
    "assign": "muster.assign.api",
    **dict.fromkeys(("Verdict", "check_plan"), "muster.assign.check"),
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
    "check_plan",
    "solve",
]


class _CallableModule(ModuleType):
    """Makes the package `muster.assign` callable, in whatever order modules are imported."""

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self.assign(*arguments, **named)

    @property
    def __signature__(self) -> Any:
        import inspect

        return inspect.signature(self.assign)


sys.modules[__name__].__class__ = _CallableModule


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'muster.assign' has no attribute {name!r}")
    value = getattr(import_module(_PUBLIC[name]), name)
    globals()[name] = value
    return value
