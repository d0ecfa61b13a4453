"""Errors that muster raises on purpose. A message says what was expected, what came and, if possible, what to try."""

from __future__ import annotations

import difflib
import re
import traceback
from collections.abc import Iterable


class MusterError(Exception):
    """Base of every error that muster raises on purpose."""


class InputError(MusterError, ValueError):
    """An invalid value from the caller."""


class UnknownNameError(InputError):
    """An unknown name; the message suggests the nearest known one, or lists all."""

    def __init__(self, kind: str, name: str, options: Iterable[str], where: str = "") -> None:
        super().__init__(f"no {kind} {name!r}{where and f' {where}'}{suggestion(name, options)}")


class EnvError(MusterError):
    """A custom environment failed during an episode; the message has its name, step, seed and error."""


class TimeLimitError(MusterError):
    """A result was not ready within its time limit."""


class ModelFileError(MusterError):
    """A file that is no policy file, or is damaged or of another version."""


class MissingExtraError(MusterError):
    """An optional dependency of a feature is not installed."""

    def __init__(self, feature: str, extra: str, instead: str = "") -> None:
        super().__init__(f"{feature} needs {_install_hint(extra)}{instead and f', or {instead}'}")


def _install_hint(extra: str) -> str:
    """The command that installs an extra, by the names of its packages, wherever muster was installed from."""
    from importlib.metadata import PackageNotFoundError, requires

    try:
        requirements = [line.partition(";") for line in requires("muster-rl") or ()]
    except PackageNotFoundError:
        requirements = []
    packages = [name.strip() for name, _, marker in requirements if re.search(rf"extra == ['\"]{extra}['\"]", marker)]
    listed = " ".join(f"'{name}'" for name in packages) or f"'muster-rl[{extra}]'"
    return f"more packages; install them with: pip install {listed}"


def in_words(error: Exception) -> str:
    """An error of other code in one line, with the file and line that raised it."""
    # The text of a syntax error has its file and line.
    frames = [] if isinstance(error, SyntaxError) else traceback.extract_tb(error.__traceback__)
    where = f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}{': ' if text else ''}{text}{where}"


def suggestion(name: str, options: Iterable[str]) -> str:
    """The end of an error message: the nearest option, or all of them if none is near."""
    known = sorted(options)
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    if near:
        return f"; did you mean {near[0]!r}?"
    return f"; there is {', '.join(known)}" if known else ""
