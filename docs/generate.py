"""Writes the reference, docs/reference/{api,command-line,settings}.md, from the code: python docs/generate.py

What is between the two marks of a page is made from exports, dataclasses and their docstrings; the rest is written by
hand. The result is committed, so that a clone has it; tests/test_docs.py compares it with the code.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import typing
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from types import UnionType
from typing import Any

ROOT = Path(__file__).parent.parent
MADE = re.compile(r"(<!-- made from (\w+): .*? -->\n).*?(<!-- end -->)", re.DOTALL)
HEAD = ["", "| name | values | default | meaning |", "|---|---|---|---|"]


def made_text(page: str) -> str:
    """The text of a page with what is made from the code made anew."""
    return MADE.sub(lambda found: f"{found[1]}\n{MAKERS[found[2]]().strip()}\n\n{found[3]}", page)


# -- Settings and flags ------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Setting:
    """One field of a settings dataclass as a reader meets it."""

    name: str
    kind: str
    default: str
    text: str
    positional: bool = False
    table: type | None = None
    """The dataclass of a nested table of settings."""
    flag: str = ""
    """What the command line calls it, where that is not its name."""


def settings_of(kind: type) -> list[Setting]:
    """The fields of a settings dataclass, in order."""
    hints = typing.get_type_hints(kind, include_extras=True)
    texts = field_texts(kind)
    found = []
    for field in dataclasses.fields(kind):
        hint, marks, bounds, flag = hints[field.name], "", "", ""
        if typing.get_origin(hint) is typing.Annotated:
            marks = repr(hint.__metadata__)
            bounds = "".join(f", {mark}" for mark in hint.__metadata__ if hasattr(mark, "holds"))
            flag = next((mark.name for mark in hint.__metadata__ if getattr(mark, "name", None)), "")
            hint = typing.get_args(hint)[0]
        found.append(
            Setting(
                field.name,
                kind_text(hint) + bounds,
                default_text(field),
                texts.get(field.name, ""),
                "POSITIONAL" in marks.upper(),
                hint if dataclasses.is_dataclass(hint) else None,
                flag,
            )
        )
    return found


@cache
def field_texts(kind: type) -> dict[str, str]:
    """The docstring under each field of a class, bases included."""
    texts: dict[str, str] = {}
    for base in reversed(kind.__mro__[:-1]):
        try:
            body = ast.parse(inspect.cleandoc("\n" + inspect.getsource(base))).body[0].body  # type: ignore[attr-defined]
        except (OSError, TypeError):
            continue
        for line, after in zip(body, [*body[1:], None], strict=True):
            if not (isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name)):
                continue
            if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                texts[line.target.id] = " ".join(str(after.value.value).split())
    return texts


def kind_text(hint: Any) -> str:
    """A type as one writes its values."""
    if typing.get_origin(hint) is typing.Annotated:
        return kind_text(typing.get_args(hint)[0])
    if typing.get_origin(hint) is typing.Literal:
        return ", ".join(f"`{choice}`" for choice in typing.get_args(hint))
    if typing.get_origin(hint) in (typing.Union, UnionType):
        return " or ".join(kind_text(option) for option in typing.get_args(hint) if option is not type(None))
    if typing.get_origin(hint) is tuple:
        inner = typing.get_args(hint)
        return f"any number of {kind_text(inner[0])}" if inner[-1] is ... else " x ".join(map(kind_text, inner))
    words = {int: "whole number", float: "number", bool: "true or false", str: "text", Path: "path"}
    return words.get(hint, getattr(hint, "__name__", str(hint)))


def default_text(field: dataclasses.Field[Any]) -> str:
    """A default as one writes it; empty where there is none or it says nothing."""
    value = field.default
    if value in (dataclasses.MISSING, None, (), ""):
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def rows(kind: type, prefix: str = "", flags: bool = False) -> Iterator[str]:
    """A table row a setting; flags include those of nested tables, which otherwise are a link to their own."""
    for setting in settings_of(kind):
        name = prefix + setting.name
        if setting.table is not None and not flags:
            text = (inspect.getdoc(setting.table) or "").partition("\n")[0]
            yield f"| `{name}` | [{setting.table.__name__}](#{setting.table.__name__.lower()}) | | {text} |"
            continue
        if setting.table is not None:
            # A nested dataclass that tyro is told to call "" lends its fields to the command itself.
            inner = prefix if setting.name == "settings" else f"{name}."
            yield from rows(setting.table, inner, flags)
            continue
        if flags:
            called = prefix + (setting.flag or setting.name)
            name = setting.name.upper() if setting.positional else "--" + called.replace("_", "-")
        text = setting.text.replace("|", "\\|")
        yield f"| `{name}` | {setting.kind} | {setting.default} | {text} |"


def settings_classes() -> list[type]:
    """Every dataclass that is called Settings or Options of something, those of training first."""
    found = []
    for path in sorted(ROOT.glob("muster/**/*.py")):
        names = re.findall(r"^class (\w+(?:Settings|Options))\b", path.read_text(encoding="utf-8"), re.MULTILINE)
        if names:
            module = import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
            found += [getattr(module, name) for name in names]
    order = (
        "TrainSettings",
        "PPOSettings",
        "A2CSettings",
        "ESSettings",
        "ImitationSettings",
        "NoiseSettings",
        "InferenceSettings",
    )
    found = [kind for kind in found if dataclasses.is_dataclass(kind)]
    return sorted(found, key=lambda kind: order.index(kind.__name__) if kind.__name__ in order else len(order))


def settings_tables() -> str:
    """One table for each settings dataclass."""
    lines: list[str] = []
    for kind in settings_classes():
        text = (inspect.getdoc(kind) or "").strip()
        plain = list(rows(kind))
        lines += [f"## {kind.__name__}", "", text, "", f"`{kind.__module__}.{kind.__name__}`", *HEAD, *plain, ""]
    return "\n".join(lines)


def command_tables() -> str:
    """Each command with its arguments and flags."""
    from muster.cli.main import COMMANDS

    lines: list[str] = []
    for name, target in COMMANDS.items():
        module, _, attribute = target.partition(":")
        kind = getattr(import_module(module), attribute)
        places = [setting.name.upper() for setting in flat(kind) if setting.positional]
        usage = " ".join(["muster", name, *places, "…"])
        text = (inspect.getdoc(kind) or "").strip()
        lines += [f"## {name}", "", text, "", f"    {usage}", *HEAD[:1]]
        table = list(rows(kind, flags=True))
        lines += [*HEAD[1:], *table, ""] if table else ["No flags.", ""]
    return "\n".join(lines)


def flat(kind: type) -> Iterator[Setting]:
    """The fields of a command, those of its nested settings included."""
    for setting in settings_of(kind):
        if setting.table is not None and setting.name == "settings":
            yield from flat(setting.table)
        else:
            yield setting


# -- Public names ------------------------------------------------------------------------------------------------------


def public_names() -> str:
    """Signature and docstring of every public name of the package, functions first."""
    import muster

    groups: dict[str, list[str]] = {"Functions": [], "Types": [], "Errors": []}
    for name in muster.__all__:
        thing = getattr(muster, name)
        if inspect.ismodule(thing):  # muster.assign is a package that can be called
            thing = getattr(thing, name)
        if isinstance(thing, str) or thing in settings_classes():
            continue
        group = "Functions" if not isinstance(thing, type) else "Errors" if issubclass(thing, Exception) else "Types"
        groups[group].append("\n".join(describe(f"muster.{name}", thing)))
    layer = import_module("muster.torch")
    groups["With torch"] = [
        "\n".join(describe(f"muster.torch.{name}", getattr(layer, name))) for name in ("assign_layer", "AssignLayer")
    ]
    return "\n".join(f"## {group}\n\n" + "\n".join(entries) for group, entries in groups.items() if entries)


def describe(name: str, thing: Any) -> Iterator[str]:
    """The lines of a function or class: heading, signature, docstring, fields and methods."""
    yield from (f"### {name}", "")
    if isinstance(thing, type) and issubclass(thing, Exception):
        yield from (docstring(thing), "")
        return
    yield from ("```text", signature(name, thing), "```", "", docstring(thing), "")
    if isinstance(thing, type):
        members = [*fields_of(thing), *methods_of(thing)]
        yield from ("| | |", "|---|---|", *members, "") if members else ()


def signature(name: str, thing: Any) -> str:
    """How it is called, in lines of at most 120 characters."""
    if isinstance(thing, type) and inspect.isabstract(thing):
        return f"class {name}"
    try:
        call = inspect.signature(thing)
    except ValueError:
        return f"class {name}"
    parts = [argument(part) for part in call.parameters.values()]
    marks = [part.kind for part in call.parameters.values()]
    if inspect.Parameter.KEYWORD_ONLY in marks and inspect.Parameter.VAR_POSITIONAL not in marks:
        parts.insert(marks.index(inspect.Parameter.KEYWORD_ONLY), "*")
    returned = call.return_annotation
    after = "" if isinstance(thing, type) or returned is call.empty else f" -> {annotation(returned)}"
    line = f"{name}({', '.join(parts)}){after}"
    return line if len(line) <= 100 else f"{name}(\n    " + ",\n    ".join(parts) + f",\n){after}"


def argument(part: inspect.Parameter) -> str:
    """One argument as the code has it."""
    stars = {part.VAR_POSITIONAL: "*", part.VAR_KEYWORD: "**"}.get(part.kind, "")
    kind = "" if part.annotation is part.empty else f": {annotation(part.annotation)}"
    default = "" if part.default is part.empty else f" = {getattr(part.default, '__name__', repr(part.default))}"
    return stars + part.name + kind + (" = …" if "<" in default else default)


def annotation(hint: Any) -> str:
    """A type without the modules that it comes from."""
    hint = getattr(hint, "__forward_arg__", hint)
    text = hint if isinstance(hint, str) else inspect.formatannotation(hint)
    text = re.sub(r"Annotated\[(.*?), \w+\(.*\)\]", r"\1", text)
    return re.sub(r"\b(?:muster|numpy|collections|typing)\.(?:\w+\.)*", "", text)


def docstring(thing: Any) -> str:
    """Its docstring as Markdown; examples become blocks."""
    text = inspect.cleandoc(thing.__doc__ or "")
    return re.sub(r"(?:^>>> .*(?:\n(?!\n).*)*)", lambda found: f"```pycon\n{found[0]}\n```", text, flags=re.MULTILINE)


def fields_of(kind: type) -> Iterator[str]:
    """A row for each documented field."""
    texts = field_texts(kind)
    shown = [field.name for field in dataclasses.fields(kind)] if dataclasses.is_dataclass(kind) else list(texts)
    for name in shown:
        if not name.startswith("_") and texts.get(name):
            yield f"| `{name}` | {escape(texts[name])} |"


def methods_of(kind: type) -> Iterator[str]:
    """A row for each public method and property of its own, with the first paragraph of the docstring."""
    for name, member in vars(kind).items():
        found = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        if name.startswith("_") or not (inspect.isfunction(found) or isinstance(found, property)):
            continue
        text = " ".join((inspect.getdoc(found) or "").partition("\n\n")[0].split())
        call = name if isinstance(found, property) else f"{name}({', '.join(names_of(found))})"
        yield f"| `{call}` | {escape(text)} |"


def names_of(function: Callable[..., Any]) -> Iterator[str]:
    """The names of what a method takes; optional ones have an equals sign."""
    for part in list(inspect.signature(function).parameters.values())[1:]:
        stars = {part.VAR_POSITIONAL: "*", part.VAR_KEYWORD: "**"}.get(part.kind, "")
        yield stars + part.name + ("=" if part.default is not part.empty else "")


def escape(text: str) -> str:
    """Text for a cell of a table."""
    return text.replace("|", "\\|")


MAKERS: dict[str, Callable[[], str]] = {
    "settings": settings_tables,
    "commands": command_tables,
    "exports": public_names,
}


def pages() -> list[Path]:
    """The pages with text that is made from the code."""
    return [path for path in sorted(ROOT.glob("docs/reference/*.md")) if MADE.search(path.read_text(encoding="utf-8"))]


if __name__ == "__main__":
    for path in pages():
        path.write_text(made_text(path.read_text(encoding="utf-8")), encoding="utf-8")
