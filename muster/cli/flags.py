"""Flags of a training run, made from its settings: what matters first, then the rest, then the learner's own.

Only the chosen learner's own settings are flags, so that help stays readable.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import textwrap
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, make_dataclass
from difflib import get_close_matches
from itertools import pairwise
from typing import Annotated, Any, NamedTuple, TypeVar, get_args, get_origin

import tyro

from muster.custom import expanded, is_custom
from muster.errors import InputError
from muster.learning.settings import LearnerName, TrainSettings
from muster.settings import Option, from_text, options_of, read_table

FIRST = ("env", "learner", "inference", "minutes", "steps", "seed")
"""Settings that stand first in the help."""
LEARNERS: tuple[str, ...] = get_args(LearnerName)
Command = TypeVar("Command")
ALWAYS = ("--help", "--tyro-print-completion", "--tyro-write-completion")


@dataclass(frozen=True)
class Flags(TrainSettings):
    """What to learn, how, for how long, and where to."""

    env: tyro.conf.Positional[tuple[str, ...]] = ()
    """The environment to learn on, such as rescue:2x4; or several of one kind, in turn."""
    from_policy: Annotated[str | None, tyro.conf.arg(name="from", metavar="POLICY")] = None
    """Policy to start from: shipped, a run or a file, of the same kind of environment. What the model reads or scores
    beyond it starts at zero, and so do critic and optimisers."""

    def __post_init__(self) -> None:
        """Nothing is checked before all is said: see `checked`."""

    def checked(self, **changes: Any) -> TrainSettings:
        """The settings of the run."""
        return TrainSettings(**{entry.name: getattr(self, entry.name) for entry in fields(TrainSettings)} | changes)


def parse(
    command: Callable[..., Command],
    prog: str,
    arguments: Sequence[str],
    table: Mapping[str, Any],
    where: str,
    learner: str | None = None,
    **helps: str,
) -> Command:
    """Parse arguments on top of a table of settings (of a file or a run, `where`).

    `command` is a dataclass with the flags of the command itself and `settings`, which are `Flags`; `learner` is that
    of a run of which arguments and table say nothing; `helps` replaces the help of some settings.
    """
    learner = learner_of(arguments, {"learner": learner, **table})
    kind = _flags_class(command, learner, table, where, helps)
    check_arguments(prog, kind, arguments)
    found = tyro.cli(kind, prog=prog, args=list(arguments), description=inspect.getdoc(command))
    groups = [found.settings, found.advanced]
    values = {entry.name: getattr(group, entry.name) for group in groups for entry in fields(group)}
    own = {entry.name: getattr(found.command, entry.name) for entry in fields(found.command)}
    of_learner = {learner: getattr(found, learner)} if hasattr(found, learner) else {}
    return command(settings=Flags(**values, **of_learner), **own)


def learner_of(arguments: Sequence[str], table: Mapping[str, Any]) -> str:
    """The learner that a run will have, as far as arguments and table say; flags of another are refused."""

    def said(name: str) -> Any:
        return argument(arguments, f"--{name.replace('_', '-')}") or table.get(name)

    learner = expanded("learner", said("learner")) if said("learner") not in (None, *LEARNERS) else said("learner")
    if learner not in LEARNERS and not is_custom(str(learner)):
        imitates = said("teacher") or said("from_log")
        learner = "imitation" if imitates else "es" if said("inference") == "routes" else "ppo"
    for word in arguments:
        flag, _, _ = word.partition("=")
        other, dot, _ = flag.removeprefix("--").partition(".")
        if dot and flag != other and other in LEARNERS and other != learner:
            raise InputError(f"{flag} is for the learner {other}, but this run learns by {learner}")
    return str(learner)


def argument(arguments: Sequence[str], flag: str) -> str | None:
    """What follows a flag, written with a space or with an equals sign; None where it is not given."""
    for index, word in enumerate(arguments):
        if word.startswith(f"{flag}="):
            return word.partition("=")[2]
        if word == flag:
            if index + 1 == len(arguments):
                raise InputError(f"{flag} needs a value")
            return arguments[index + 1]
    return None


def _flags_class(
    command: Callable[..., Any], learner: str, table: Mapping[str, Any], where: str, helps: Mapping[str, str]
) -> type[Any]:
    """A dataclass for tyro: the settings that matter, the command's own flags, the others, the learner's."""
    options = options_of(Flags)
    given = read_table(TrainSettings, {"env": (), **table}, where)
    given["env"] = (given["env"],) if isinstance(given["env"], str) else given["env"]
    docs = {**field_docs(TrainSettings), **field_docs(Flags), **helps}
    rest = [name for name in options if name not in FIRST and name not in LEARNERS]
    own = {name: option for name, option in options_of(command).items() if name != "settings"}

    def group(text: str, names: Iterable[str], of: Mapping[str, Option], helps: Mapping[str, str]) -> Any:
        entries: list[Any] = []
        for name in names:
            hint: Any = Annotated[of[name].hint, tyro.conf.arg(help=helps[name])]
            entries.append((name, hint, field(default=given.get(name, of[name].default))))
        made = make_dataclass("Group", entries, frozen=True)
        made.__doc__ = text
        return made

    unnamed = tyro.conf.arg(name="")
    groups: list[Any] = [
        ("settings", Annotated[group("What to learn, and how.", FIRST, options, docs), unnamed]),
        ("command", Annotated[group("", own, own, field_docs(command)), unnamed]),
        ("advanced", Annotated[group("What rarely matters.", rest, options, docs), tyro.conf.OmitArgPrefixes]),
    ]
    if learner in options:
        hint = options[learner].hint
        groups.append((learner, hint, field(default=given.get(learner, hint()))))
    return make_dataclass("Flags", groups, frozen=True)


def field_docs(kind: Any) -> dict[str, str]:
    """The docstring below each field of a dataclass."""
    (body,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(body, ast.ClassDef)
    found = {}
    for entry, text in pairwise(body.body):
        if isinstance(entry, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
            assert isinstance(entry.target, ast.Name)
            found[entry.target.id] = " ".join(str(text.value.value).split())
    return found


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
    for entry in dataclasses.fields(command):
        kind, remarks = _unwrapped(hints[entry.name])
        names = [getattr(remark, "name", None) for remark in remarks]
        name = next((name for name in names if name is not None), entry.name).replace("_", "-")
        required = entry.default is dataclasses.MISSING and entry.default_factory is dataclasses.MISSING
        if dataclasses.is_dataclass(kind):
            omitted = not name or tyro.conf.OmitArgPrefixes in remarks
            yield from _arguments_of(kind, prefix if omitted else f"{prefix}{name}.")
        elif tyro.conf.Positional in remarks:
            shown = next((text for remark in remarks if (text := getattr(remark, "metavar", None))), name.upper())
            yield Argument(shown, hints[entry.name], required)
        else:
            yield Argument(f"--{prefix}{name}", bool if kind is bool else hints[entry.name], required)
            if kind is bool:
                yield Argument(f"--{prefix}no-{name}", bool, required=False)


def _unwrapped(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """A type, and what it is annotated with."""
    remarks: tuple[Any, ...] = ()
    while get_origin(hint) is typing.Annotated:
        hint, *more = get_args(hint)
        remarks += tuple(more)
    return hint, remarks
