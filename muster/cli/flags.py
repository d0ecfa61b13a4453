"""Flags of `muster train` and `muster search`, generated from the settings of a training run.

Help lists the main settings first, then the others, then those of the chosen learner; other learners' settings are not
flags.
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
from types import NoneType
from typing import Annotated, Any, NamedTuple, TypeVar, get_args, get_origin

import tyro

from muster.custom import expanded, is_custom
from muster.errors import InputError
from muster.learning.settings import LearnerName, TrainSettings, refuse_others
from muster.settings import Option, from_text, options_of, read_table

FIRST = ("env", "learner", "inference", "minutes", "steps", "seed")
"""Settings listed first in the help."""
LEARNERS: tuple[str, ...] = get_args(LearnerName)
Command = TypeVar("Command")
TYRO_FLAGS = ("--help", "--tyro-print-completion", "--tyro-write-completion")


@dataclass(frozen=True)
class Flags(TrainSettings):
    """Settings of a training run as flags; `checked` validates them."""

    env: tyro.conf.Positional[tuple[str, ...]] = ()
    """The environment to learn on, such as rescue:2x4; or several of one kind, in turn."""
    from_policy: Annotated[str | None, tyro.conf.arg(name="from", metavar="POLICY")] = None
    """Policy to start from: a shipped one, a run or a file, of the same kind of environment. Weights that it does not
    have start at zero; critic and optimisers start afresh."""

    def __post_init__(self) -> None:
        """Skip the checks of TrainSettings until all flags are known: see `checked`."""

    def checked(self, **changes: Any) -> TrainSettings:
        """The validated settings of the run, with some fields changed."""
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
    """Parse arguments on top of a table of settings, which was read from `where`.

    `command` is a dataclass with the command's own flags and `settings: Flags`; `learner` is used if neither arguments
    nor table name one; `helps` replaces the help of some settings.
    """
    named = learner_of(arguments, {"learner": learner, **table})
    # Where the environment decides, help shows one learner's settings; of a run, those of any may be given.
    learners = (named,) if named else LEARNERS[:1] if asks_for_help(arguments) else LEARNERS
    kind = _flags_class(command, learners, table, where, helps)
    check_arguments(prog, kind, arguments)
    parsed = tyro.cli(kind, prog=prog, args=list(arguments), description=inspect.getdoc(command))
    groups = [parsed.settings, parsed.advanced]
    values = {entry.name: getattr(group, entry.name) for group in groups for entry in fields(group)}
    command_flags = {entry.name: getattr(parsed.command, entry.name) for entry in fields(parsed.command)}
    learner_settings = {name: getattr(parsed, name) for name in learners if hasattr(parsed, name)}
    settings = Flags(**values, **learner_settings)
    if settings.env and named is None and (given := flags_of_learners(arguments)):
        refuse_others(settings.checked(), given)
    return command(settings=settings, **command_flags)


def learner_of(arguments: Sequence[str], table: Mapping[str, Any]) -> str | None:
    """The learner that arguments or table name or imply; None where the environment decides (`TrainSettings`).

    Raises InputError for flags of another learner.
    """

    def value_of(name: str) -> Any:
        return argument(arguments, f"--{name.replace('_', '-')}") or table.get(name)

    learner = value_of("learner")
    if learner not in (None, *LEARNERS):
        learner = expanded("learner", learner)
    if learner not in LEARNERS and not is_custom(str(learner)):
        imitates = value_of("teacher") or value_of("from_log")
        learner = "imitation" if imitates else "es" if value_of("inference") == "routes" else None
    for other, flag in flags_of_learners(arguments):
        if learner not in (None, other):
            raise InputError(f"{flag} is for the learner {other}, but this run learns by {learner}")
    return learner


def flags_of_learners(arguments: Sequence[str]) -> list[tuple[str, str]]:
    """Learner and flag, such as ("es", "--es.sigma"), of the settings of learners that are given."""
    flags = [word.partition("=")[0] for word in arguments if word.startswith("--")]
    given = [(flag.removeprefix("--").partition("."), flag) for flag in flags]
    return [(learner, flag) for (learner, dot, _), flag in given if dot and learner in LEARNERS]


def asks_for_help(arguments: Sequence[str]) -> bool:
    """Whether tyro prints something and ends."""
    return any(word in ("-h", *TYRO_FLAGS) or word.startswith("--tyro-") for word in arguments)


def argument(arguments: Sequence[str], flag: str) -> str | None:
    """The value of a flag, after a space or an equals sign; None if the flag is not given."""
    for index, word in enumerate(arguments):
        if word.startswith(f"{flag}="):
            return word.partition("=")[2]
        if word == flag:
            if index + 1 == len(arguments):
                raise InputError(f"{flag} needs a value")
            return arguments[index + 1]
    return None


def _flags_class(
    command: Callable[..., Any],
    learners: Iterable[str],
    table: Mapping[str, Any],
    where: str,
    helps: Mapping[str, str],
) -> type[Any]:
    """A dataclass for tyro with nested groups: main settings, the command's own flags, other settings, the learners'.

    The values of `table` become defaults.
    """
    options = options_of(Flags)
    defaults = read_table(TrainSettings, {"env": (), **table}, where)
    defaults["env"] = (defaults["env"],) if isinstance(defaults["env"], str) else defaults["env"]
    docs = {**field_docs(TrainSettings), **field_docs(Flags), **helps}
    rest = [name for name in options if name not in FIRST and name not in LEARNERS]
    command_options = {name: option for name, option in options_of(command).items() if name != "settings"}

    def group(text: str, names: Iterable[str], of: Mapping[str, Option], helps: Mapping[str, str]) -> Any:
        entries: list[Any] = []
        for name in names:
            hint: Any = Annotated[of[name].hint, tyro.conf.arg(help=helps[name], metavar=choices(of[name].hint))]
            entries.append((name, hint, field(default=defaults.get(name, of[name].default))))
        cls = make_dataclass("Group", entries, frozen=True)
        cls.__doc__ = text
        return cls

    unnamed = tyro.conf.arg(name="")
    groups: list[Any] = [
        ("settings", Annotated[group("What to learn, and how.", FIRST, options, docs), unnamed]),
        ("command", Annotated[group("", command_options, command_options, field_docs(command)), unnamed]),
        ("advanced", Annotated[group("What rarely matters.", rest, options, docs), tyro.conf.OmitArgPrefixes]),
    ]
    for learner in (name for name in learners if name in options):
        hint = options[learner].hint
        groups.append((learner, hint, field(default=defaults.get(learner, hint()))))
    return make_dataclass("Flags", groups, frozen=True)


def choices(hint: Any) -> str | None:
    """What help shows for an optional value, as a|b: tyro's own text has None and joins choices by commas."""
    kind, metadata = _unwrapped(hint)
    kinds = [each for each in get_args(kind) if each is not NoneType]
    if NoneType not in get_args(kind) or any(hasattr(entry, "metavar") for entry in metadata):
        return None
    shown: list[str] = []
    for each in kinds:
        if get_origin(each) is tuple:
            shown.append(f"{get_args(each)[0].__name__.upper()} …")
        else:
            shown += ["True", "False"] if each is bool else get_args(each) or [each.__name__.upper()]
    return "|".join(shown)


