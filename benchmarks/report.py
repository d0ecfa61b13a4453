"""Reports of benchmarks: tables for the console, and Markdown for the record."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

# Above this load average others are at work: one runs for the benchmark itself.
BUSY = 1.5


class Section(NamedTuple):
    """A table with a title and a note."""

    title: str
    note: str
    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


def target_section(targets: Iterable[dict[str, Any]]) -> Section:
    """Targets beside what was measured."""
    rows = [(one["target"], one["shown"], "yes" if one["met"] else "NO", one.get("remark", "")) for one in targets]
    return Section("Targets, and what was measured", "", ("target", "measured", "met", "remarks"), rows)


def as_markdown(title: str, made_by: str, preamble: Iterable[str], sections: Iterable[Section]) -> str:
    """The whole report as Markdown."""
    lines = [f"# {title}", "", f"Made by {made_by}."]
    for paragraph in preamble:
        lines += ["", paragraph]
    for section in sections:
        lines += ["", f"## {section.title}", ""]
        lines += [section.note, ""] if section.note else []
        lines.append(f"| {' | '.join(section.header)} |")
        lines.append("|" + "---|" * len(section.header))
        lines += [f"| {' | '.join(row)} |" for row in section.rows]
    return "\n".join(lines)


def print_report(preamble: Iterable[str], sections: Iterable[Section]) -> None:
    """The whole report on the console."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    for section in sections:
        table = Table(*section.header, title=section.title, title_justify="left", caption=section.note or None)
        for row in section.rows:
            table.add_row(*row)
        console.print(table)
    for paragraph in preamble:
        console.print(paragraph)
