"""What a worker does for a run, wherever it is: it is given a job, and then answers messages, a list at a time."""

from __future__ import annotations

import pickle
import time
import traceback
from abc import ABC, abstractmethod
from typing import Any, NamedTuple, Protocol

from muster.errors import EnvError, InputError, MusterError, in_words
from muster.learning.rollouts import TrainingError

KINDS: dict[str, type[MusterError]] = {kind.__name__: kind for kind in (InputError, EnvError, TrainingError)}
"""Errors that stay what they are on their way to the run; all others of muster become a MusterError."""


class Player(Protocol):
    """Plays a share of every update. What it answers depends on its job and on the messages so far, on nothing else."""

    def handle(self, message: Any) -> Any:
        """The answer to one message."""


class Job(ABC):
    """The first message to a worker: all that it takes to make its player there."""

    @abstractmethod
    def make(self) -> Player:
        """The player, with environments of its own."""


class Failure(NamedTuple):
    """An error in place of an answer."""

    kind: str
    text: str
    trace: str

    @classmethod
    def of(cls, error: Exception) -> Failure:
        """What to tell the run of an error."""
        kind = next((name for name, known in KINDS.items() if isinstance(error, known)), "")
        told = str(error) if isinstance(error, MusterError) else f"a worker failed: {in_words(error)}"
        return cls(kind, told, "" if isinstance(error, MusterError) else traceback.format_exc())

    def error(self) -> MusterError:
        """The error, as the run raises it."""
        found = KINDS.get(self.kind, MusterError)(self.text)
        if self.trace:
            found.__cause__ = RuntimeError(f"in a worker:\n{self.trace}")
        return found


class Reply(NamedTuple):
    """What comes back for a list of messages."""

    answer: Any
    """To the last of them, or a Failure."""
    seconds: float
    """That it took."""
    cpu_seconds: float


class Host:
    """The worker's side: bytes in, bytes out."""

    def __init__(self) -> None:
        self.player: Player | None = None

    def answer(self, data: bytes | bytearray) -> bytes:
        """Do what the messages say."""
        began, cpu = time.perf_counter(), time.process_time()
        answer: Any = None
        try:
            for message in pickle.loads(data):
                if isinstance(message, Job):
                    self.player = message.make()
                else:
                    assert self.player is not None
                    answer = self.player.handle(message)
        except Exception as error:
            answer = Failure.of(error)
        return packed(Reply(answer, time.perf_counter() - began, time.process_time() - cpu))


def packed(message: Any) -> bytes:
    """A message as it travels."""
    return pickle.dumps(message, pickle.HIGHEST_PROTOCOL)


def unpacked(data: bytes | bytearray) -> Any:
    """What was packed; only ever by this run's own processes."""
    return pickle.loads(data)
