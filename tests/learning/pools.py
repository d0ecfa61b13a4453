"""Worker pools for tests whose processes are used again, since one takes a second to start."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from muster.learning.run import Run
from muster.learning.settings import TrainSettings
from muster.learning.train import Loop, Outcome
from muster.learning.workers import Process, Processes, Worker, WorkerPool, closing


class Kept(Process):
    """A process that goes back to where it came from, unless it has ended."""

    def __init__(self, idle: list[Kept]) -> None:
        super().__init__()
        self.idle, self.awaited = idle, False

    def send(self, data: bytes) -> None:
        self.awaited = True
        super().send(data)

    def receive(self) -> bytes:
        data = super().receive()
        self.awaited = False
        return data

    def end(self) -> None:
        if self.awaited or self.child.poll() is not None:
            super().end()
        else:
            self.idle.append(self)


class Reused(Processes):
    """An executor of such processes."""

    def __init__(self) -> None:
        super().__init__()
        self.idle: list[Kept] = []

    def start(self) -> Worker:
        return self.idle.pop() if self.idle else Kept(self.idle)

    def wait(self, workers: Sequence[Worker], seconds: float) -> list[Worker]:
        return super().wait(workers, seconds)

    def end(self) -> None:
        for process in self.idle:
            process.awaited = True
            process.end()


def run_with(executor: Reused, settings: TrainSettings, workers: int, out: Path | None = None) -> Outcome:
    """A run as `run_training` makes it, with workers of this executor; 0 for none."""
    run = None
    if out is not None:
        run = Run(out) if (out / "config.toml").exists() else Run.create(out, settings)
    with closing(WorkerPool(executor, workers) if workers else None) as pool:
        return Loop(settings, run, pool).train(None)
