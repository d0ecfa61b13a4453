"""How `python -m paper tables rescue` prints the paper's Table 1 beside ours."""

from __future__ import annotations

from typing import Any

from paper.tables import rescue as table
from paper.tables.rescue import BASELINES, METHODS, PAPER, PAPER_BASELINE, PAPER_TOPLINE, TESTS, Cell, Record
from paper.tables.run_names import LEARNERS


def line_of(cell: Cell) -> str:
    """A cell in a line."""
    noise = " with noise" if cell.noise else ""
    mean = "all failed" if cell.mean is None else f"{cell.mean:.3f}"
    return f"{cell.policy} on {cell.test}{noise}: {mean}"


def print_table(record: Record) -> None:
    """A block for each cell of the paper's table."""
    from rich.console import Console
    from rich.table import Table

    console = Console(width=max(150, Console().width))
    grid: Any = Table(title=f"Search and rescue, mean steps over {record.episodes} episodes (seed {record.seed})")
    for name in ("train", "test", "method", "paper", "learner", "T [95 %]", "T-1", "with noise: T", "T-1"):
        grid.add_column(name, justify="right" if name not in ("train", "test", "method", "learner") else "left")
    for name in ("failed", "gap closed", "seeds", "CPU min"):
        grid.add_column(name, justify="right")
    for test in TESTS:
        printed = {"closest": PAPER_BASELINE[test], "topline": PAPER_TOPLINE[test]}
        for name in BASELINES:
            fixed = table.baseline(record, name, test)
            figures = ["not run"] + ["–"] * 5 if fixed is None else _figures(record, fixed, None)
            grid.add_row("–", test, name, _number(printed.get(name)), "–", *figures, "–", "–")
    for (train, test), row in PAPER.items():
        grid.add_section()
        for method, (steps, failures) in zip(METHODS, row, strict=True):
            shown = f"{steps:.2f}" + (f" ({failures:.1%})" if failures else "")
            for name in (method, *table.variants(record, method)):
                _add_rows(grid, record, (train, test), name, shown if name == method else "")
    console.print(grid)
    names = table.methods_of(record)
    for method in names:
        for learner in LEARNERS:
            found = table.improvements(record, method, learner, False)
            if any(value is not None for value in found.values()):
                parts = ", ".join(f"{name} {value:.0%}" for name, value in found.items() if value is not None)
                print(f"improvement over greedy, {method} by {learner}: {parts}")
    print("The paper's figures are best read as T-1 with the noise on (docs/environments/rescue.md).")
    for method in names:
        for learner in LEARNERS:
            level, cells = table.level_with_paper(record, method, learner)
            if cells:
                print(f"so read, {method} by {learner}: {level} of {cells} cells at or below the paper's figure")
    print("played: by the paper's own update; all other models by a2c learn from choices.")
    print("distilled: positional models that imitate the direct QUAD policy of their size, from the LP policy on.")
    print("raw: coordinates alone, as in the paper; the other direct models see relative positions as well.")
    print("The median seed is shown where there are several. gap closed: 0 is greedy, 100 % is the optimum.")
    print(f"made with: {record.command}")


def _add_rows(grid: Any, record: Record, sizes: tuple[str, str], method: str, printed: str) -> None:
    """A row for each learner that was run; one that says so where a method of the paper's was not."""
    train, test = sizes
    for learner in LEARNERS:
        cell = table.pick(record, train, test, method, learner, False)
        if cell is None:
            if learner == "a2c" and method in METHODS:
                grid.add_row(train, test, method, printed, "–", *["not run"] + ["–"] * 7)
            continue
        noisy = next((c for c in record.cells if c.noise and (c.policy, c.test) == (cell.policy, test)), None)
        same = [c for c in record.cells if not c.noise and (c.method, c.learner) == (method, learner)]
        seeds = len([c for c in same if (c.train, c.test) == (train, test)])
        minutes = "–" if cell.cpu_minutes is None else f"{cell.cpu_minutes:.1f}"
        grid.add_row(train, test, method, printed, learner, *_figures(record, cell, noisy), str(seeds), minutes)


def _number(value: float | None) -> str:
    return "n.a." if value is None else f"{value:.2f}"


def _figures(record: Record, cell: Cell, noisy: Cell | None) -> list[str]:
    if cell.mean is None or cell.ci95 is None:
        return ["all failed", "–", "–", "–", str(cell.failed), "–"]
    share = table.gap_closed(record, cell)
    steps = f"{cell.mean:.2f} [{cell.ci95[0]:.2f} {cell.ci95[1]:.2f}]"
    loud = ["–", "–"] if noisy is None or noisy.mean is None else [f"{noisy.mean:.2f}", f"{noisy.mean - 1:.2f}"]
    failed = f"{cell.failed}" + (f" / {noisy.failed}" if noisy is not None else "")
    return [steps, f"{cell.mean - 1:.2f}", *loud, failed, "–" if share is None else f"{share:.0%}"]
