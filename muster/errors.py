"""What muster raises when it is asked for something it cannot do.

Every message says what was expected, what came and, where there is one, what to try.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class MusterError(Exception):
    """Base of every error that muster raises on purpose."""


class InputError(MusterError, ValueError):
    """A value that the caller gave is not one that muster can use."""


class UnknownNameError(InputError):
    """A name that is not among those on offer."""

    def __init__(self, kind: str, name: str, options: Iterable[str]) -> None:
        super().__init__(f"no {kind} {name!r}{suggestion(name, options)}")


class ModelFileError(MusterError):
    """A policy file that is damaged, foreign or of another version."""


class MissingExtraError(MusterError):
    """A feature whose optional dependency is not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} needs an extra; install it with: pip install 'muster-rl[{extra}]'")


def suggestion(name: str, options: Iterable[str]) -> str:
    """The tail of an error message: the nearest option, or all of them when none is near."""
    known = sorted(options)
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    if near:
        return f"; did you mean {near[0]!r}?"
    return f"; there is {', '.join(known)}" if known else ""
