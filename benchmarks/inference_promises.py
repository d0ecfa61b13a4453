"""What is promised of inference's speed, held against the figures of a run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.instances import REGIMES

Row = dict[str, Any]


def floors(found: dict[str, Any]) -> list[Row]:
    """Each promise with its figure; a promise whose peer is missing has none."""
    return [*_linear(found), *_quadratic(found), *_machine(found)]


def _row(promise: str, figure: float, met: bool, shown: str, remark: str = "") -> Row:
    return {"promise": promise, "figure": figure, "shown": shown, "met": met, "remark": remark}


def _linear(found: dict[str, Any]) -> Iterator[Row]:
    lp = {(row["size"], row["regime"]): row for row in found["lp"]}
    for size, regime, peer, part, least, words in (
        ("80x82", "hits", "glop", "solve", 40, "GLOP's solve call alone"),
        ("80x82", "hits", "highs", "total", 100, "HiGHS with building"),
        ("80x82", "pair", "highs", "total", 30, "HiGHS with building"),
        ("1000x1000", "hits", "glop", "solve", 50, "GLOP's solve call alone"),
    ):
        ratio = lp[size, regime].get(peer, {}).get(f"{part}_ratio")
        if ratio is not None:
            yield _row(f"LP {size} {regime} ≥ {least} times {words}", ratio, ratio >= least, f"{ratio:.0f} times")
    for regime in REGIMES:
        value = lp["5x10", regime]["batched"]
        yield _row(f"LP 5x10 {regime} batched < 3 µs an instance", value, value < 3e-6, f"{1e6 * value:.2f} µs")


def _quadratic(found: dict[str, Any]) -> Iterator[Row]:
    quad = found["quad"]
    short = [r for r in quad if r["fast_objective"] < r["paper_objective"] - 1e-9 * abs(r["paper_objective"])]
    remark = ", ".join(f"{r['size']} {r['regime']} {r['kind']}" for r in short)
    shown = f"{len(quad) - len(short)} of {len(quad)} cases"
    yield _row("QUAD fast ≥ paper on average", len(short), not short, shown, remark)
    at_80 = [row for row in quad if row["size"] == "80x82"]
    slow = [row for row in at_80 if row["fast_seconds"] > row["paper_seconds"]]
    remark = ", ".join(
        f"{row['regime']} {row['kind']} {1e3 * row['fast_seconds']:.2f} against {1e3 * row['paper_seconds']:.2f} ms"
        for row in slow
    )
    shown = f"{len(at_80) - len(slow)} of {len(at_80)} cases"
    yield _row("QUAD fast never slower than paper at 80x82", len(slow), not slow, shown, remark and f"slower: {remark}")
    gap = float(np.mean([row["fast"] for row in found["enumerated"]]))
    above = [row for row in found["enumerated"] if row["fast"] > 0.005]
    remark = ", ".join(f"{row['regime']} {row['kind']} {100 * row['fast']:.2f} %" for row in above)
    promise, shown = "QUAD fast 5x10 mean gap to brute force ≤ 0.5 %", f"{100 * gap:.2f} %"
    yield _row(promise, gap, gap <= 0.005, shown, remark and f"mean of all; above it: {remark}")
    python = [row for row in found["python_quad"] if row["size"] == "80x82"]
    if python:
        least_ratio = min(row["ratio"] for row in python)
        each = ", ".join(f"{row['kind']} {row['ratio']:.0f}" for row in python)
        promise = "QUAD paper 80x82 ≥ 100 times Python + GLOP"
        yield _row(promise, least_ratio, least_ratio >= 100, f"{least_ratio:.0f} times at least", each)
    slowest = max(row["seconds"] for row in found["large"]["kinds"])
    yield _row("QUAD fast 1000x1000 ≤ 5 s", slowest, slowest <= 5, f"{slowest:.2f} s", "slowest kind, hits")
    peak = found["large"]["peak_bytes"]
    yield _row("QUAD fast 1000x1000 ≤ 1 GB", peak, peak <= 1e9, f"{peak / 1e6:.0f} MB", "whole process")


def _machine(found: dict[str, Any]) -> Iterator[Row]:
    """Threads, and how long it takes to start."""
    for row in found["threads"]:
        promise = f"two threads ≥ 1.6 times one, {row['method']}, 1,024 of 15x17"
        extra = 100 * (row["cpu_two"] / row["cpu_one"] - 1)
        remark = f"load average {row['load']:.1f}; a plain loop gains {row['control']:.2f} times from two threads"
        if row["control"] < 1.6:
            remark += ", so the second core was busy and this says nothing"
        remark += f"; {extra:+.0f} % processor time"
        yield _row(promise, row["ratio"], row["ratio"] >= 1.6, f"{row['ratio']:.2f} times", remark)
    for name, most in (("import", 0.5), ("help", 0.5), ("solve", 2.0)):
        words = {"import": "import muster", "help": "muster --help", "solve": "muster solve, cached kernels"}[name]
        value = found["start"][name]
        yield _row(f"{words} < {most} s", value, value < most, f"{value:.2f} s", "wall time, interpreter included")
