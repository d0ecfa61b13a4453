"""GET /metrics, in the text format of Prometheus."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import lru_cache

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, Summary, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from muster.service.settings import SHARED

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Bounds of the buckets of request times."""
METHODS = ("GET", "HEAD", "POST", "DELETE", "OPTIONS")


class Metrics:
    """The metrics of one service. Labels come from our own tables, so that no client can make more of them."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"muster_{name}_total", text, labels, registry=registry)

        requests = counter("requests", "Requests answered.", "method", "path", "status")
        seconds = Histogram(
            "muster_request_seconds", "Seconds to an answer.", ["path"], buckets=SECONDS, registry=registry
        )
        # Finding a metric by its labels takes longer than counting.
        self._request = lru_cache(1024)(
            lambda method, path, status: (requests.labels(method, path, status), seconds.labels(path))
        )
        decisions = counter("decisions", "Decisions of /act.", "policy", "version", "by")
        self.decisions = lru_cache(1024)(decisions.labels)
        text = "Decisions with a feature outside of its range in training."
        self.out_of_range = counter("feature_out_of_range", text, "policy", "feature")
        text = "Agents to which the shadow gives the same task, or another."
        self.shadow_agents = counter("shadow_agents", text, "policy", "same")
        text = "Objective of the shadow's assignment less that of the answer, by the answering policy's scores."
        self.shadow_difference = Summary("muster_shadow_score_difference", text, ["policy"], registry=registry)
        self.reloads = counter("reloads", "Reloads of the policies.", "outcome")
        self._gauges: dict[Gauge, Callable[[], float]] = {}

    def add_gauges(self, gauges: Mapping[str, tuple[str, Callable[[], float]]]) -> None:
        """Show current values: by name, the help text and the function that returns the value."""
        for name, (text, value) in gauges.items():
            self._gauges[Gauge(f"muster_{name}", text, registry=self.registry, multiprocess_mode="livesum")] = value

    def count_request(self, method: str, path: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        count, times = self._request(method if method in METHODS else "other", path, status)
        count.inc()
        times.observe(seconds)

    def refresh(self) -> None:
        """Write down current values, for whichever process is asked."""
        for gauge, value in self._gauges.items():
            gauge.set(value())

    def text(self) -> bytes:
        """The metrics of all processes of the service."""
        self.refresh()
        if SHARED not in os.environ:
            return generate_latest(self.registry)
        all_processes = CollectorRegistry()
        MultiProcessCollector(all_processes)  # type: ignore[no-untyped-call]
        return generate_latest(all_processes)
