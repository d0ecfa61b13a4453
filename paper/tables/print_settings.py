"""How `python -m paper tables settings` prints the paper's best settings beside ours."""

from __future__ import annotations

from typing import Any

from paper.tables import best_settings as table
from paper.tables.best_settings import COLUMNS, METHODS, PAPER_DRAWS, WORLDS, Record

HEADS = ("rate", "lambda", "sigma", "n", "p")
REMARK = (
    "rate: of the policy (the paper's battles have one for both networks); n: return length; p: correlated steps. Ours "
    "are the draw with the best training reward, in the paper's ranges and with its own update (likelihood played); "
    "– where nothing is printed, drawn or searched. For search and rescue the paper prints none."
)


def print_table(record: Record) -> None:
    """One row a scenario and method: the paper's five settings, and ours."""
    from rich.console import Console
    from rich.table import Table

    console = Console(width=max(130, Console().width))
    grid: Any = Table(title="Best settings of the actor-critic: the paper's / ours")
    for head in ("trained on", "", *HEADS, "our draws", "reward"):
        grid.add_column(head, justify="left" if head in ("trained on", "") else "right")
    for row in _rows(record):
        grid.add_row(*row)
    console.print(grid)
    console.print(REMARK, soft_wrap=True)
    for line in _budgets(record):
        print(line)
    for command in record.commands:
        print(f"made with: {command}")


def markdown(record: Record) -> str:
    """The table for a document."""
    heads = ("trained on", "", *HEADS, "our draws", "reward")
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    lines += [f"| {' | '.join(row)} |" for row in _rows(record)]
    return "\n".join(lines)


def _rows(record: Record) -> list[tuple[str, ...]]:
    paper, rows = table.paper_settings(), []
    for scenario in WORLDS:
        for method in METHODS:
            cell = record.find(scenario, method)
            best = cell.best_draw if cell else None
            drawn = best["settings"] if best else {}
            printed = paper.get((scenario, method), {})
            pairs = (f"{_figure(printed.get(name))} / {_figure(drawn.get(name))}" for name in COLUMNS)
            ended = sum(draw["state"] == "done" for draw in cell.found) if cell else 0
            draws = f"{cell.draws} ({ended} to the end)" if cell else "–"
            rows.append((scenario, method.upper(), *pairs, draws, f"{best['value']:.4f}" if best else "–"))
    return rows


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"


def _budgets(record: Record) -> list[str]:
    budgets: dict[tuple[int, float], list[str]] = {}
    for cell in sorted(record.cells, key=lambda cell: list(WORLDS).index(cell.scenario)):
        names = budgets.setdefault((cell.draws, cell.minutes), [])
        names += [] if cell.scenario in names else [cell.scenario]
    lines = [
        f"{', '.join(names)}: {draws} draws of at most {minutes:g} CPU minutes a cell."
        for (draws, minutes), names in budgets.items()
    ]
    paper = f"{min(PAPER_DRAWS.values())} to {max(PAPER_DRAWS.values())} draws of 8 hours on a GPU"
    return [*lines, f"The paper's: {paper}. Ours are far below; the best draw is then mostly the luckiest."]
