"""The workers of a run: each plays a share of every update, and one that dies or hangs is replaced.

A learner that spreads its work gives every seat of the crew a `Job`, and then calls the crew with messages for each
seat. Whenever a seat has a new worker, at the start or in place of one that was lost, it gets the job, what `recover`
says it must be told to stand where the others do, and then the messages. As a player's answers depend on nothing else,
a loss changes nothing but the time that an update takes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

from muster.learning.player import Failure, Job, Reply, packed, unpacked
from muster.learning.rollouts import TrainingError
from muster.learning.tally import Figures

PATIENCE = 60.0
"""Seconds after which a worker that does not answer is taken to hang, unless answers have been known to take long."""
LONGER = 20.0
"""How many times longer than the longest answer so far one may take."""
BEGINNING = 60.0
"""Seconds more for a worker that has just begun."""
COMPILING = 1800.0
"""Seconds for the first answers of all, before which kernels may have to be compiled."""
ATTEMPTS = 3
"""Workers that a share may cost before the run gives up."""


class Lost(Exception):  # noqa: N818
    """A worker is gone; says how."""


class Hand(Protocol):
    """One worker, seen from the run."""

    def send(self, data: bytes) -> None:
        """Send bytes; Lost where it is gone."""

    def receive(self) -> bytes | bytearray:
        """The answer; Lost where it is gone. Only after `Place.wait` named it."""

    def end(self) -> None:
        """End it at once."""


class Place(Protocol):
    """Where workers are."""

    def capacity(self) -> int:
        """How many have a core each."""

    def start(self, seat: int) -> Hand:
        """A new worker."""

    def wait(self, hands: Sequence[Hand], seconds: float) -> list[Hand]:
        """Those that have something to say, or have ended, within so many seconds; none if none has."""

    def close(self) -> None:
        """Let go of the place."""


class Due(NamedTuple):
    """By when an answer is awaited."""

    moment: float
    patience: float
    new: bool
    """Whether the worker has just begun."""


class Crew:
    """As many workers as there are seats."""

    def __init__(self, place: Place, size: int) -> None:
        self.place, self.size = place, size
        self.jobs: Sequence[Job] = ()
        self.hands: dict[int, Hand] = {}
        self._told: set[int] = set()
        """Seats whose worker knows its job."""
        self.patience, self.beginning = PATIENCE, BEGINNING
        self.cpu_seconds = 0.0
        """CPU time of all workers so far."""
        self.replaced = 0
        """Workers that died or hung."""
        self._answered = False
        self._longest = 0.0
        self._messages, self._bytes, self._busy, self._since = 0, 0, 0.0, time.perf_counter()

    def enlist(self, jobs: Sequence[Job]) -> None:
        """One job for each seat; workers that had another forget it."""
        assert len(jobs) == self.size
        self.jobs = jobs
        self._told.clear()

    def call(self, requests: Mapping[int, Sequence[Any]], recover: Callable[[int], Sequence[Any]]) -> dict[int, Any]:
        """The answer to the last message of each seat; raises what a player raised."""
        losses = dict.fromkeys(requests, 0)
        awaited = {seat: self._send(seat, requests[seat], recover) for seat in requests}
        answers: dict[int, Any] = {}
        while awaited:
            for seat, why in self._hear(awaited, answers).items():
                losses[seat] += 1
                self.replaced += 1
                self._dismiss(seat)
                if losses[seat] == ATTEMPTS:
                    raise TrainingError(
                        f"a worker was lost {ATTEMPTS} times over the same share of an update ({why}); is there memory "
                        "for all of them, and does every step of the environment come to an end? Try fewer --workers"
                    )
                awaited[seat] = self._send(seat, requests[seat], recover)
        for seat in sorted(answers):
            if isinstance(answers[seat], Failure):
                raise answers[seat].error()
        return answers

    def metrics(self) -> Figures:
        """Since it was last asked: seconds, share of the workers' that was idle, messages and bytes either way."""
        now = time.perf_counter()
        seconds = now - self._since
        idle = 1.0 - self._busy / max(seconds * self.size, 1e-9)
        found = {"update_seconds": seconds, "idle": min(max(idle, 0.0), 1.0), "messages": float(self._messages)}
        found["message_bytes"] = float(self._bytes)
        self._messages, self._bytes, self._busy, self._since = 0, 0, 0.0, now
        return found

    def close(self) -> None:
        """End all workers."""
        for seat in list(self.hands):
            self._dismiss(seat)
        self.place.close()

    def _send(self, seat: int, request: Sequence[Any], recover: Callable[[int], Sequence[Any]]) -> Due:
        """Send the messages, to a new worker with all that goes before."""
        patience = max(self.patience, LONGER * self._longest)
        new = seat not in self._told
        if new:
            if seat not in self.hands:
                self.hands[seat] = self.place.start(seat)
            self._told.add(seat)
            request = [self.jobs[seat], *recover(seat), *request]
            patience += self.beginning if self._answered else COMPILING
        data = packed(list(request))
        self._messages += 1
        self._bytes += len(data)
        # A worker that is gone already is found out when its answer is waited for.
        with suppress(Lost):
            self.hands[seat].send(data)
        return Due(time.monotonic() + patience, patience, new)

    def _hear(self, awaited: dict[int, Due], answers: dict[int, Any]) -> dict[int, str]:
        """Wait for the next answers, which are moved from `awaited` to `answers`; who was lost meanwhile, and how."""
        lost: dict[int, str] = {}
        seats = {id(self.hands[seat]): seat for seat in awaited}
        left = min(due.moment for due in awaited.values()) - time.monotonic()
        for hand in self.place.wait([self.hands[seat] for seat in awaited], left):
            seat = seats[id(hand)]
            try:
                answers[seat] = self._receive(hand, awaited[seat].new)
            except Lost as loss:
                lost[seat] = str(loss)
            else:
                del awaited[seat]
        now = time.monotonic()
        for seat, due in awaited.items():
            # The run itself may have stood still: an answer that has come meanwhile counts.
            if seat not in lost and due.moment < now and not self.place.wait([self.hands[seat]], 0.0):
                lost[seat] = f"no answer within {due.patience:.0f} s"
        return lost

    def _receive(self, hand: Hand, new: bool) -> Any:
        data = hand.receive()
        reply: Reply = unpacked(data)
        self._answered = True
        self._messages += 1
        self._bytes += len(data)
        self._busy += reply.seconds
        self.cpu_seconds += reply.cpu_seconds
        if not new:
            self._longest = max(self._longest, reply.seconds)
        return reply.answer

    def _dismiss(self, seat: int) -> None:
        self._told.discard(seat)
        hand = self.hands.pop(seat, None)
        if hand is not None:
            hand.end()


def shares(size: int, parts: int) -> list[tuple[int, int]]:
    """Neighbouring ranges (begin, end) of range(size), as equal as can be."""
    bounds = [k * size // parts for k in range(parts + 1)]
    return list(pairwise(bounds))


@contextmanager
def closing(crew: Crew | None) -> Iterator[Crew | None]:
    """The crew, whose workers end with the block."""
    try:
        yield crew
    finally:
        if crew is not None:
            crew.close()
