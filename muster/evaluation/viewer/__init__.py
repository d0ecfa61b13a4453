"""The viewer: modules of JavaScript and a style sheet, which the service serves and a replay carries inside it."""

from __future__ import annotations

import json
import re
from html import escape
from importlib.resources import files
from typing import Any

MODULES = ("dom", "unpack", "colours", "shapes", "canvas", "camera", "zoom", "screen", "race", "player", "replay")
"""What the page of a replay runs, each after what it imports."""
_IMPORT = re.compile(r"^import .*$\n?", re.MULTILINE)
_EXPORT = re.compile(r"^export ", re.MULTILINE)


def read(name: str) -> str:
    """One of the viewer's files."""
    return files(__name__).joinpath(name).read_text(encoding="utf-8")


def page(film: dict[str, Any]) -> str:
    """One page that shows packed films (`muster.evaluation.packing`) and needs nothing else."""
    # "</script" and "<!--" would change where the script element ends; a film's names come from users.
    data = json.dumps(film, allow_nan=False).replace("<", "\\u003c")
    title = escape(f"{film['verdict']['title']} ({film['env']})")
    parts = {"/*TITLE*/": title, "/*STYLE*/": read("viewer.css"), "/*SCRIPT*/": script(), "/*FILM*/": data}
    # In one pass, so that nothing that is put in is looked at again.
    return re.sub("|".join(map(re.escape, parts)), lambda found: parts[found[0]], read("replay.html"))


def script() -> str:
    """The modules as one: what they import from each other is there already."""
    return "\n".join(_EXPORT.sub("", _IMPORT.sub("", read(f"{name}.js"))) for name in MODULES)
