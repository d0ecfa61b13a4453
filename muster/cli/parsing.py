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
_LACKING = re.compile(r"Missing from (muster [a-z-]+):")
_NO_VALUE = re.compile(r"Missing value for argument '(.*)'")
_NO_TYPE = re.compile(r"Error parsing (--\S+): no type matching (\S+) could be instantiated from \['(.*)'\]")
_NO_NUMBER = re.compile(
    r"Error parsing (--\S+): (?:invalid literal for (int)\(\) with base 10|could not convert string to float): (.*)"
)
_SETTING = re.compile(r"Error parsing settings\.(\S+): ([a-z_]+) (.*)")

KINDS = {"INT": "a whole number", "FLOAT": "a number", "STR": "text", "PATH": "a path"}
"""tyro's words for kinds of values, in ours."""


def parse(read: Callable[[Sequence[str]], Parsed], arguments: Sequence[str], command: str = "") -> Parsed:
    """What `read` makes of the arguments; the box in which tyro refuses them becomes an InputError.

    `command` is the one that they are for, if they are for one.
    """
    box = io.StringIO()
    try:
        with redirect_stderr(box):
            return read(arguments)
    except SystemExit as refusal:
        if not refusal.code or not box.getvalue():
            raise
    told = sentence(box.getvalue())
    raise InputError(told.replace("(muster --help", f"(muster {command} --help") if command else told)


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
    words = in_our_words(first, " ".join(first[: first.index("")] if "" in first else first).rstrip("."))
    for section in sections[1:]:
        if section and section[0].startswith("Perhaps you meant") and len(section) > 1:
            words += f"; did you mean {section[1].split()[0]}?"
    help_at = re.search(r"muster[ a-z-]* --help", " ".join(sections[-1]))
    return f"{words} ({help_at[0]} says more)" if help_at and len(sections) > 1 else words


def in_our_words(lines: Sequence[str], words: str) -> str:
    """What a box says, `lines` of it as they stand there, without the parser's own terms."""
    if choice := _CHOICE.search(words + "."):
        options = [option for option in map(str, ast.literal_eval(choice[3])) if option != "None"]
        # A word without a flag has a name that only the source knows.
        called = f"no {choice[2]} " if choice[2].startswith("--") else "unknown "
        return f"{called}{choice[1]!r}{suggestion(choice[1], options)}"
    if lacking := _LACKING.match(words):
        # Each is a line with what it is called, and what it is, which ends with "(required)".
        wanted, begins = [], True
        for line in lines[1:]:
            wanted += [line] if begins else []
            begins = line.endswith("(required)")
        return f"{lacking[1]} needs {' and '.join(wanted)}"
    if lacking := _NO_VALUE.match(words):
        return f"{lacking[1]} needs a value"
    if wrong := _NO_TYPE.match(words):
        kinds = [kind for kind in wrong[2].split("|") if kind != "{None}"]
        told = " or ".join(KINDS.get(kind, kind.strip("{}").replace(",", ", ")) for kind in kinds)
        return f"{wrong[1]} must be {told}, got {wrong[3]!r}"
    if wrong := _NO_NUMBER.match(words):
        return f"{wrong[1]} must be {KINDS['INT' if wrong[2] else 'FLOAT']}, got {wrong[3]}"
    if wrong := _SETTING.match(words):
        return f"--{wrong[1]}.{wrong[2].replace('_', '-')} {wrong[3]}"
    return words
