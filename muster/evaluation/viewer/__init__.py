"""The viewer: JavaScript modules and a style sheet, which the service serves and every replay page contains."""

from __future__ import annotations

import json
import re
from html import escape
from importlib.resources import files
from typing import Any

MODULES = ("dom", "unpack", "colours", "shapes", "canvas", "camera", "zoom", "screen", "race", "player", "replay")
"""Modules of a replay page, in order of their imports."""
_IMPORT = re.compile(r"^import .*$\n?", re.MULTILINE)
_EXPORT = re.compile(r"^export ", re.MULTILINE)


def read(name: str) -> str:
    """The text of a file of the viewer."""
    return files(__name__).joinpath(name).read_text(encoding="utf-8")


def page(film: dict[str, Any]) -> str:
    """A self-contained page that shows packed films (`muster.evaluation.packing`)."""
    # "</script" and "<!--" would change where the script element ends; a film's names come from users.
    data = json.dumps(film, allow_nan=False).replace("<", "\\u003c")
    title = escape(f"{film['verdict']['title']} ({film['env']})")
    parts = {"/*TITLE*/": title, "/*STYLE*/": read("viewer.css"), "/*SCRIPT*/": script(), "/*FILM*/": data}
    # In one pass, so that inserted text is not searched for placeholders.
    return re.sub("|".join(map(re.escape, parts)), lambda match: parts[match[0]], read("replay.html"))


def script() -> str:
    """The modules as one script, without their imports and exports."""
    return "\n".join(_EXPORT.sub("", _IMPORT.sub("", read(f"{name}.js"))) for name in MODULES)
