"""Strict JSON: what is not exactly what it should be is refused with the name of the entry.

Lists of numbers are checked and turned into arrays as a whole; only when something is wrong are they looked through one
by one, for the first entry to name. Lists that `muster.service.scanning` has read are arrays already.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain
from typing import Any

import jiter
import numpy as np

from muster.data import Bools, Floats, Ints
from muster.service.refusals import Refusal

LARGEST = 1e100
"""Numbers beyond this size are refused, as the solver does."""
_NUMBERS = {float, int}
_NULL = type(None)
SHOWN = 80
"""Letters of what was sent that a message repeats at most."""


def parse(body: bytes) -> dict[str, Any]:
    """The object that a body holds: JSON in UTF-8, no key twice, not nested deeply.

    NaN, Infinity and 1e400 are read, to be refused where their entry has a name.
    """
    try:
        data = jiter.from_json(body, catch_duplicate_keys=True)
    except ValueError as error:
        raise Refusal("input", f"the body is not JSON as it should be: {str(error)[:200]}") from None
    if not isinstance(data, dict):
        raise Refusal("input", f"the body must be a JSON object, got {kind_of(data)}")
    return data


def kind_of(value: Any) -> str:
    """What a value is, in words."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if value != value else "a number beyond all bounds"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f"the text {clipped(value)!r}"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, int):
        return str(value) if abs(value) < 10**30 else "a very long number"
    return "null" if value is None else "a list" if is_list(value) else "an object"


def clipped(text: str) -> str:
    """No more of a text than a message should repeat."""
    return text if len(text) <= SHOWN else text[:SHOWN] + "…"


def matrix(
    value: Any,
    name: str,
    shape: tuple[int | None, int | None] = (None, None),
    null: float | None = None,
    largest: float = LARGEST,
) -> Floats:
    """Rows of numbers as an array [N, M]; `null` is what null stands for, where it may stand."""
    if isinstance(value, np.ndarray) and value.ndim == 2 and shape in ((None, None), value.shape):
        return np.asarray(value, np.float64)
    rows = checked_list(value, name, shape[0])
    if set(map(type, rows)) > {list} or (rows and type(rows[0]) is not list):
        i = next(i for i, row in enumerate(rows) if type(row) is not list)
        raise Refusal("input", f"{name}[{i}] must be a list, got {kind_of(rows[i])}", f"{name}[{i}]")
    width = shape[1] if shape[1] is not None else len(rows[0]) if rows else 0
    lengths = set(map(len, rows))
    if lengths - {width}:
        i = next(i for i, row in enumerate(rows) if len(row) != width)
        raise Refusal("input", f"{name}[{i}] must have {width} entries, got {len(rows[i])}", f"{name}[{i}]")
    found = numbers(list(chain.from_iterable(rows)), null, largest)
    if found is None:
        for i, row in enumerate(rows):
            vector(row, f"{name}[{i}]", width, null, largest)
        raise AssertionError("a matrix was refused for no entry")
    return found.reshape(len(rows), width)


def vector(
    value: Any, name: str, length: int | None = None, null: float | None = None, largest: float = LARGEST
) -> Floats:
    """Numbers as an array [N]."""
    if isinstance(value, np.ndarray) and value.ndim == 1 and length in (None, len(value)):
        return np.asarray(value, np.float64)
    row = checked_list(value, name, length)
    found = numbers(row, null, largest)
    if found is None:
        for k, entry in enumerate(row):
            if entry is None and null is not None:
                continue
            number(entry, f"{name}[{k}]", largest)
        raise AssertionError("numbers were refused for no entry")
    return found


def number(entry: Any, name: str, largest: float = LARGEST) -> float:
    """A finite number."""
    if type(entry) not in _NUMBERS or entry != entry:
        raise Refusal("input", f"{name} must be a number, got {kind_of(entry)}", name)
    if not abs(entry) <= largest:
        raise Refusal("input", f"{name} must be within ±{largest:g}, got {kind_of(entry)}", name)
    return float(entry)


def numbers(row: list[Any], null: float | None, largest: float) -> Floats | None:
    """The numbers as an array, or None if there is something else among them."""
    kinds = set(map(type, row))
    gaps = null is not None and _NULL in kinds
    if gaps:
        kinds.discard(_NULL)
    if not kinds <= _NUMBERS:
        return None
    try:
        found = np.array([0.0 if entry is None else entry for entry in row] if gaps else row, np.float64)
    except OverflowError:
        return None
    if found.size and not np.abs(found).max() <= largest:
        return None
    if gaps:
        found[[entry is None for entry in row]] = null
    return found


def flattened(parts: list[Any], shape: Sequence[int]) -> list[Any] | None:
    """What is in lists of that shape, one after the other; None if there is anything else among them."""
    for length in shape:
        if not (set(map(type, parts)) <= {list} and set(map(len, parts)) <= {length}):
            return None
        parts = list(chain.from_iterable(parts))
    return parts


def mask(value: Any, name: str, shape: Sequence[int]) -> Bools:
    """Rows of true and false as an array of that shape."""
    rows = checked_list(value, name, shape[0])
    if len(shape) > 1:
        found = [mask(row, f"{name}[{i}]", shape[1:]) for i, row in enumerate(rows)]
        return np.array(found, np.bool_).reshape(tuple(shape))
    if not set(map(type, rows)) <= {bool}:
        k = next(k for k, entry in enumerate(rows) if type(entry) is not bool)
        raise Refusal("input", f"{name}[{k}] must be true or false, got {kind_of(rows[k])}", f"{name}[{k}]")
    return np.array(rows, np.bool_)


def is_list(value: Any, of_lists: bool = False) -> bool:
    """Whether it is a list, or one that begins with a list."""
    if isinstance(value, np.ndarray):
        return not of_lists or value.ndim == 2
    return isinstance(value, list) and (not of_lists or (bool(value) and isinstance(value[0], list)))


def checked_list(value: Any, name: str, length: int | None = None) -> list[Any]:
    """The value, if it is a list of that length."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, list):
        raise Refusal("input", f"{name} must be a list, got {kind_of(value)}", name)
    if length is not None and len(value) != length:
        raise Refusal("input", f"{name} must have {length} entries, got {len(value)}", name)
    return value


def tasks(value: Any, name: str, length: int | None, n_tasks: int, null: bool = True) -> Ints:
    """Indices of tasks as an array [N]; null, where it may stand, is -1."""
    row = checked_list(value, name, length)
    for k, entry in enumerate(row):
        if (entry is None and null) or (type(entry) is int and 0 <= entry < n_tasks):
            continue
        tail = " or null" if null else ""
        error = f"{name}[{k}] must be a task from 0 to {n_tasks - 1}{tail}, got {kind_of(entry)}"
        raise Refusal("input", error, f"{name}[{k}]")
    return np.array([-1 if entry is None else entry for entry in row], np.int64)
