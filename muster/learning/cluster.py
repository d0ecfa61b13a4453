"""Workers as actors of a Ray cluster, with the same jobs and messages as local processes."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Sequence
from typing import Any

from muster.errors import InputError, MissingExtraError, in_words
from muster.learning.workers import Host, Worker, WorkerLostError

LOCAL = "local"
CONNECTION_TIMEOUT = 10.0
"""Seconds in which a cluster must accept a connection."""


class Remote:
    """A worker that is a Ray actor."""

    def __init__(self, ray: Any, actor: Any) -> None:
        self.ray, self.actor = ray, actor
        self.answer: Any = None

    def send(self, data: bytes) -> None:
        """Send bytes; failures show in `receive`."""
        self.answer = self.actor.answer.remote(data)

    def receive(self) -> bytes:
        """The answer that has arrived."""
        try:
            found: bytes = self.ray.get(self.answer)
        except self.ray.exceptions.RayError as error:
            raise WorkerLostError(f"{type(error).__name__} of Ray") from None
        return found

    def end(self) -> None:
        """Kill the actor."""
        self.ray.kill(self.actor)


def check_listens(address: str) -> None:
    """Raise OSError where nothing listens at HOST:PORT; Ray itself would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), CONNECTION_TIMEOUT).close()


class Cluster:
    """Executor of Ray actors with a core each."""

    def __init__(self, address: str, workers: int | None) -> None:
        try:
            import ray
        except ImportError:
            raise MissingExtraError("--cluster", "cluster") from None
        self.ray, self.local = ray, address == LOCAL
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        more: dict[str, Any] = {}
        if self.local:
            # Otherwise local workers would run at a lower priority than other processes.
            os.environ.setdefault("RAY_worker_niceness", "0")
            path = os.pathsep.join(os.path.abspath(entry) for entry in sys.path)
            more = {"num_cpus": workers, "include_dashboard": False, "runtime_env": {"env_vars": {"PYTHONPATH": path}}}
        try:
            if not self.local:
                check_listens(address)
            ray.init(address=address, log_to_driver=False, logging_level="ERROR", **more)
        except Exception as error:  # Ray raises bare ones too, as for a node that is not up within half a minute
            why = getattr(error, "strerror", None) or in_words(error)
            raise InputError(
                f"no Ray cluster answers at {address}: {why}; start one (ray start --head), or use --cluster local"
            ) from None
        self.worker = ray.remote(num_cpus=1, max_restarts=0)(Host)
        cores = self.capacity()
        if workers is not None and workers > cores:
            self.close()
            raise InputError(f"the cluster at {address} has {cores} cores, too few for {workers} workers")

    def capacity(self) -> int:
        """Cores of the cluster."""
        return int(self.ray.cluster_resources().get("CPU", 1))

    def start(self) -> Worker:
        """A new actor, on a machine with a free core."""
        return Remote(self.ray, self.worker.remote())

    def wait(self, workers: Sequence[Worker], seconds: float) -> list[Worker]:
        """Workers whose answer has arrived, or that are lost."""
        owed = {worker.answer: worker for worker in workers if isinstance(worker, Remote)}
        ready, _ = self.ray.wait(list(owed), num_returns=1, timeout=max(0.0, seconds))
        if ready:
            ready, _ = self.ray.wait(list(owed), num_returns=len(owed), timeout=0.0)
        return [owed[answer] for answer in ready]

    def close(self) -> None:
        """Disconnect; a local cluster ends."""
        self.ray.shutdown()
