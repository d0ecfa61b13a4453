"""Answers as JSON: numbers are finite or null, and long ones are written row by row."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

_encode = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode


def reply(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """The content as a JSON answer."""
    return Response(encoded(content), status, headers, "application/json")


def encoded(content: Any) -> bytes:
    """The content as JSON."""
    return _encode(content).encode()


def number(value: float) -> float | None:
    """A number, or null for one that JSON does not have."""
    value = float(value)
    return value if value - value == 0.0 else None
