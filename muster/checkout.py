"""The commit of the code, if it is a checkout of its repository and git is installed."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
SECONDS = 5.0
"""Time limit of a git command."""


@cache
def code_commit() -> str | None:
    """The commit that is checked out, followed by ", changed" if the code differs from it; None if unknown."""
    commit = _git("rev-parse", "--short=12", "HEAD")
    if not commit:
        return None
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", str(PACKAGE))
    return commit if changed == "" else f"{commit}, changed"


def _git(*words: str) -> str | None:
    """Output of a git command; None without git or a checkout."""
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
