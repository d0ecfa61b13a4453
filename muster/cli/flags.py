"""Flags of a training run, made from its settings: what matters first, then the rest, then the learner's own.

Only the chosen learner's own settings are flags, so that help stays readable.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, make_dataclass
from itertools import pairwise
from typing import Annotated, Any, TypeVar, get_args

import tyro

from muster.cli.known_flags import check_arguments
from muster.custom import expanded, is_custom
from muster.errors import InputError
from muster.learning.settings import LearnerName, TrainSettings
from muster.settings import Option, options_of, read_table

FIRST = ("env", "learner", "inference", "minutes", "steps", "seed")
"""Settings that stand first in the help."""
LEARNERS: tuple[str, ...] = get_args(LearnerName)
Command = TypeVar("Command")


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
