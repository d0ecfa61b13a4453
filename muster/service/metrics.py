"""GET /metrics: what Prometheus asks for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

if TYPE_CHECKING:
    from muster.service.state import State

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Bounds of the buckets of request times."""
METHODS = ("GET", "HEAD", "POST", "OPTIONS")


class Metrics:
    """The counters of one service. Labels come from our own tables, so that no client can make more of them."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._requests = Counter(
            "muster_requests_total", "Requests answered.", ["method", "path", "status"], registry=self.registry
        )
        self._seconds = Histogram(
            "muster_request_seconds", "Seconds to an answer.", ["path"], buckets=SECONDS, registry=self.registry
        )
        self._known: dict[tuple[str, str, int], tuple[Any, Any]] = {}
        self.with_others: Callable[[bytes], bytes] | None = None
        """From the metrics of this process to those of all; None: there is one."""

    def watch(self, state: State) -> None:
        """Show what the service holds at the moment of asking."""
        crowd = state.crowd
        shown = {
            "muster_work_held": ("Requests being worked on or waiting for a thread.", lambda: state.pool.held),
            "muster_work_room": ("Requests that may be held.", lambda: state.pool.threads + state.pool.queue),
            "muster_body_bytes": ("Bytes of bodies that are arriving.", lambda: state.buffered),
            "muster_ready": ("1 while requests are taken.", lambda: float(state.ready)),
            "muster_policies": ("Policies served.", lambda: len(state.policies)),
            "muster_connections": ("Open connections.", lambda: crowd.open),
            "muster_connections_made_room": ("Idle connections closed for others.", lambda: crowd.closed_idle),
        }
        for name, (text, value) in shown.items():
            Gauge(name, text, registry=self.registry).set_function(value)

    def note(self, method: str, path: str, status: int, seconds: float) -> None:
        """A request has been answered."""
        key = (method if method in METHODS else "other", path, status)
        if key not in self._known:
            self._known[key] = self._requests.labels(*key), self._seconds.labels(path)
        count, times = self._known[key]
        count.inc()
        times.observe(seconds)

    def own_text(self) -> bytes:
        """What this process counts, as Prometheus reads it."""
        return generate_latest(self.registry)

    def text(self) -> bytes:
        """What all processes of the service count."""
        own = self.own_text()
        return own if self.with_others is None else self.with_others(own)
