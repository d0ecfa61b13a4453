"""How `python -m paper tables pursuit` prints AMAX, LP and QUAD beside the rules."""

from __future__ import annotations

from typing import Any

from paper.tables import pursuit as table
from paper.tables.pursuit import GAMES, TESTS, Cell, Record

MARKS = {"better": "+", "even": "=", "worse": "-", "": ""}


def line_of(cell: Cell) -> str:
    """A cell in a line."""
    return f"{cell.policy} on {cell.test}, {cell.needed} needed: {cell.mean:.3f} {cell.verdict}".rstrip()


def print_table(record: Record) -> None:
    """A block for each game: rules, then methods, over the sizes."""
    from rich.console import Console
    from rich.table import Table

    console = Console(width=max(150, Console().width))
    for needed in GAMES:
        rows = table.rows_of(record, needed)
        if not rows:
            continue
        grid: Any = Table(title=f"Pursuit, {needed} needed: mean steps over {record.episodes} episodes (95 %)")
        grid.add_column("policy")
        for test in TESTS:
            grid.add_column(test, justify="right")
        for name in rows:
            grid.add_row(name, *(_figure(table.find(record, name, needed, test)) for test in TESTS))
            if name not in table.RULES:
                grid.add_row("  each seed", *(_seeds(table.runs_of(record, name, needed, test)) for test in TESTS))
        console.print(grid)
    print("Learned on 4x2 only; a learned row is the mean over its seeds. An episode that hit the limit counts 200.")
    print("+ - =: better or worse than the best rule of that size on the same episodes (paired, 95 %), or neither.")
    print(f"made with: {record.command}")


def markdown(record: Record) -> str:
    """The tables for a document."""
    lines: list[str] = []
    for needed in GAMES:
        rows = table.rows_of(record, needed)
        if not rows:
            continue
        lines += [f"| {needed} needed | {' | '.join(TESTS)} |", f"|---|{'---|' * len(TESTS)}"]
        for name in rows:
            figures = (_figure(table.find(record, name, needed, test)) for test in TESTS)
            lines.append(f"| {name} | {' | '.join(figures)} |")
        lines.append("")
    return "\n".join(lines).strip()


def _figure(cell: Cell | None) -> str:
    if cell is None:
        return "not run"
    failed = f", {cell.failed:.2%} fail" if cell.failed else ""
    mark = MARKS[cell.verdict]
    return f"{cell.mean:.2f} ({cell.ci95[0]:.2f} to {cell.ci95[1]:.2f}{failed}){' ' if mark else ''}{mark}"


def _seeds(cells: list[Cell]) -> str:
    return ", ".join(f"{cell.mean:.2f}{MARKS[cell.verdict]}" for cell in sorted(cells, key=lambda cell: cell.seeds))
