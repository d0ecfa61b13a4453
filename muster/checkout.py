"""Which commit the code is of, where it lies in a checkout of its repository and git is there to say so."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
SECONDS = 5.0
"""That git may take."""


@cache
def code_commit() -> str | None:
    """The commit that is checked out, "changed" beside it if the code is not as committed; None: unknown."""
    commit = _ask("rev-parse", "--short=12", "HEAD")
    if not commit:
        return None
    changed = _ask("status", "--porcelain", "--untracked-files=no", "--", str(PACKAGE))
    return commit if changed == "" else f"{commit}, changed"


def _ask(*words: str) -> str | None:
    """What git says; None if there is no git, or no checkout that this package is the code of."""
    root = PACKAGE.parent
    if not (root / ".git").exists():
        return None
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *words], capture_output=True, text=True, check=False, timeout=SECONDS
        )
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