def field_docs(kind: Any) -> dict[str, str]:
    """The docstring below each field of a dataclass."""
    (body,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(body, ast.ClassDef)
    docs = {}
    for entry, text in pairwise(body.body):
        if isinstance(entry, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
            assert isinstance(entry.target, ast.Name)
            docs[entry.target.id] = " ".join(str(text.value.value).split())
    return docs


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
        """Raise InputError if the text cannot be read as the argument's type."""
        from_text(self.hint, text, self.name)
        if bool in get_args(_unwrapped(self.hint)[0]) and text not in ("True", "False", "None"):
            raise InputError(f"{self.name} must be True or False, got {text!r}")

    def check_several(self, texts: Sequence[str]) -> None:
        """Raise InputError if the texts cannot be read as the argument's tuple."""
        hint = _unwrapped(self.hint)[0]
        entries = get_args(hint) if get_origin(hint) is tuple else (str, ...)
        if Ellipsis in entries:
            entries = (entries[0],) * len(texts)
        if len(texts) != len(entries):
            raise InputError(f"{self.name} takes {len(entries)} values, got {' '.join(texts) or 'none'}")
        for entry, text in zip(entries, texts, strict=True):
            from_text(entry, text, self.name)


def check_arguments(prog: str, command: Any, arguments: Sequence[str]) -> None:
    """Raise InputError for the first argument that does not fit a command's dataclass.

    Called before tyro, so that a mistake is reported in one line.
    """
    flags, positionals = arguments_of(command)
    given: set[str] = set()
    values: list[str] = []
    words = list(arguments)
    if asks_for_help(words):
        return
    while words:
        flag, equals, value = words.pop(0).partition("=")
        if not flag.startswith("--"):
            values.append(flag + equals + value)
            continue
        known = _find_flag(flag, flags)
        given.add(known.name)
        if known.hint is bool:
            continue
        if known.several:
            texts = [value] if equals else []
            while words and not words[0].startswith("--"):
                texts.append(words.pop(0))
            known.check_several(texts)
            continue
        if not equals and (not words or words[0].startswith("--")):
            raise InputError(f"{flag} needs a value")
        known.check(value if equals else words.pop(0))
    required = [argument.name for argument in positionals if argument.required and not argument.several]
    if len(values) < len(required):
        raise InputError(f"give {' and '.join(required)}; {prog} --help says more")
    if len(values) > len(positionals) and not any(argument.several for argument in positionals):
        expected = " and ".join(argument.name for argument in positionals) or "flags only"
        raise InputError(f"{values[len(positionals)]!r} is too much: {prog} takes {expected}")
    for argument, text in zip(positionals, values, strict=False):
        if not argument.several:
            argument.check(text)
    for argument in flags.values():
        if argument.required and argument.name not in given:
            raise InputError(f"give {argument.name}; {prog} --help says more")


def _find_flag(flag: str, flags: dict[str, Argument]) -> Argument:
    name = flag.replace("_", "-")
    if name not in flags:
        near = get_close_matches(name, [*flags, *TYRO_FLAGS], n=1)
        raise InputError(f"unknown flag {flag}; " + (f"did you mean {near[0]}?" if near else "--help lists all flags"))
    return flags[name]


def arguments_of(command: Any) -> tuple[dict[str, Argument], list[Argument]]:
    """Flags by name, and positional arguments in their order."""
    arguments = list(_walk_arguments(command))
    flags = {argument.name: argument for argument in arguments if argument.name.startswith("--")}
    return flags, [argument for argument in arguments if argument.name not in flags]


def _walk_arguments(command: Any, prefix: str = "") -> Iterator[Argument]:
    hints = typing.get_type_hints(command, include_extras=True)
    for entry in dataclasses.fields(command):
        kind, metadata = _unwrapped(hints[entry.name])
        names = [getattr(item, "name", None) for item in metadata]
        name = next((name for name in names if name is not None), entry.name).replace("_", "-")
        required = entry.default is dataclasses.MISSING and entry.default_factory is dataclasses.MISSING
        if dataclasses.is_dataclass(kind):
            omitted = not name or tyro.conf.OmitArgPrefixes in metadata
            yield from _walk_arguments(kind, prefix if omitted else f"{prefix}{name}.")
        elif tyro.conf.Positional in metadata:
            shown = next((text for item in metadata if (text := getattr(item, "metavar", None))), name.upper())
            yield Argument(shown, hints[entry.name], required)
        else:
            yield Argument(f"--{prefix}{name}", bool if kind is bool else hints[entry.name], required)
            if kind is bool:
                yield Argument(f"--{prefix}no-{name}", bool, required=False)


def _unwrapped(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """A type hint as the bare type and its Annotated metadata."""
    metadata: tuple[Any, ...] = ()
    while get_origin(hint) is typing.Annotated:
        hint, *more = get_args(hint)
        metadata += tuple(more)
    return hint, metadata
