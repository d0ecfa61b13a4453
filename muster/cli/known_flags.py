"""What a command takes, so that a mistake is named in a sentence before tyro parses anything."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple, get_args, get_origin

import tyro

from muster.errors import InputError
from muster.settings import from_text

ALWAYS = ("--help", "--tyro-print-completion", "--tyro-write-completion")


class Argument(NamedTuple):
    """A flag or a positional argument of a command."""

    name: str
    """--ppo.sigma, or POLICY."""
    hint: Any
    """The annotation, with bounds."""
    required: bool

    @property
    def several(self) -> bool:
        """Whether any number of values may follow."""
        kind = _unwrapped(self.hint)[0]
        return tuple in (get_origin(kind), *map(get_origin, get_args(kind)))

    def check(self, text: str) -> None:
        """Raise InputError where a text is no value of it."""
        from_text(self.hint, text, self.name)
        if bool in get_args(_unwrapped(self.hint)[0]) and text not in ("True", "False", "None"):
            raise InputError(f"{self.name} must be True or False, got {text!r}")


def check_arguments(prog: str, command: Any, arguments: Sequence[str]) -> None:
    """Raise InputError for the first word that a command, a dataclass that tyro reads, cannot take."""
    flags, positional = arguments_of(command)
    named: list[str] = []
    loose: list[str] = []
    words = list(arguments)
    if any(word in ("-h", *ALWAYS) or word.startswith("--tyro-") for word in words):
        return
    while words:
        flag, equals, value = words.pop(0).partition("=")
        if not flag.startswith("--"):
            loose.append(flag + equals + value)
            continue
        found = _known(flag, flags)
        named.append(found.name)
        if found.hint is bool:
            continue
        if found.several:
            while words and not words[0].startswith("--"):
                words.pop(0)
            continue
        if not equals and (not words or words[0].startswith("--")):
            raise InputError(f"{flag} needs a value")
        found.check(value if equals else words.pop(0))
    needed = [one.name for one in positional if one.required and not one.several]
    if len(loose) < len(needed):
        raise InputError(f"give {' and '.join(needed)}; {prog} --help says more")
    if len(loose) > len(positional) and not any(one.several for one in positional):
        taken = " and ".join(one.name for one in positional) or "flags only"
        raise InputError(f"{loose[len(positional)]!r} is too much: {prog} takes {taken}")
    for one, text in zip(positional, loose, strict=False):
        if not one.several:
            one.check(text)
    for one in flags.values():
        if one.required and one.name not in named:
            raise InputError(f"give {one.name}; {prog} --help says more")


def _known(flag: str, flags: dict[str, Argument]) -> Argument:
    name = flag.replace("_", "-")
    if name not in flags:
        near = get_close_matches(name, [*flags, *ALWAYS], n=1)
        raise InputError(f"unknown flag {flag}; " + (f"did you mean {near[0]}?" if near else "--help lists all flags"))
    return flags[name]


def arguments_of(command: Any) -> tuple[dict[str, Argument], list[Argument]]:
    """Flags by name, and positional arguments in their order."""
    found = list(_arguments_of(command))
    return {one.name: one for one in found if one.name.startswith("--")}, [one for one in found if one.name[0] != "-"]


def _arguments_of(command: Any, prefix: str = "") -> Iterator[Argument]:
    hints = typing.get_type_hints(command, include_extras=True)
    for field in dataclasses.fields(command):
        kind, remarks = _unwrapped(hints[field.name])
        names = [getattr(remark, "name", None) for remark in remarks]
        name = next((name for name in names if name is not None), field.name).replace("_", "-")
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if dataclasses.is_dataclass(kind):
            omitted = not name or tyro.conf.OmitArgPrefixes in remarks
            yield from _arguments_of(kind, prefix if omitted else f"{prefix}{name}.")
        elif tyro.conf.Positional in remarks:
            shown = next((text for remark in remarks if (text := getattr(remark, "metavar", None))), name.upper())
            yield Argument(shown, hints[field.name], required)
        else:
            yield Argument(f"--{prefix}{name}", bool if kind is bool else hints[field.name], required)
            if kind is bool:
                yield Argument(f"--{prefix}no-{name}", bool, required=False)


def _unwrapped(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """A type, and what it is annotated with."""
    remarks: tuple[Any, ...] = ()
    while get_origin(hint) is typing.Annotated:
        hint, *more = get_args(hint)
        remarks += tuple(more)
    return hint, remarks
