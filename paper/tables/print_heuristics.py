"""How `python -m paper tables heuristics` prints the paper's table beside ours."""

from __future__ import annotations

from typing import Any

from paper.tables.heuristics import HEURISTICS, Cell, Record, errors, paper_cells


def line_of(cell: Cell) -> str:
    """A cell in a line."""
    return f"{cell.heuristic} on {cell.scenario}: {cell.wins} of {cell.battles} battles won"


def print_table(record: Record) -> None:
    """A row a scenario, and how far we are from the paper."""
    from rich.console import Console
    from rich.table import Table

    paper = paper_cells()
    grid: Any = Table(title=f"Win rate, ours [95 % interval] / the paper's ({record.battles} battles a cell)")
    grid.add_column("scenario")
    for heuristic in HEURISTICS:
        grid.add_column(heuristic, justify="right")
    for scenario in dict.fromkeys(cell.scenario for cell in record.cells):
        row = [scenario]
        for cell in record.cells:
            if cell.scenario == scenario:
                low, high = cell.interval
                row.append(f"{cell.rate:.2f} [{low:.2f} {high:.2f}] / {paper[scenario][cell.heuristic]:.2f}")
        grid.add_row(*row)
    console = Console(width=max(190, Console().width))
    console.print(grid)
    found = errors(record)
    print(f"mean absolute error {found.overall:.4f} over {len(record.cells)} cells", end="")
    print(f" (sampling alone: {found.expected_from_noise:.3f})")
    print("  by unit       " + ", ".join(f"{name} {value:.3f}" for name, value in found.by_unit.items()))
    print("  by heuristic  " + ", ".join(f"{name} {value:.3f}" for name, value in found.by_heuristic.items()))
    print(f"seed {record.seed}; made with: {record.command}")
