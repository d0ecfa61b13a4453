"""A progress bar on standard error, so that standard output stays clean."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal


@contextmanager
def progress_bar(
    label: str, total: int | Literal["all"], quiet: bool = False
) -> Iterator[Callable[[int], None] | None]:
    """Yield the function that advances the bar, or None when quiet; the bar is drawn on terminals only."""
    if quiet:
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(label, total=None if total == "all" else total)
        yield lambda count: bar.advance(task, count)
