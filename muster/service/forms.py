"""Bodies of one form: those of /act that differ in their numbers alone.

Who asks for decisions all the time sends the same names in the same order, and only numbers change. Where each number
goes is then learned once: the body is read with its numbers replaced by their places in it, and what stands in the
fields of the situation afterwards is where to take them from. Later bodies of that form need one look at their outline,
and several at once are put into arrays together. What comes out is what reading them one by one gives.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muster.compile import leaf, lean_entry
from muster.data import BatchObservation, Floats, Ints
from muster.errors import MusterError
from muster.service import acting
from muster.service.acting import Asked, given_of, observed
from muster.service.scanning import COUNT, MATRIX, NUMBERS, TEXT, TOP, Tape, built, taped

MOST_FORMS = 128
"""Remembered at most; those not used for longest are forgotten."""
# Without numbers from the body.
_FIXED = ("allowed",)
# Which numbers may stand here depends on others: each is looked at.
_CHECKED = ("previous", "switch_cost")


@dataclass(frozen=True, slots=True, eq=False)
class Form:
    """Where the numbers of a situation are in its body."""

    asked: Asked
    """By a body of this form."""
    places: dict[str, Ints]
    """By field, in its shape, the places of its numbers among those of the body."""
    kinds: dict[str, np.dtype[Any]]
    fixed: dict[str, NDArray[Any]]
    """Fields that no number changes."""

    @classmethod
    def of(cls, asked: Asked, by_place: Asked) -> Form:
        """The form of a body, from what is read of it and from what is read if its numbers are their places."""
        found = given_of(by_place.views[0])
        fixed = {name: found.pop(name) for name in _FIXED if name in found}
        places = {name: array.astype(np.int64) for name, array in found.items()}
        return cls(asked, places, {name: array.dtype for name, array in found.items()}, fixed)

    def observation(self, values: Floats) -> BatchObservation:
        """What B bodies of this form show, with these numbers [B, V]."""
        stacked: dict[str, Any] = {
            name: values.take(place, axis=1).astype(self.kinds[name], copy=False) for name, place in self.places.items()
        }
        for name, array in self.fixed.items():
            stacked[name] = np.repeat(array[None], len(values), axis=0)
        return observed(stacked)


@dataclass(frozen=True, slots=True, eq=False)
class Filled:
    """A body of a form that is known."""

    form: Form
    values: Floats
    """Its numbers."""
    started: float

    def answer(self) -> dict[str, Any]:
        """What the policy decides."""
        return decided([self])[0]


class Forms:
    """The forms that are known."""

    def __init__(self, read: Callable[[Any], Asked | None]) -> None:
        self._read = read
        """From the value in a body to what it asks for, or None."""
        self._known: OrderedDict[bytes, Form | None] = OrderedDict()
        """By outline; None for those seen once, which may not come again."""

    def read(self, body: bytes) -> Asked | Filled | None:
        """What a body asks for; None if it is not plain, or not to be answered at once."""
        started = time.perf_counter()
        tape = taped(body)
        if tape is None:
            return None
        outline = outline_of(tape, body)
        form = self._known.get(outline)
        if form is not None:
            self._known.move_to_end(outline)
            return Filled(form, tape.values[: tape.marks[COUNT]], started)
        asked = self._read(built(tape, body, tape.values))
        if asked is not None:
            self._learn(outline, asked, tape, body)
        return asked

    def _learn(self, outline: bytes, asked: Asked, tape: Tape, body: bytes) -> None:
        """Note a form; from the second time on, with where its numbers are."""
        form = None
        if outline in self._known and has_form(asked):
            by_place = self._read(built(tape, body, np.arange(len(tape.values), dtype=np.float64)))
            assert by_place is not None, "a body was refused for its numbers"
            form = Form.of(asked, by_place)
        self._known[outline] = form
        self._known.move_to_end(outline)
        if len(self._known) > MOST_FORMS:
            self._known.popitem(last=False)


def has_form(asked: Asked) -> bool:
    """Whether bodies of this form need not be looked at one by one: a situation of numbers of any size."""
    return asked.one and not any(name in _CHECKED for name in given_of(asked.views[0]))


def answer_together(asked: Sequence[Asked | Filled]) -> list[dict[str, Any] | None]:
    """The answers to several bodies, of which those alike are decided on at once; None where that fails."""
    answers: list[dict[str, Any] | None] = [None] * len(asked)
    by_form: dict[Form, list[int]] = {}
    others: list[int] = []
    for k, one in enumerate(asked):
        if isinstance(one, Filled):
            by_form.setdefault(one.form, []).append(k)
        else:
            others.append(k)
    for members in by_form.values():
        with suppress(MusterError):
            for k, answer in zip(members, decided([asked[k] for k in members]), strict=True):  # type: ignore[misc]
                answers[k] = answer
    if others:
        for k, found in zip(others, acting.answer_together([asked[k] for k in others]), strict=True):  # type: ignore[misc]
            answers[k] = found
    return answers


def decided(filled: list[Filled]) -> list[dict[str, Any]]:
    """The answers to bodies of one form."""
    form = filled[0].form
    asked = form.asked
    seen = form.observation(np.stack([one.values for one in filled]))
    answers = acting.decide(asked.policy, asked.solver, seen, asked.scores)
    return [asked.answer_of([answer], one.started) for answer, one in zip(answers, filled, strict=True)]


def outline_of(tape: Tape, body: bytes) -> bytes:
    """What a body has beside its numbers, and spaces: two bodies with the same outline differ in those alone."""
    outline = np.empty(16 * tape.marks[TOP] + len(body), np.uint8)
    length = write_outline(tape, np.frombuffer(body, np.uint8), outline)
    return outline[:length].tobytes()


@lean_entry
def write_outline(tape: Tape, body: Any, outline: Any) -> int:
    """Write each token's kind and size, and the letters of texts; returns how many bytes that takes."""
    at = 0
    for t in range(tape.marks[TOP]):
        kind, first, second, third = tape.tokens[t, 0], tape.tokens[t, 1], tape.tokens[t, 2], tape.tokens[t, 3]
        outline[at] = kind
        at += 1
        if kind in (NUMBERS, MATRIX):
            at = write_number(second, outline, at)
            at = write_number(third, outline, at)
        elif kind == TEXT:
            at = write_number(second - first, outline, at)
            for k in range(first, second):
                outline[at] = body[k]
                at += 1
    return at


@leaf
def write_number(number: int, outline: Any, at: int) -> int:
    """Write a number below 2^32; returns where it ends."""
    for k in range(4):
        outline[at + k] = (number >> (8 * k)) & 255
    return at + 4
