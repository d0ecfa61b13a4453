"""Plain JSON read by a kernel, without the interpreter's lock or an object a number: lists of numbers are arrays.

Plain is what most bodies are: objects, texts of simple letters, numbers within ±1e30, and lists either of numbers, or
of lists of numbers of one length, or of anything but numbers. For all other bodies, good or bad, there is no answer
here; who asks reads them slowly then, and finds the words for what is wrong.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from muster.compile import kernel, leaf, lean_entry
from muster.data import Floats, Ints
from muster.service.decimals import MOST_DIGITS, decimal

MOST_TOKENS = 512
"""More of them, and a reader that makes objects at once is quicker."""
DEEPEST = 8
LARGEST = 1e30
WHOLE_LIMIT = 2.0**53
OBJECT, LIST, END, TEXT, NUMBER, NUMBERS, MATRIX, TRUE, FALSE, NULL = range(10)
"""What a token is: (kind, from, rows, columns, whether all are whole numbers). Texts have begin and end for the middle
two; the name of a member is a TEXT before its value."""
_QUOTE, _COMMA, _MINUS, _DOT, _ZERO, _NINE, _COLON = (ord(letter) for letter in '",-.09:')
_LIST, _LIST_END, _OBJECT, _OBJECT_END, _BACKSLASH = (ord(letter) for letter in "[]{}\\")
_SPACE, _NEWLINE, _RETURN, _TAB = (ord(letter) for letter in " \n\r\t")
_E, _E_LARGE, _PLUS = ord("e"), ord("E"), ord("+")
_TRUE, _FALSE, _NULL = tuple(b"true"), tuple(b"false"), tuple(b"null")
AT, TOP, COUNT, DEPTH = range(4)
"""Marks: where in the body one is, how many tokens and numbers there are, how many lists and objects are open."""


class Tape(NamedTuple):
    """What has been read, and where."""

    values: Floats
    """Every number of the body."""
    tokens: Ints
    """[T, 5]"""
    opened: Ints
    """[DEEPEST + 1] the tokens that began what is open, innermost last."""
    marks: Ints
    """[4]"""


def scanned(body: bytes) -> Any:
    """The value in a body of plain JSON, its lists of numbers as arrays; None if it is not plain."""
    tape = taped(body)
    return None if tape is None else built(tape, body, tape.values)


def taped(body: bytes) -> Tape | None:
    """What a body of plain JSON holds; None if it is not plain."""
    letters = np.frombuffer(b"".join((body, b"\0")), np.uint8)
    tape = Tape(
        np.empty(len(body) // 2 + 1),
        np.empty((MOST_TOKENS, 5), np.int64),
        np.empty(DEEPEST + 1, np.int64),
        np.zeros(4, np.int64),
    )
    return tape if scan(letters, tape) else None


def built(tape: Tape, body: bytes, values: Floats) -> Any:
    """The value that a tape tells of, with these numbers; None if an object has a name twice."""
    try:
        return _built(tape.tokens[: tape.marks[TOP]].tolist(), body, values)
    except KeyError:
        return None


def _built(tokens: list[list[int]], body: bytes, values: Floats) -> Any:
    """The value that the tokens tell of; KeyError for a name that an object has twice."""
    whole_value: list[Any] = []
    inside: Any = whole_value
    outside: list[Any] = []
    name: str | None = None
    for kind, begin, rows, columns, whole in tokens:
        if kind == END:
            inside = outside.pop()
            continue
        if kind in (NUMBERS, MATRIX):
            value: Any = values[begin : begin + rows * columns]
            value = value.astype(np.int64) if whole else value
            value = value.reshape(rows, columns) if kind == MATRIX else value
        elif kind == TEXT:
            value = body[begin:rows].decode("ascii")
            if name is None and type(inside) is dict:
                if value in inside:
                    raise KeyError(value)
                name = value
                continue
        elif kind == NUMBER:
            value = int(values[begin]) if whole else float(values[begin])
        else:
            value = {} if kind == OBJECT else [] if kind == LIST else _CONSTANTS[kind]
        if name is not None:
            inside[name] = value
            name = None
        else:
            inside.append(value)
        if kind in (OBJECT, LIST):
            outside.append(inside)
            inside = value
    return whole_value[0]


_CONSTANTS = {TRUE: True, FALSE: False, NULL: None}


@leaf
def past_space(body: Any, at: int) -> int:
    """Where the next letter is that is no space."""
    while body[at] == _SPACE or body[at] == _NEWLINE or body[at] == _RETURN or body[at] == _TAB:
        at += 1
    return at


@leaf
def is_digit(letter: int) -> bool:
    """Whether it is one of 0 to 9."""
    return _ZERO <= letter <= _NINE


@leaf
def read_digits(body: Any, at: int, m: int) -> tuple[int, int]:
    """Where the digits end that begin here, and the number that they continue: anything if there are too many."""
    while is_digit(body[at]):
        m = 10 * m + int(body[at]) - _ZERO
        at += 1
    return at, m


@leaf
def read_number(body: Any, at: int) -> tuple[float, int, bool]:
    """The number that begins here, where it ends, and whether it is written as a whole one; it ends at -1 if none."""
    negative = body[at] == _MINUS
    first = at + negative
    at, m = read_digits(body, first, 0)
    # Neither without a digit, nor with a 0 before others.
    if at == first or (body[first] == _ZERO and at > first + 1):
        return 0.0, -1, False
    digits, e, whole = at - first, 0, True
    if body[at] == _DOT:
        begin = at + 1
        # Zeros in front are no digits that count.
        significant = begin
        while m == 0 and body[significant] == _ZERO:
            significant += 1
        at, m = read_digits(body, significant, m)
        digits, e, whole = digits + at - significant, begin - at, False
        if e == 0:
            return 0.0, -1, False
    if digits > MOST_DIGITS:
        return 0.0, -1, False
    if body[at] == _E or body[at] == _E_LARGE:
        at, given = read_exponent(body, at + 1)
        if at < 0:
            return 0.0, -1, False
        e, whole = e + given, False
    value = decimal(m, e)
    if not value <= LARGEST or (whole and value > WHOLE_LIMIT):
        return 0.0, -1, False
    return (-value if negative else value), at, whole


@leaf
def read_exponent(body: Any, at: int) -> tuple[int, int]:
    """Where the exponent that begins here ends, -1 if it is none, and what it is."""
    negative = body[at] == _MINUS
    at += negative or body[at] == _PLUS
    first, e = at, 0
    while is_digit(body[at]) and at < first + 4:
        e = 10 * e + int(body[at]) - _ZERO
        at += 1
    if at == first or is_digit(body[at]):
        return -1, 0
    return at, (-e if negative else e)


@kernel
def read_numbers(body: Any, at: int, values: Floats, count: int) -> tuple[int, int, bool]:
    """The list of numbers whose first begins here, written to values[count:].

    Returns where it ends, -1 if it is none; how many there are; whether all are whole.
    """
    filled, all_whole = count, True
    while True:
        value, at, whole = read_number(body, at)
        if at < 0:
            return -1, 0, False
        values[filled] = value
        filled += 1
        all_whole &= whole
        at = past_space(body, at)
        if body[at] == _LIST_END:
            return at + 1, filled - count, all_whole
        if body[at] != _COMMA:
            return -1, 0, False
        at = past_space(body, at + 1)


@leaf
def read_text(body: Any, at: int) -> int:
    """Where the text ends that begins behind this quote; -1 if it has other than simple letters."""
    at += 1
    while body[at] != _QUOTE:
        if body[at] < _SPACE or body[at] > 126 or body[at] == _BACKSLASH:
            return -1
        at += 1
    return at


@leaf
def spells(body: Any, at: int, word: Any) -> bool:
    """Whether the word stands here."""
    same = 0
    while same < len(word) and body[at + same] == word[same]:
        same += 1
    return same == len(word)


@leaf
def put(tape: Tape, kind: int, begin: int, rows: int, columns: int, whole: bool) -> bool:
    """Add a token; False if there are too many."""
    top = tape.marks[TOP]
    if top == MOST_TOKENS:
        return False
    tokens = tape.tokens
    tokens[top, 0], tokens[top, 1], tokens[top, 2], tokens[top, 3], tokens[top, 4] = kind, begin, rows, columns, whole
    tape.marks[TOP] += 1
    return True


@leaf
def innermost(tape: Tape) -> int:
    """The token that began what is open; -1 if nothing is."""
    depth = tape.marks[DEPTH]
    return tape.opened[depth - 1] if depth else -1


@kernel
def put_numbers(tape: Tape, length: int, whole: bool) -> bool:
    """Add a list of numbers: as a row of the MATRIX that the list round it then is, or on its own.

    False if there is something else in that list.
    """
    begin, parent, tokens = tape.marks[COUNT], innermost(tape), tape.tokens
    tape.marks[COUNT] += length
    if parent >= 0 and tokens[parent, 0] == MATRIX:
        tokens[parent, 2] += 1
        tokens[parent, 4] &= whole
        return tokens[parent, 3] == length
    if parent >= 0 and tokens[parent, 0] == LIST:
        first = tape.marks[TOP] == parent + 1
        tape.marks[TOP] = parent
        return put(tape, MATRIX, begin, 1, length, whole) and first
    return put(tape, NUMBERS, begin, 1, length, whole)


@kernel
def read_name(body: Any, tape: Tape) -> bool:
    """The name of a member and its colon; False if there are none."""
    at = past_space(body, tape.marks[AT])
    end = read_text(body, at) if body[at] == _QUOTE else -1
    if end < 0:
        return False
    colon = past_space(body, end + 1)
    tape.marks[AT] = colon + 1
    return body[colon] == _COLON and put(tape, TEXT, at + 1, end, 0, False)


@kernel
def read_simple(body: Any, at: int, tape: Tape) -> bool:
    """A text, a number, true, false or null."""
    if body[at] == _QUOTE:
        end = read_text(body, at)
        tape.marks[AT] = end + 1
        return end >= 0 and put(tape, TEXT, at + 1, end, 0, False)
    if body[at] == _MINUS or is_digit(body[at]):
        value, end, whole = read_number(body, at)
        tape.values[tape.marks[COUNT]] = value
        tape.marks[COUNT] += 1
        tape.marks[AT] = end
        return end >= 0 and put(tape, NUMBER, tape.marks[COUNT] - 1, 0, 0, whole)
    if spells(body, at, _TRUE):
        tape.marks[AT] = at + 4
        return put(tape, TRUE, 0, 0, 0, False)
    if spells(body, at, _FALSE):
        tape.marks[AT] = at + 5
        return put(tape, FALSE, 0, 0, 0, False)
    tape.marks[AT] = at + 4
    return spells(body, at, _NULL) and put(tape, NULL, 0, 0, 0, False)


@kernel
def read_value(body: Any, tape: Tape) -> tuple[bool, bool]:
    """A value, or the beginning of an object or list: whether it is plain, and whether something was opened."""
    at, parent = past_space(body, tape.marks[AT]), innermost(tape)
    inside = tape.tokens[parent, 0] if parent >= 0 else OBJECT
    if body[at] == _LIST:
        first = past_space(body, at + 1)
        if body[first] == _MINUS or is_digit(body[first]):
            end, length, whole = read_numbers(body, first, tape.values, tape.marks[COUNT])
            tape.marks[AT] = end
            return end >= 0 and put_numbers(tape, length, whole), False
    if inside == MATRIX:
        return False, False
    if body[at] != _LIST and body[at] != _OBJECT:
        number = body[at] == _MINUS or is_digit(body[at])
        return not (number and inside == LIST) and read_simple(body, at, tape), False
    if tape.marks[DEPTH] == DEEPEST:
        return False, False
    tape.opened[tape.marks[DEPTH]] = tape.marks[TOP]
    tape.marks[DEPTH] += 1
    tape.marks[AT] = at + 1
    return put(tape, LIST if body[at] == _LIST else OBJECT, 0, 0, 0, False), True


@kernel
def close(body: Any, tape: Tape, opened: bool) -> bool:
    """All that ends here, and the comma before what follows; False if it is neither."""
    while tape.marks[DEPTH]:
        at = past_space(body, tape.marks[AT])
        kind = tape.tokens[innermost(tape), 0]
        if body[at] == (_OBJECT_END if kind == OBJECT else _LIST_END):
            if kind != MATRIX and not put(tape, END, 0, 0, 0, False):
                return False
            tape.marks[DEPTH] -= 1
            tape.marks[AT] = at + 1
            opened = False
        elif opened:
            return True
        else:
            tape.marks[AT] = at + 1
            return body[at] == _COMMA
    return True


@lean_entry
def scan(body: Any, tape: Tape) -> bool:
    """Read a body that ends with a 0; whether it is plain."""
    while True:
        parent = innermost(tape)
        if parent >= 0 and tape.tokens[parent, 0] == OBJECT and not read_name(body, tape):
            return False
        plain, opened = read_value(body, tape)
        if not plain or not close(body, tape, opened):
            return False
        if tape.marks[DEPTH] == 0:
            return past_space(body, tape.marks[AT]) == len(body) - 1
