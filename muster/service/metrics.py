"""GET /metrics: what Prometheus asks for."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, Summary, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from muster.service.settings import SHARED

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Bounds of the buckets of request times."""
METHODS = ("GET", "HEAD", "POST", "DELETE", "OPTIONS")


class Metrics:
    """The counters of one service. Labels come from our own tables, so that no client can make more of them."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(name, text, labels, registry=registry)

        self._requests = counter("muster_requests_total", "Requests answered.", "method", "path", "status")
        self._seconds = Histogram(
            "muster_request_seconds", "Seconds to an answer.", ["path"], buckets=SECONDS, registry=registry
        )
        self.decisions = counter("muster_decisions_total", "Decisions of /act.", "policy", "version", "by")
        self.out_of_range = counter(
            "muster_feature_out_of_range_total",
            "Decisions with a feature beyond training's range.",
            "policy",
            "feature",
        )
        self.shadow_agents = counter(
            "muster_shadow_agents_total", "Agents that the shadow gives the same task, or another.", "policy", "same"
        )
        self.shadow_difference = Summary(
            "muster_shadow_score_difference",
            "Objective of the shadow's assignment less that of the answer, by the answering policy's scores.",
            ["policy"],
            registry=registry,
        )
        self.reloads = counter("muster_reloads_total", "Reloads of the policies.", "outcome")
        self._known: dict[tuple[str, str, int], tuple[Any, Any]] = {}
        self._gauges: dict[Gauge, Callable[[], float]] = {}

    def watch(self, shown: Mapping[str, tuple[str, Callable[[], float]]]) -> None:
        """Show values of the moment: by name, what it is and how it is found out."""
        for name, (text, value) in shown.items():
            gauge = Gauge(name, text, registry=self.registry, multiprocess_mode="livesum")
            self._gauges[gauge] = value

    def note(self, method: str, path: str, status: int, seconds: float) -> None:
        """A request has been answered."""
        key = (method if method in METHODS else "other", path, status)
        if key not in self._known:
            self._known[key] = self._requests.labels(*key), self._seconds.labels(path)
        count, times = self._known[key]
        count.inc()
        times.observe(seconds)

    def refresh(self) -> None:
        """Write down the values of the moment, for whichever process is asked."""
        for gauge, value in self._gauges.items():
            gauge.set(value())

    def text(self) -> bytes:
        """What all processes of the service count, as Prometheus reads it."""
        self.refresh()
        if SHARED not in os.environ:
            return generate_latest(self.registry)
        all_processes = CollectorRegistry()
        MultiProcessCollector(all_processes)  # type: ignore[no-untyped-call]
        return generate_latest(all_processes)
