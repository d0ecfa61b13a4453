"""From arguments to a command, or one sentence that says what is wrong with them."""

from __future__ import annotations

import ast
import io
import re
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr
from typing import TypeVar

from muster.errors import InputError, suggestion

Parsed = TypeVar("Parsed")

_CHOICE = re.compile(r"invalid choice '(.*)' for argument '(.*)'\. Expected one of (\(.*\))\.")


def parse(read: Callable[[Sequence[str]], Parsed], arguments: Sequence[str]) -> Parsed:
    """What `read` makes of the arguments; the box in which tyro refuses them becomes an InputError."""
    box = io.StringIO()
    try:
        with redirect_stderr(box):
            return read(arguments)
    except SystemExit as refusal:
        if not refusal.code or not box.getvalue():
            raise
    raise InputError(sentence(box.getvalue()))


def sentence(box: str) -> str:
    """The first thing that tyro's box says, with the nearest name where there is one, and where to read on."""
    sections: list[list[str]] = [[]]
    for line in box.splitlines():
        text = line.strip("│ ").strip()
        if len(text) > 2 and not text.strip("─-"):
            sections.append([])
        elif not text.startswith(("╭", "╰")):
            sections[-1].append(text)
    # Where the terminal has no such letters the title stands in the first section, alone.
    if "╭" not in box and len(sections) > 1:
        del sections[0]
    # A blank line ends what was wrong; what follows are the parser's inner thoughts.
    first = sections[0]
    words = " ".join(first[: first.index("")] if "" in first else first).rstrip(".")
    if choice := _CHOICE.search(words + "."):
        words = f"no {choice[2]} {choice[1]!r}{suggestion(choice[1], map(str, ast.literal_eval(choice[3])))}"
    for section in sections[1:]:
        if section and section[0].startswith("Perhaps you meant") and len(section) > 1:
            words += f"; did you mean {section[1].split()[0]}?"
    help_at = re.search(r"muster[ a-z]* --help", " ".join(sections[-1]))
    return f"{words} ({help_at[0]} says more)" if help_at and len(sections) > 1 else words
