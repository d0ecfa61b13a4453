"""Strict JSON: what is not exactly what it should be is refused with the name of the entry.

Python's reader calls back for every number, so that long bodies are read in turns with other threads: it never holds
the interpreter's lock for long.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muster.data import Bools, Floats
from muster.service.refusals import Refusal

LARGEST = 1e100
"""Numbers beyond this size are refused, as the solver does."""
_NUMBERS = {float, int}


def parse(body: bytes) -> dict[str, Any]:
    """The object that a body holds."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refusal("input", f"the body is not UTF-8 text (byte {error.start})") from None
    try:
        data = _read(text)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise Refusal("input", f"the body is not JSON: {error.msg}, {where}") from None
    except RecursionError:
        raise Refusal("input", "the body is nested too deeply") from None
    if not isinstance(data, dict):
        raise Refusal("input", f"the body must be a JSON object, got {kind_of(data)}")
    return data


def _real(text: str) -> float:
    # 1e400 becomes infinity here, and is refused where its entry has a name.
    return float(text)


def _whole(text: str) -> int | float:
    # Whole numbers of many digits take Python long to read; no field needs them to the last digit.
    return int(text) if len(text) < 19 else float(text)


def _table(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise Refusal("input", f"the key {name!r:.80} is given twice in one object", name[:80])
            seen.add(name)
    return table


_read = json.JSONDecoder(parse_float=_real, parse_int=_whole, parse_constant=float, object_pairs_hook=_table).decode


def kind_of(value: Any) -> str:
    """What a value is, in words."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if value != value else "a number beyond all bounds"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f"the text {value!r:.40}"
    words = {list: "a list", dict: "an object", type(None): "null"}
    return words.get(type(value), str(value)[:40])


def matrix(
    value: Any, name: str, shape: tuple[int | None, int | None] = (None, None), null: float | None = None
) -> Floats:
    """Rows of numbers as an array [N, M]; `null` is what null stands for, where it may stand."""
    rows = checked_list(value, name, shape[0])
    width = shape[1]
    if width is None:
        width = len(checked_list(rows[0], f"{name}[0]")) if rows else 0
    found = np.empty((len(rows), width))
    for i, row in enumerate(rows):
        found[i] = vector(row, f"{name}[{i}]", width, null)
    return found


def vector(value: Any, name: str, length: int | None = None, null: float | None = None) -> Floats:
    """Numbers as an array [N]."""
    row = checked_list(value, name, length)
    kinds = set(map(type, row))
    if null is not None and type(None) in kinds:
        row = [null if entry is None else entry for entry in row]
        kinds.discard(type(None))
    if not kinds <= _NUMBERS:
        k = next(k for k, entry in enumerate(row) if type(entry) not in _NUMBERS)
        raise Refusal("input", f"{name}[{k}] must be a number, got {kind_of(row[k])}", f"{name}[{k}]")
    found = np.array(row, np.float64)
    fine = np.abs(found) <= LARGEST
    if null is not None and not math.isfinite(null):
        fine |= found == null
        # What is written as infinity is not what null stands for.
        fine &= np.array([entry is None or math.isfinite(entry) for entry in value], np.bool_)
    if not fine.all():
        k = int(np.argmin(fine))
        number = kind_of(value[k]) if not math.isfinite(found[k]) else f"{found[k]:g}"
        raise Refusal("input", f"{name}[{k}] must be within ±{LARGEST:g}, got {number}", f"{name}[{k}]")
    return found


def mask(value: Any, name: str, shape: Sequence[int]) -> Bools:
    """Rows of true and false as an array of that shape."""
    rows = checked_list(value, name, shape[0])
    if len(shape) > 1:
        found = [mask(row, f"{name}[{i}]", shape[1:]) for i, row in enumerate(rows)]
        return np.array(found, np.bool_).reshape(tuple(shape))
    for k, entry in enumerate(rows):
        if entry is not True and entry is not False:
            raise Refusal("input", f"{name}[{k}] must be true or false, got {kind_of(entry)}", f"{name}[{k}]")
    return np.array(rows, np.bool_)


def checked_list(value: Any, name: str, length: int | None = None) -> list[Any]:
    """The value, if it is a list of that length."""
    if not isinstance(value, list):
        raise Refusal("input", f"{name} must be a list, got {kind_of(value)}", name)
    if length is not None and len(value) != length:
        raise Refusal("input", f"{name} must have {length} entries, got {len(value)}", name)
    return value


def whole_numbers(value: Any, name: str, length: int | None = None) -> NDArray[np.int64]:
    """Whole numbers as an array [N]."""
    row = checked_list(value, name, length)
    for k, entry in enumerate(row):
        if type(entry) is not int:
            raise Refusal("input", f"{name}[{k}] must be a whole number, got {kind_of(entry)}", f"{name}[{k}]")
    return np.array(row, np.int64)
