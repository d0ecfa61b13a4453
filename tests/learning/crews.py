"""Crews for tests whose processes are used again, since one takes seconds to begin."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from muster.learning.crew import Crew, Hand, closing
from muster.learning.processes import Process, Processes
from muster.learning.run import Run
from muster.learning.settings import TrainSettings
from muster.learning.train import Loop, Outcome


class Kept(Process):
    """A process that goes back to where it came from, unless it has ended."""

    def __init__(self, idle: list[Kept]) -> None:
        super().__init__(quiet=True)
        self.idle, self.awaited = idle, False

    def send(self, data: bytes) -> None:
        self.awaited = True
        super().send(data)

    def receive(self) -> bytearray:
        data = super().receive()
        self.awaited = False
        return data

    def end(self) -> None:
        if self.awaited or self.child.poll() is not None:
            super().end()
        else:
            self.idle.append(self)


class Reused(Processes):
    """Where such processes are."""

    def __init__(self) -> None:
        super().__init__()
        self.idle: list[Kept] = []

    def start(self, seat: int) -> Hand:
        return self.idle.pop() if self.idle else Kept(self.idle)

    def wait(self, hands: Sequence[Hand], seconds: float) -> list[Hand]:
        return super().wait(hands, seconds)

    def end(self) -> None:
        for process in self.idle:
            process.awaited = True
            process.end()


def run_with(place: Reused, settings: TrainSettings, workers: int, out: Path | None = None) -> Outcome:
    """A run as `run_training` makes it, with workers of this place; 0 for none."""
    run = None
    if out is not None:
        run = Run(out) if (out / "config.toml").exists() else Run.create(out, settings)
    with closing(Crew(place, workers) if workers else None) as crew:
        return Loop(settings, run, crew).go(None)
