"""Strict JSON: a value that is not exactly what it should be is refused with the name of the entry."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import jiter
import numpy as np

from muster.data import Bools, Floats, Ints
from muster.errors import InputError, UnknownNameError
from muster.kernels import core
from muster.service.refusal import Refusal

LARGEST = 1e100
"""Numbers beyond this size are refused, as the solver does."""
SHOWN = 80
"""Letters of what was sent that a message repeats at most."""
LONGEST_NAME = 200
Labels = Sequence[Sequence[str] | None]
"""For each axis of an array what its entries are called; None: by number."""


def parse(body: bytes) -> dict[str, Any]:
    """The object that a body holds: JSON in UTF-8, no key twice, not nested deeply.

    NaN, Infinity and 1e400 are read, to be refused where their entry has a name.
    """
    try:
        data = jiter.from_json(body, catch_duplicate_keys=True)
    except ValueError as error:
        raise Refusal("input", f"the body is not JSON as it should be: {str(error)[:200]}") from None
    if not isinstance(data, dict):
        raise Refusal("input", f"the body must be a JSON object, got {describe(data)}")
    return data


def refuse(error: str, where: str) -> NoReturn:
    """Refuse an entry."""
    raise Refusal("input", error, where)


def describe(value: Any) -> str:
    """What a value is, in words."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if value != value else "a number beyond all bounds"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f"the text {clip(value)!r}"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, int):
        return str(value) if abs(value) < 10**30 else "a very long number"
    return "null" if value is None else "a list" if isinstance(value, list) else "an object"


def clip(text: str) -> str:
    """No more of a text than a message should repeat."""
    return text if len(text) <= SHOWN else text[:SHOWN] + "…"


def read_array(
    value: Any,
    where: str,
    shape: Sequence[int | None],
    *,
    null: float | None = None,
    largest: float = LARGEST,
    labels: Labels = (),
) -> Floats:
    """Numbers in lists of that shape (None: any length) as an array; `null` is what null stands for, if it may stand.

    All entries are checked at once; only if something is wrong are they looked at one by one, for the first to name.
    """
    found_shape, inner = [], value
    for length in shape:
        if length is None:
            length = len(inner) if isinstance(inner, list) else 0
        found_shape.append(length)
        inner = inner[0] if isinstance(inner, list) and inner else None
    found: Floats = np.empty(math.prod(found_shape))
    if not core.service.read_numbers(value, found_shape, largest, null is not None, null or 0.0, found):
        _refuse_entry(value, where, found_shape, null, largest, labels)
        raise AssertionError("numbers were refused for no entry")
    return found.reshape(found_shape)


def _refuse_entry(
    value: Any, where: str, shape: Sequence[int], null: float | None, largest: float, labels: Labels
) -> None:
    """Refuse the first entry of lists of that shape that is not a list of its length or a number."""
    if not shape:
        if value is not None or null is None:
            read_number(value, where, largest)
        return
    names = labels[0] if labels else None
    for k, part in enumerate(read_list(value, where, shape[0])):
        name = f"{where}.{names[k]}" if names else f"{where}[{k}]"
        _refuse_entry(part, name, shape[1:], null, largest, labels[1:])


def read_mask(value: Any, where: str, shape: Sequence[int]) -> Bools:
    """Lists of true and false as an array of that shape."""
    rows = read_list(value, where, shape[0])
    if len(shape) > 1:
        found = [read_mask(row, f"{where}[{i}]", shape[1:]) for i, row in enumerate(rows)]
        return np.array(found, np.bool_).reshape(tuple(shape))
    for k, entry in enumerate(rows):
        if type(entry) is not bool:
            refuse(f"{where}[{k}] must be true or false, got {describe(entry)}", f"{where}[{k}]")
    return np.array(rows, np.bool_)


def read_number(entry: Any, name: str, largest: float = LARGEST) -> float:
    """A finite number."""
    if type(entry) not in (float, int) or entry != entry:
        refuse(f"{name} must be a number, got {describe(entry)}", name)
    if not abs(entry) <= largest:
        refuse(f"{name} must be within ±{largest:g}, got {describe(entry)}", name)
    return float(entry)


def read_list(value: Any, name: str, length: int | None = None) -> list[Any]:
    """The value, if it is a list of that length."""
    if not isinstance(value, list):
        refuse(f"{name} must be a list, got {describe(value)}", name)
    if length is not None and len(value) != length:
        refuse(f"{name} must have {length} entries, got {len(value)}", name)
    return value


def read_names(value: Any, name: str, length: int) -> list[str]:
    """Names, all different."""
    row = read_list(value, name, length)
    seen: set[str] = set()
    for k, entry in enumerate(row):
        where = f"{name}[{k}]"
        if not isinstance(entry, str) or not 0 < len(entry) <= LONGEST_NAME:
            refuse(f"{where} must be a name of 1 to {LONGEST_NAME} letters, got {describe(entry)}", where)
        if entry in seen:
            refuse(f"{where} is the name {clip(entry)!r} again", where)
        seen.add(entry)
    return row


def read_tasks(value: Any, name: str, length: int | None, n_tasks: int, null: bool = True) -> Ints:
    """Indices of tasks as an array [N]; null, where it may stand, is -1."""
    row = read_list(value, name, length)
    for k, entry in enumerate(row):
        if not ((entry is None and null) or (type(entry) is int and 0 <= entry < n_tasks)):
            tail = " or null" if null else ""
            where = f"{name}[{k}]"
            refuse(f"{where} must be a task from 0 to {n_tasks - 1}{tail}, got {describe(entry)}", where)
    return np.array([-1 if entry is None else entry for entry in row], np.int64)


def read_integer(value: Any, name: str, low: int, high: int) -> int:
    """A whole number within bounds."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise InputError(f"{name} must be a whole number from {low} to {high}, got {value!r:.40}")
    return value


def check_keys(data: Mapping[str, Any], known: Sequence[str]) -> None:
    """Refuse a field that is not known."""
    for key in data:
        if key not in known:
            raise UnknownNameError("field", key[:SHOWN], known)
