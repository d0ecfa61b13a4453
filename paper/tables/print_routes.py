"""How `python -m paper tables routes` prints learned routes beside the planners."""

from __future__ import annotations

from typing import Any

from paper.tables import routes as table
from paper.tables.routes import METHOD, RULES, TESTS, Cell, Record

TITLES = {table.DRY: "Dry ground: above the optimum", table.MUDDY: "In mud: share of the gap that is closed"}


def line_of(cell: Cell) -> str:
    """A cell in a line."""
    return f"{cell.policy} on {cell.test}, {cell.ground}: {cell.mean:.3f} {_remark(cell)}".rstrip()


def _remark(cell: Cell) -> str:
    if cell.closed is not None:
        return f"closes {cell.closed:.0%}"
    return f"{cell.above:+.2%}"


def _figure(cell: Cell | None) -> str:
    if cell is None:
        return "not run"
    failed = f", {cell.failed:.2%} fail" if cell.failed else ""
    return f"{cell.mean:.2f} ({cell.ci95[0]:.2f} to {cell.ci95[1]:.2f}{failed}); {_remark(cell)}"


def rows(record: Record, ground: str) -> list[tuple[str, ...]]:
    """Rules, the mean over seeds, and each seed's remark, over the sizes."""
    made = [
        (name, *(_figure(table.find(record, name, ground, test)) for test in TESTS[ground]))
        for name in (*RULES[ground], METHOD)
    ]
    seeds = (", ".join(_remark(cell) for cell in table.seeds_of(record, ground, test)) for test in TESTS[ground])
    return [*made, ("each seed", *seeds)]


def print_table(record: Record) -> None:
    """A block for each ground."""
    from rich.console import Console
    from rich.table import Table

    console = Console(width=max(150, Console().width))
    for ground, title in TITLES.items():
        grid: Any = Table("policy", *TESTS[ground], title=f"{title}; mean steps over {record.episodes} episodes (95 %)")
        for row in rows(record, ground):
            grid.add_row(*row)
        console.print(grid)
    print("PLAN-DM was learned on 2x4 only, from distances on; its row is the mean over its seeds.")
    print(f"made with: {record.command}")


def markdown(record: Record) -> str:
    """The tables for a document."""
    lines: list[str] = []
    for ground in TITLES:
        lines += [f"| {ground} | {' | '.join(TESTS[ground])} |", f"|---|{'---|' * len(TESTS[ground])}"]
        lines += [f"| {' | '.join(row)} |" for row in rows(record, ground)]
        lines.append("")
    return "\n".join(lines).strip()
