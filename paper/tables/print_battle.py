"""How `python -m paper tables battle` prints the paper's Tables 2 and 3 beside ours, for a terminal or as markdown."""

from __future__ import annotations

from typing import Any

from paper.tables import heuristics as heuristics_table
from paper.tables.battle import (
    HOW_TO_MAKE,
    NOTES,
    Cell,
    Record,
    Row,
    best_heuristics,
    changed_settings,
    mark_of,
    paper_rows,
    rows_of,
)

COLUMNS = (
    "test", "best heuristic: paper", "ours [95 %]", "method", "paper", "learner", "median seed [95 %]",
    "over seeds: median (min-max)", "seeds", "with noise", "CPU min", "M steps",
)  # fmt: skip


def line_of(cell: Cell) -> str:
    """A cell in a line."""
    noise = " with noise" if cell.noise else ""
    return f"{cell.policy} on {cell.test}{noise}: {cell.wins} of {cell.battles} battles won"


def print_table(record: Record, heuristics: heuristics_table.Record | None) -> None:
    """A block for each scenario."""
    from rich.console import Console
    from rich.table import Table

    console = Console(width=max(190, Console().width))
    grid: Any = Table(title="Battles, win rate", title_justify="left")
    for name in COLUMNS:
        grid.add_column(name, justify="left" if name in ("test", "method", "learner") else "right")
    for block in _blocks(record, heuristics):
        grid.add_section()
        for row in block:
            grid.add_row(*row)
    console.print(grid)
    for line in footer(record, heuristics):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def markdown(record: Record, heuristics: heuristics_table.Record | None) -> str:
    """Win rates of the median seeds, a scenario a row; then every method with its spread; then the notes."""
    parts = [
        _markdown_table(*_summary(record, heuristics)),
        _markdown_table(list(COLUMNS), [row for block in _blocks(record, heuristics) for row in block]),
        "\n".join(f"- {line}" for line in footer(record, heuristics)),
    ]
    return "\n\n".join(parts)


def _markdown_table(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, ["---"] * len(head), *rows))


def _blocks(record: Record, heuristics: heuristics_table.Record | None) -> list[list[list[str]]]:
    """The rows of each scenario, as text."""
    return [
        [
            (["", "", ""] if place else _heads(test, heuristics)) + _figures(row)
            for place, row in enumerate(rows_of(record, test))
        ]
        for test in paper_rows()
    ]


def _heads(test: str, heuristics: heuristics_table.Record | None) -> list[str]:
    """Scenario, the paper's best heuristic and ours."""
    printed, ours = paper_rows()[test], best_heuristics(heuristics).get(test)
    shown = "–" if ours is None else f"{ours.heuristic} {_rate(ours)}"
    return [test + mark_of(test), f"{printed.heuristic} {printed.best[0]:.2f}", shown]


def _figures(row: Row) -> list[str]:
    """Method, the paper's figure and ours."""
    paper = "–" if row.paper is None else f"{row.paper[0]:.2f}"
    method = row.method if row.train == paper_rows()[row.test].train else f"{row.method} ({row.train})"
    if not row.seeds:
        return [method, paper, row.learner or "–", "not run", *["–"] * 5]
    middle, low, high = row.spread or (0.0, 0.0, 0.0)
    cost = row.median or row.seeds[0]
    return [
        method,
        paper,
        row.learner,
        "not run" if row.median is None else _rate(row.median),
        f"{middle:.2f} ({low:.2f}-{high:.2f})",
        str(len(row.seeds)),
        "–" if row.noisy is None else f"{row.noisy.rate:.2f}",
        "–" if cost.cpu_minutes is None else f"{cost.cpu_minutes:.1f}",
        "–" if cost.steps is None else f"{cost.steps / 1e6:.1f}",
    ]


def _rate(cell: Cell | heuristics_table.Cell) -> str:
    low, high = cell.interval
    return f"{cell.rate:.2f} [{low:.2f} {high:.2f}]"


def _summary(record: Record, heuristics: heuristics_table.Record | None) -> tuple[list[str], list[list[str]]]:
    """Head and rows of the short table: the paper's figure and each learner's median seed, method by method."""
    every = {test: rows_of(record, test) for test in paper_rows()}
    methods = list(dict.fromkeys(row.method for rows in every.values() for row in rows))
    methods.sort(key=_is_plain, reverse=True)
    learners = {
        m: sorted({r.learner for rows in every.values() for r in rows if r.method == m} - {""}) for m in methods
    }
    head = ["test", "best heuristic: paper", "ours [95 %]"]
    for method in methods:
        head += [f"{method} paper"] * _is_plain(method) + [f"{method} {learner}" for learner in learners[method]]
    lines = []
    for test, rows in every.items():
        train = paper_rows()[test].train
        found = {(row.method, row.learner): row for row in rows if row.train == train}
        line = _heads(test, heuristics)
        for method in methods:
            if _is_plain(method):
                paper = next((row.paper for row in found.values() if row.method == method), None)
                line.append("–" if paper is None else f"{paper[0]:.2f}")
            for learner in learners[method]:
                row = found.get((method, learner))
                line.append("–" if row is None or row.median is None else _rate(row.median))
        lines.append(line)
    return head, lines


def _is_plain(method: str) -> bool:
    """Whether a method has no variant: "quad-dm", not "quad-dm-raw"."""
    return method.count("-") == 1


def footer(record: Record, heuristics: heuristics_table.Record | None) -> list[str]:
    """What a reader must know, a line each."""
    lines = [f"{note.mark} {note.text}." for note in NOTES]
    lines.append(
        "The median seed, one policy a method and learner, has the median win rate in the scenario trained on; "
        "the spread is over all seeds."
    )
    if any(cell.learner == "es" and cell.noise for cell in record.cells):
        lines.append("Evolution trains without noise on the scores; with noise it plays with the default settings.")
    if heuristics is None:
        lines.append("Our heuristics: no record here; run python -m paper tables heuristics --rerun.")
    elif changed := changed_settings(record, heuristics):
        lines.append(
            f"Our heuristics were played under OTHER simulator settings than the policies ({', '.join(changed)}); "
            "compare them after python -m paper tables heuristics --rerun or tables battle --rerun."
        )
    missing = any(row.median is None for test in paper_rows() for row in rows_of(record, test))
    if missing:
        lines.append(f"Where it says not run: {HOW_TO_MAKE}.")
    commands = dict.fromkeys(cell.command for cell in record.cells)
    return lines + [f"made with: {command}" for command in commands]
