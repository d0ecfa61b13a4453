"""What the site takes from the code and from outside docs/ when it is built.

Tables of settings, commands and public names come from the dataclasses and exports themselves. The changelog, the guide
for contributors, the laboratory's notes, the records of the benchmarks and the examples stay where they are and become
pages. Links are written so that they hold in the repository; here they are turned to where the pages are on the site.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import os
import re
import typing
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from types import UnionType
from typing import Any

ROOT = Path(__file__).parent.parent
LINK = re.compile(r"(\]\()([^)#:\s]+)((?:#[^)\s]*)?\))")
MARK = re.compile(r"^<!-- made from (\w+) -->$", re.MULTILINE)


# -- Pages from outside docs/ ------------------------------------------------------------------------------------------


def outside_pages() -> dict[str, str]:
    """File in the repository -> page on the site."""
    pages = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md", "paper/NOTES.md": "results/notes.md"}
    for path in sorted(ROOT.glob("benchmarks/*.md")):
        pages[f"benchmarks/{path.name}"] = f"results/benchmark-{path.name}"
    for path in sorted(ROOT.glob("examples/*.py")):
        if path.name != "__init__.py":
            pages[f"examples/{path.name}"] = f"examples/{path.stem}.md"
    return pages


def outside_text(source: str) -> str:
    """The Markdown of such a page; a program is shown as it is, under its own first words."""
    text = (ROOT / source).read_text(encoding="utf-8")
    if not source.endswith(".py"):
        return text
    return f"# {source}\n\n```python\n{text}```\n"


def turn_links(text: str, source: str) -> str:
    """Links of `source`, a path in the repository, as they must read on the site."""
    pages = outside_pages()
    here = place(source, pages)

    def turn(found: re.Match[str]) -> str:
        target = os.path.normpath(os.path.join(os.path.dirname(source), found[2]))
        return found[1] + os.path.relpath(place(target, pages), os.path.dirname(here) or ".") + found[3]

    return LINK.sub(turn, text)


def place(path: str, pages: dict[str, str]) -> str:
    """Where a file of the repository is on the site."""
    return pages.get(path) or path.removeprefix("docs/")


# -- Tables from the code ----------------------------------------------------------------------------------------------


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
        "SRLSettings",
        "ImitationSettings",
        "NoiseSettings",
        "InferenceSettings",
    )
    found = [kind for kind in found if dataclasses.is_dataclass(kind)]
    return sorted(found, key=lambda kind: order.index(kind.__name__) if kind.__name__ in order else len(order))


HEAD = ["", "| name | values | default | meaning |", "|---|---|---|---|"]


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
        usage = " ".join(["muster", name, *places, "[flags]"])
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


def public_names() -> str:
    """Directives for the public names of the package, functions first."""
    import muster

    groups: dict[str, list[str]] = {"Functions": [], "Types": [], "Errors": []}
    for name in muster.__all__:
        thing = getattr(muster, name)
        if isinstance(thing, str) or thing in settings_classes():
            continue
        group = "Functions" if not isinstance(thing, type) else "Errors" if issubclass(thing, Exception) else "Types"
        lines = [f"::: {thing.__module__}.{name}", "    options:", f"      heading: muster.{name}"]
        groups[group].append("\n".join([*lines, f"      toc_label: {name}", ""]))
    return "\n".join(f"## {group}\n\n" + "\n".join(entries) for group, entries in groups.items() if entries)


MADE: dict[str, Callable[[], str]] = {
    "settings": settings_tables,
    "commands": command_tables,
    "exports": public_names,
}


# -- The hooks themselves ----------------------------------------------------------------------------------------------


def on_config(config: Any) -> Any:
    """A page that mkdocs.yml does not name goes to the end of the section where others of its folder are."""
    on_site = [path.relative_to(ROOT / "docs").as_posix() for path in sorted(ROOT.glob("docs/**/*.md"))]
    add_to_sections(config.nav, [*on_site, *outside_pages().values()])
    return config


def add_to_sections(nav: list[Any], pages: list[str]) -> None:
    """Add what is missing to the sections of `nav`, which is changed."""
    sections = [next(iter(entry.values())) for entry in nav]
    lists = [section for section in sections if isinstance(section, list)]
    named = {next(iter(entry.values())) for section in lists for entry in section} | {
        section for section in sections if isinstance(section, str)
    }
    for page in pages:
        if page in named:
            continue
        folder = os.path.dirname(page)
        home = [section for section in lists if any(os.path.dirname(next(iter(e.values()))) == folder for e in section)]
        if home:
            home[0].append({heading(page): page})


def heading(page: str) -> str:
    """What a page is called: its first heading."""
    sources = {target: source for source, target in outside_pages().items()}
    source = sources.get(page, f"docs/{page}")
    return re.search(r"^# (.*)$", outside_text(source), re.MULTILINE)[1]  # type: ignore[index]


def on_files(files: Any, config: Any) -> Any:
    """Add the pages from outside docs/."""
    from mkdocs.structure.files import File

    for source, target in outside_pages().items():
        files.append(File.generated(config, target, content=turn_links(outside_text(source), source)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Fill in the tables and turn the links of a page in docs/."""
    del config, files
    text = MARK.sub(lambda found: MADE[found[1]](), markdown)
    return text if page.file.generated_by else turn_links(text, f"docs/{page.file.src_uri}")
