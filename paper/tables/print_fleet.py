"""How `python -m paper tables fleet` prints learned policies beside the rules."""

from __future__ import annotations

from typing import Any

from paper.tables import fleet as table
from paper.tables.fleet import REFERENCES, TESTS, Cell, Record

TITLES = {
    "24": "24 vehicles, 11 zones: 20 test days",
    "100": "100 vehicles, 38 zones: 20 test days",
    "300": f"300 vehicles, 38 zones: {table.CITY_EPISODES} hours of the generator",
}


def line_of(cell: Cell) -> str:
    """A cell in a line."""
    return f"{cell.policy} on {cell.test}: {cell.mean:.2f}"


def print_table(record: Record) -> None:
    """A block for each test: rules, then methods."""
    from rich.console import Console
    from rich.table import Table

    console = Console(width=max(150, Console().width))
    for test in TESTS:
        grid: Any = Table(title=f"Fleet, {TITLES[test]}")
        for name in ("policy", "profit [95 %]", "each seed", *(f"minus {one} [95 %]" for one in REFERENCES), "CPU min"):
            grid.add_column(name, justify="left" if name == "policy" else "right")
        for row in table.rows_of(record):
            grid.add_row(*_row(record, row, test))
        console.print(grid)
        best = table.find(record, "hindsight", test)
        if best is not None and best.upper_bound is not None:
            print(f"No policy can earn more than {best.upper_bound:.1f} (all requests known, a flow).")
    print("Learned on 24 vehicles and 11 zones only. A learned row is the mean over its seeds, day by day.")
    print(f"made with: {record.command}")


def markdown(record: Record) -> str:
    """The tables for a document."""
    lines: list[str] = []
    for test in TESTS:
        against = " | ".join(f"minus {one}" for one in REFERENCES)
        lines += [f"| {TITLES[test]} | profit | each seed | {against} | CPU min |", "|---|---|---|---|---|---|"]
        lines += ["| " + " | ".join(_row(record, row, test)) + " |" for row in table.rows_of(record)]
        lines.append("")
    return "\n".join(lines).strip()


def _row(record: Record, row: str, test: str) -> list[str]:
    cell = table.find(record, row, test)
    if cell is None:
        return [row, "not run", "", *("" for _ in REFERENCES), ""]
    seeds = ", ".join(f"{one.mean:.1f}" for one in sorted(table.runs_of(record, row, test), key=lambda c: c.seeds))
    gains = [_gain(cell, reference, record, test) for reference in REFERENCES]
    minutes = "" if cell.cpu_minutes is None else f"{cell.cpu_minutes:.1f}"
    return [row, f"{cell.mean:.1f} ({cell.ci95[0]:.1f} to {cell.ci95[1]:.1f})", seeds, *gains, minutes]


def _gain(cell: Cell, reference: str, record: Record, test: str) -> str:
    base = table.find(record, reference, test)
    if reference not in cell.gains or base is None:
        return ""
    mean, low, high = cell.gains[reference]
    return f"{mean:+.1f} ({low:+.1f} to {high:+.1f}), {mean / base.mean:+.1%}"
