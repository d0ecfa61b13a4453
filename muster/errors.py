"""What muster raises when it is asked for something it cannot do.

Every message says what was expected, what came and, where there is one, what to try.
"""

from __future__ import annotations

import difflib
import re
import traceback
from collections.abc import Iterable


class MusterError(Exception):
    """Base of every error that muster raises on purpose."""


class InputError(MusterError, ValueError):
    """A value that the caller gave is not one that muster can use."""


class UnknownNameError(InputError):
    """A name that is not among those on offer."""

    def __init__(self, kind: str, name: str, options: Iterable[str], where: str = "") -> None:
        super().__init__(f"no {kind} {name!r}{where and f' {where}'}{suggestion(name, options)}")


class EnvError(MusterError):
    """A user's custom environment failed in the middle of an episode; the message says which, where and how."""


class TimeLimitError(MusterError):
    """What was asked for was not ready within its time limit."""


class ModelFileError(MusterError):
    """A policy file that is damaged, foreign or of another version."""


class MissingExtraError(MusterError):
    """A feature whose optional dependency is not installed."""

    def __init__(self, feature: str, extra: str, instead: str = "") -> None:
        super().__init__(f"{feature} needs {_install_hint(extra)}{instead and f', or {instead}'}")


def _install_hint(extra: str) -> str:
    """How to install what an extra of muster adds: by the packages' own names, whatever muster was installed from."""
    from importlib.metadata import PackageNotFoundError, requires

    try:
        wanted = [line.partition(";") for line in requires("muster-rl") or ()]
    except PackageNotFoundError:
        wanted = []
    packages = [name.strip() for name, _, marker in wanted if re.search(rf"extra == ['\"]{extra}['\"]", marker)]
    listed = " ".join(f"'{name}'" for name in packages) or f"'muster-rl[{extra}]'"
    return f"more packages; install them with: pip install {listed}"


def in_words(error: Exception) -> str:
    """A foreign error in one line, with the line of the file that raised it."""
    # A syntax error says itself where it is.
    frames = [] if isinstance(error, SyntaxError) else traceback.extract_tb(error.__traceback__)
    where = f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}{': ' if text else ''}{text}{where}"


def suggestion(name: str, options: Iterable[str]) -> str:
    """The tail of an error message: the nearest option, or all of them when none is near."""
    known = sorted(options)
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    if near:
        return f"; did you mean {near[0]!r}?"
    return f"; there is {', '.join(known)}" if known else ""
