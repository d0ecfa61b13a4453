"""The text that names an environment: its size first, then the settings that differ from their defaults."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

from muster.errors import InputError
from muster.settings import read_options, to_text

_SIZE = re.compile(r"(\d+)x(\d+)")


def env_name(head: str, settings: Any, size: tuple[str, ...]) -> str:
    """`head`, which tells the settings called `size`, and every other that differs from its default."""
    changed = [
        f"{field.name}={to_text(getattr(settings, field.name))}"
        for field in dataclasses.fields(settings)
        if field.name not in size and getattr(settings, field.name) != field.default
    ]
    return ",".join([head, *changed])


def read_sized(kind: type[Any], text: str, family: str, expected: str) -> dict[str, Any]:
    """The fields that "2x4" or "20x40,grid=32" gives: agents x tasks, then any settings."""
    size, *options = [part.strip() for part in text.split(",")]
    found = _SIZE.fullmatch(size)
    if not found:
        raise InputError(f"{family} takes {expected}; got {text!r}")
    values = read_options(kind, options, f"{family} setting", skip=("agents", "tasks"))
    return {"agents": int(found[1]), "tasks": int(found[2]), **values}
