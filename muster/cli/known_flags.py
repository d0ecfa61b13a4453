"""The flags that a command takes, so that one it does not take is named before anything is parsed."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Any, get_args, get_origin

import tyro

from muster.errors import InputError

ALWAYS = ("--help", "--tyro-print-completion", "--tyro-write-completion")


def refuse_unknown_flags(command: Any, arguments: Sequence[str]) -> None:
    """Raise InputError for the first flag that a command, a dataclass that tyro reads, does not take."""
    known = [*flags_of(command), *ALWAYS]
    for word in arguments:
        if word == "--":
            return
        flag = word.partition("=")[0]
        if flag.startswith("--") and flag.replace("_", "-") not in known:
            near = get_close_matches(flag.replace("_", "-"), known, n=1)
            raise InputError(
                f"unknown flag {flag}; " + (f"did you mean {near[0]}?" if near else "--help lists all flags")
            )


def flags_of(command: Any, prefix: str = "") -> Iterator[str]:
    """Every flag, with the prefix of the settings that it belongs to."""
    hints = typing.get_type_hints(command, include_extras=True)
    for field in dataclasses.fields(command):
        kind, remarks = _unwrapped(hints[field.name])
        names = [getattr(remark, "name", None) for remark in remarks]
        name = next((name for name in names if name is not None), field.name).replace("_", "-")
        if dataclasses.is_dataclass(kind):
            omitted = not name or tyro.conf.OmitArgPrefixes in remarks
            yield from flags_of(kind, prefix if omitted else f"{prefix}{name}.")
        elif tyro.conf.Positional not in remarks:
            yield f"--{prefix}{name}"
            if kind is bool:
                yield f"--{prefix}no-{name}"


def _unwrapped(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """A type, and what it is annotated with."""
    remarks: tuple[Any, ...] = ()
    while get_origin(hint) is typing.Annotated:
        hint, *more = get_args(hint)
        remarks += tuple(more)
    return hint, remarks
