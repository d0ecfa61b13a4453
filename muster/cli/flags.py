"""Flags of a training run, made from its settings: what matters first, then the rest, then the learner's own.

Only the chosen learner's own settings are flags, so that help stays readable.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, make_dataclass
from itertools import pairwise
from typing import Annotated, Any, get_args

import tyro

from muster.errors import InputError
from muster.learning.settings import LearnerName, TrainSettings
from muster.settings import build, options_of, read_table

FIRST = ("env", "learner", "inference", "minutes", "steps", "seed")
"""Settings that stand first in the help."""
LEARNERS: tuple[str, ...] = get_args(LearnerName)


@dataclass(frozen=True)
class Given:
    """What the arguments say of a run."""

    values: dict[str, Any]
    """Every setting of `TrainSettings`, the defaults included; `env` is a tuple."""
    own: dict[str, Any]
    """The command's own flags."""


def parse(
    command: type,
    prog: str,
    arguments: Sequence[str],
    table: Mapping[str, Any],
    where: str,
    learner: str | None = None,
    **helps: str,
) -> Given:
    """Parse arguments on top of a table of settings (of a file or a run, `where`).

    `command` is a dataclass with the flags of the command itself; `learner` is that of a run of which arguments and
    table say nothing; `helps` replaces the help of some settings.
    """
    learner = learner_of(arguments, {"learner": learner, **table})
    kind = _flags_class(command, learner, table, where, helps)
    found = tyro.cli(kind, prog=prog, args=list(arguments), description=inspect.getdoc(command))
    values = {entry.name: getattr(found.settings, entry.name) for entry in fields(found.settings)}
    values |= {entry.name: getattr(found.advanced, entry.name) for entry in fields(found.advanced)}
    values[learner] = getattr(found, learner)
    return Given(values, {entry.name: getattr(found.command, entry.name) for entry in fields(found.command)})


def learner_of(arguments: Sequence[str], table: Mapping[str, Any]) -> str:
    """The learner that a run will have, as far as arguments and table say; flags of another are refused."""

    def said(name: str) -> Any:
        return argument(arguments, f"--{name.replace('_', '-')}") or table.get(name)

    learner = said("learner")
    if learner not in LEARNERS:
        imitates = said("teacher") or said("from_log")
        learner = "imitation" if imitates else "es" if said("inference") == "routes" else "ppo"
    for word in arguments:
        other = word[2:].partition(".")[0] if word.startswith("--") and "." in word.partition("=")[0] else ""
        if other in LEARNERS and other != learner:
            flag = word.partition("=")[0]
            raise InputError(f"{flag} is for the learner {other}, but this run learns by {learner}")
    return str(learner)


def argument(arguments: Sequence[str], flag: str) -> str | None:
    """What follows a flag, written with a space or with an equals sign; None where it is not given."""
    for place, word in enumerate(arguments):
        if word.startswith(f"{flag}="):
            return word.partition("=")[2]
        if word == flag:
            if place + 1 == len(arguments):
                raise InputError(f"{flag} needs a value")
            return arguments[place + 1]
    return None


def _flags_class(
    command: type, learner: str, table: Mapping[str, Any], where: str, helps: Mapping[str, str]
) -> type[Any]:
    """A dataclass for tyro: the settings that matter, the command's own flags, the others, the learner's."""
    options = options_of(TrainSettings)
    given = read_table(TrainSettings, {"env": (), **table}, where)
    docs = {**field_docs(TrainSettings), **helps}
    own = options[learner].hint
    rest = [name for name in options if name not in FIRST and name not in LEARNERS]

    def group(title: str, text: str, names: Sequence[str]) -> Any:
        entries: list[Any] = []
        for name in names:
            hint, default = options[name].hint, given.get(name, options[name].default)
            extra = tyro.conf.arg(help=docs[name], name="from" if name == "from_policy" else None)
            if name == "env":
                hint = tyro.conf.Positional[tuple[str, ...]]
                default = (default,) if isinstance(default, str) else tuple(default)
            entries.append((name, Annotated[hint, extra], field(default=default)))
        made = make_dataclass(title, entries, frozen=True)
        made.__doc__ = text
        return made

    return make_dataclass(
        command.__name__,
        [
            ("settings", Annotated[group("Settings", "What to learn, and how.", FIRST), tyro.conf.arg(name="")]),
            ("command", Annotated[command, tyro.conf.arg(name="")]),
            ("advanced", Annotated[group("Advanced", "What rarely matters.", rest), tyro.conf.OmitArgPrefixes]),
            (learner, own, field(default=build(own, table.get(learner, {}), where))),
        ],
        frozen=True,
    )


def field_docs(kind: type) -> dict[str, str]:
    """The docstring below each field of a dataclass."""
    (body,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(body, ast.ClassDef)
    found = {}
    for entry, text in pairwise(body.body):
        if isinstance(entry, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
            assert isinstance(entry.target, ast.Name)
            found[entry.target.id] = " ".join(str(text.value.value).split())
    return found
