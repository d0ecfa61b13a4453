"""Strict JSON: a value that is not exactly what it should be is refused with the name of the entry.

Lists of numbers that are the value of a key, or rows of one length of them, are arrays by the time they are read here:
a body has thousands of numbers, and an object for each costs more than most decisions.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NoReturn

import jiter
import numpy as np
from starlette.requests import Request

from muster.data import Bools, Floats, Ints
from muster.errors import InputError, UnknownNameError
from muster.kernels import core
from muster.service.refusal import Refusal

MOST_BODIES = 16
"""Bodies of the largest size that may be arriving at once."""
LINGER = 1.0
"""Seconds for which the rest of a body that is too large is taken in, so that its client gets to read why."""
LARGEST = 1e100
"""Numbers beyond this size are refused, as the solver does."""
SHOWN = 80
"""Letters of what was sent that a message repeats at most."""
LONGEST_NAME = 200
Labels = Sequence[Sequence[str] | None]
"""For each axis of an array what its entries are called; None: by number."""


class Bodies:
    """Reads the bodies of requests, within limits of size and of what may be arriving at once; time is the limit of
    their connections.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.arriving = 0
        """Bytes in memory of bodies that are not complete."""

    async def read(self, request: Request) -> bytes:
        """The body of a request."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise Refusal("media_type", f"Content-Type must be application/json, got {kind[:80]!r}", "Content-Type")
        body, more = bytearray(), True
        try:
            while more and len(body) <= self._most:
                message = await request.receive()
                if message["type"] == "http.disconnect":
                    raise Refusal("slow_client", "the client went away before its body had arrived")
                chunk, more = message.get("body", b""), message.get("more_body", False)
                body += chunk
                self.arriving += len(chunk)
                if self.arriving > MOST_BODIES * self._most:
                    raise Refusal("busy", "too many bodies are arriving at once", "", {"Retry-After": "1"})
        finally:
            self.arriving -= len(body)
        if len(body) > self._most:
            with suppress(TimeoutError):
                async with asyncio.timeout(LINGER):
                    while more:
                        more = (await request.receive()).get("more_body", False)
            raise Refusal("too_large", f"the body has more than {self._most:,} bytes")
        return bytes(body)


def parse(body: bytes) -> dict[str, Any]:
    """The object that a body holds: JSON in UTF-8, no key twice, not nested deeply.

    NaN, Infinity and 1e400 are read, to be refused where their entry has a name.
    """
    values = np.empty(len(body) // 2 + 1)
    text, lifted = core.service.lift_numbers(body, values)
    try:
        data = jiter.from_json(text, catch_duplicate_keys=True)
    except ValueError:
        # Once more, for where in the body it is; or because it has a NaN of its own.
        data, lifted = _parse_or_refuse(body), []
    if lifted:
        _put_back(data, iter([_array_of(values, *block) for block in lifted]))
    if not isinstance(data, dict):
        raise Refusal("input", f"the body must be a JSON object, got {describe(data)}")
    return data


def _parse_or_refuse(body: bytes) -> Any:
    try:
        return jiter.from_json(body, catch_duplicate_keys=True)
    except ValueError as error:
        raise Refusal("input", f"the body is not JSON as it should be: {str(error)[:200]}") from None


def _array_of(values: Floats, first: int, rows: int, columns: int, whole: bool) -> Any:
    """[columns], or [rows, columns]; integers where all were written as such."""
    found = values[first : first + abs(rows) * columns]
    found = found.astype(np.int64) if whole else found
    return found if rows < 0 else found.reshape(rows, columns)


def _put_back(data: Any, arrays: Iterator[Any]) -> None:
    """Put arrays where they were lifted from, in their order: each left a NaN."""
    if type(data) is dict:
        for key, value in data.items():
            if type(value) is float and value != value:
                data[key] = next(arrays)
            elif type(value) is dict or type(value) is list:
                _put_back(value, arrays)
    elif type(data) is list:
        for value in data:
            _put_back(value, arrays)


def plain(value: Any) -> Any:
    """A parsed value with lists instead of arrays."""
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    return value.tolist() if isinstance(value, np.ndarray) else value


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
    return "null" if value is None else "an object" if isinstance(value, dict) else "a list"


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
    if isinstance(value, np.ndarray) and fits(value, shape):
        return value.astype(np.float64, copy=False)
    value = read_list(value, where)
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


def fits(array: Any, shape: Sequence[int | None]) -> bool:
    """Whether an array has that shape (None: any length)."""
    return array.ndim == len(shape) and all(length in (None, n) for length, n in zip(shape, array.shape, strict=True))


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
    value = plain(value)
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
