"""Telling the user why the first battle of an installation takes a while to begin."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

_told = False


def is_compiled() -> bool:
    """Whether numba's disk cache holds the battle kernels of the present sources."""
    from muster.envs.battle.dynamics import play_decisions

    dispatcher: Any = play_decisions
    stats = getattr(dispatcher, "stats", None)
    # A plain function (compilation switched off), or compiled in this process already.
    if stats is None or dispatcher.signatures:
        return True
    indices = Path(stats.cache_path or ".").glob("dynamics.play_decisions-*.nbi")
    source = Path(__file__).with_name("dynamics.py")
    return any(index.stat().st_mtime >= source.stat().st_mtime for index in indices)


def announce_compilation() -> None:
    """Say once, on standard error, that kernels are about to be compiled; silent when the cache is warm."""
    global _told
    if _told or is_compiled():
        return
    _told = True
    from rich.console import Console

    Console(file=sys.stderr).print(
        "[dim]muster: compiling the battle simulator; about a minute, the first time only…[/dim]", highlight=False
    )
