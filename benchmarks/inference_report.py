"""What `python -m benchmarks inference` found, as tables for the console or as Markdown.

`python -m benchmarks.inference_report FOUND.json` prints the Markdown.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.instances import REGIMES
from benchmarks.report import BUSY, Section, as_markdown, print_report, target_section

Row = dict[str, Any]


def sections(found: dict[str, Any]) -> list[Section]:
    """Every table of the report."""
    return [
        target_section(found["targets"]),
        _linear(found),
        _efforts(found),
        _python(found),
        _gaps(found),
        _others(found),
    ]


def microseconds(seconds: float | None) -> str:
    """Seconds as microseconds, with three figures."""
    if seconds is None:
        return ""
    value = 1e6 * seconds
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def preamble(found: dict[str, Any]) -> list[str]:
    """How, on what and when."""
    machine = found["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    shared = "The machine was shared. " if max(machine["load"], found["load_at_end"]) > BUSY else ""
    return [
        f"{machine['description']}; {versions}; {machine['date']}.",
        f"Processor time, one thread, cold starts, one run of {found['seconds'] / 60:.1f} minutes. {shared}Load "
        f"average {machine['load']:.1f} at the start and {found['load_at_end']:.1f} at the end. Trust the ratios, "
        "which compare the same instances in the same run.",
        *found["notes"],
    ]


def _linear(found: dict[str, Any]) -> Section:
    rows = []
    for row in found["lp"]:
        cells = [row["size"], row["regime"], microseconds(row["batched"]), microseconds(row["single"])]
        odd = []
        for peer, parts in (("glop", ("solve", "total")), ("highs", ("solve", "total", "warm"))):
            for part in parts:
                cells.append(_beside(row.get(peer, {}), part))
        for peer in ("scipy", "lap"):
            cells.append(_beside(row.get(peer, {}), "solve"))
        for peer in ("glop", "highs", "scipy", "lap"):
            answer = row.get(peer, {})
            if "failed" in answer:
                odd.append(f"{peer}: {answer['failed']}")
            elif not answer.get("agrees", True):
                odd.append(f"{peer} differs by {answer['difference']:.1g}")
        rows.append((*cells, "; ".join(odd) or "yes"))
    header = (
        "size",
        "regime",
        "muster, batched",
        "muster, a call",
        "GLOP, solve only",
        "GLOP",
        "HiGHS, solve only",
        "HiGHS",
        "HiGHS, warm",
        "scipy",
        "lap",
        "objectives agree",
    )
    note = (
        "µs an instance; in brackets how many times a single call of muster is faster (below 1: slower). A call of "
        "muster checks the input, solves, rounds and proves the result; the others solve. unit: contribution and "
        "capacity 1; hits: contribution 20, capacity 1 to 6 hits; pair: contributions that depend on the pair. Warm: "
        "after the costs changed by 1 % of their spread; muster's own figures are all cold."
    )
    return Section("LP, exact", note, header, rows)


def _beside(answer: dict[str, Any], part: str) -> str:
    if "failed" in answer:
        return "–"
    if part not in answer:
        return ""
    ratio = answer[f"{part}_ratio"]
    return (
        f"{microseconds(answer[part])} ({ratio:.2g}x)"
        if ratio < 10
        else f"{microseconds(answer[part])} ({ratio:,.0f}x)"
    )


def _efforts(found: dict[str, Any]) -> Section:
    rows = []
    for row in found["quad"]:
        gain = 100 * (row["fast_objective"] - row["paper_objective"]) / abs(row["paper_objective"])
        cells = [row["size"], row["regime"], row["kind"]]
        cells += [f"{row['paper_objective']:.4g}", f"{row['fast_objective']:.4g}", f"{gain:+.2f} %"]
        cells += [microseconds(row["paper_seconds"]), microseconds(row["fast_seconds"])]
        rows.append((*cells, f"{row['paper_seconds'] / row['fast_seconds']:.2f}"))
    header = (
        "size",
        "regime",
        "g",
        "paper, mean objective",
        "fast, mean objective",
        "gain",
        "paper, µs",
        "fast, µs",
        "fast is quicker by",
    )
    note = (
        "Batched on one thread. Below 1 in the last column `fast` is slower: where Frank-Wolfe stops after a few "
        "steps, `paper` is done before `fast` begins its local search."
    )
    return Section("QUAD, fast beside paper", note, header, rows)


def _python(found: dict[str, Any]) -> Section:
    rows = []
    for row in found["python_quad"]:
        agrees = "yes" if row["agrees"] else f"differ by {row['difference']:.1g}"
        times = f"{1e3 * row['total']:.1f}", f"{1e3 * row['solve']:.1f}", f"{1e3 * row['single']:.3g}"
        ratios = f"{row['ratio']:.0f}", f"{row['solve_ratio']:.0f}"
        rows.append((row["size"], row["kind"], f"{row['steps']:.0f}", *times, *ratios, agrees))
    header = (
        "size",
        "g",
        "steps",
        "Python + GLOP, ms",
        "of which GLOP's solve",
        "muster, ms",
        "times faster",
        "than GLOP's solve alone",
        "relaxed objectives agree",
    )
    note = (
        "The same pairwise Frank-Wolfe and stopping rules, in numpy with GLOP for the vertices; regime hits. Where "
        "vertices tie the two may walk to different stationary points of a non-concave objective; both stop at a gap "
        "of 1e-5 of the largest score, so the last digits differ."
    )
    return Section("QUAD paper beside plain Python + GLOP", note, header, rows)


def _gaps(found: dict[str, Any]) -> Section:
    rows = [
        (row["regime"], row["kind"], *(f"{100 * row[effort]:.3f} %" for effort in ("paper", "fast", "best")))
        for row in found["enumerated"]
    ]
    note = f"Mean of {found['enumerated'][0]['instances']} instances each."
    return Section(
        "QUAD 5x10, gap to the best of all assignments", note, ("regime", "g", "paper", "fast", "best"), rows
    )


def _others(found: dict[str, Any]) -> Section:
    rows = []
    for row in found["threads"]:
        figure = f"{1e3 * row['one']:.1f} ms on one thread, {1e3 * row['two']:.1f} ms on two: {row['ratio']:.2f} times"
        rows.append((f"1,024 instances of 15x17, {row['method']}, wall time, load average {row['load']:.1f}", figure))
    large = found["large"]
    for row in large["kinds"]:
        rows.append((f"QUAD fast {large['size']} hits, {row['kind']}", f"{row['seconds']:.2f} s"))
    rows.append(("peak memory of those four", f"{large['peak_bytes'] / 1e6:.0f} MB, interpreter included"))
    names = {"python": "python alone", "import": "import muster", "help": "muster --help", "solve": "muster solve, 2x2"}
    for name, words in names.items():
        rows.append((f"{words}, wall time", f"{found['start'][name]:.2f} s"))
    return Section("Threads, large instances, start", "", ("what", "figure"), rows)


def markdown(found: dict[str, Any]) -> str:
    """The whole report as Markdown."""
    made_by = "`make bench-record`, which keeps one run of `python -m benchmarks inference`"
    return as_markdown("Inference", made_by, preamble(found), sections(found))


def print_tables(found: dict[str, Any]) -> None:
    """The whole report on the console."""
    print_report(preamble(found), sections(found))


def targets(found: dict[str, Any]) -> list[Row]:
    """Each target with what was measured; one whose peer is missing is left out."""
    return [*_linear_targets(found), *_quadratic_targets(found), *_machine_targets(found)]


def _target(target: str, figure: float, met: bool, shown: str, remark: str = "") -> Row:
    return {"target": target, "figure": figure, "shown": shown, "met": met, "remark": remark}


def _linear_targets(found: dict[str, Any]) -> Iterator[Row]:
    lp = {(row["size"], row["regime"]): row for row in found["lp"]}
    for size, regime, peer, part, least, words in (
        ("80x82", "hits", "glop", "solve", 40, "GLOP's solve call alone"),
        ("80x82", "hits", "highs", "total", 100, "HiGHS with building"),
        ("80x82", "pair", "highs", "total", 30, "HiGHS with building"),
        ("1000x1000", "hits", "glop", "solve", 50, "GLOP's solve call alone"),
    ):
        ratio = lp[size, regime].get(peer, {}).get(f"{part}_ratio")
        if ratio is not None:
            yield _target(f"LP {size} {regime} ≥ {least} times {words}", ratio, ratio >= least, f"{ratio:.0f} times")
    for regime in REGIMES:
        value = lp["5x10", regime]["batched"]
        yield _target(f"LP 5x10 {regime} batched < 3 µs an instance", value, value < 3e-6, f"{1e6 * value:.2f} µs")


def _quadratic_targets(found: dict[str, Any]) -> Iterator[Row]:
    quad = found["quad"]
    short = [r for r in quad if r["fast_objective"] < r["paper_objective"] - 1e-9 * abs(r["paper_objective"])]
    remark = ", ".join(f"{r['size']} {r['regime']} {r['kind']}" for r in short)
    shown = f"{len(quad) - len(short)} of {len(quad)} cases"
    yield _target("QUAD fast ≥ paper on average", len(short), not short, shown, remark)
    at_80 = [row for row in quad if row["size"] == "80x82"]
    slow = [row for row in at_80 if row["fast_seconds"] > row["paper_seconds"]]
    remark = ", ".join(
        f"{row['regime']} {row['kind']} {1e3 * row['fast_seconds']:.2f} against {1e3 * row['paper_seconds']:.2f} ms"
        for row in slow
    )
    shown = f"{len(at_80) - len(slow)} of {len(at_80)} cases"
    yield _target(
        "QUAD fast never slower than paper at 80x82", len(slow), not slow, shown, remark and f"slower: {remark}"
    )
    gap = float(np.mean([row["fast"] for row in found["enumerated"]]))
    above = [row for row in found["enumerated"] if row["fast"] > 0.005]
    remark = ", ".join(f"{row['regime']} {row['kind']} {100 * row['fast']:.2f} %" for row in above)
    target, shown = "QUAD fast 5x10 mean gap to brute force ≤ 0.5 %", f"{100 * gap:.2f} %"
    yield _target(target, gap, gap <= 0.005, shown, remark and f"mean of all; above it: {remark}")
    python = [row for row in found["python_quad"] if row["size"] == "80x82"]
    if python:
        least_ratio = min(row["ratio"] for row in python)
        each = ", ".join(f"{row['kind']} {row['ratio']:.0f}" for row in python)
        target = "QUAD paper 80x82 ≥ 100 times Python + GLOP"
        yield _target(target, least_ratio, least_ratio >= 100, f"{least_ratio:.0f} times at least", each)
    slowest = max(row["seconds"] for row in found["large"]["kinds"])
    yield _target("QUAD fast 1000x1000 ≤ 5 s", slowest, slowest <= 5, f"{slowest:.2f} s", "slowest kind, hits")
    peak = found["large"]["peak_bytes"]
    yield _target("QUAD fast 1000x1000 ≤ 1 GB", peak, peak <= 1e9, f"{peak / 1e6:.0f} MB", "whole process")


def _machine_targets(found: dict[str, Any]) -> Iterator[Row]:
    """Threads, and how long it takes to start."""
    for row in found["threads"]:
        target = f"two threads ≥ 1.6 times one, {row['method']}, 1,024 of 15x17"
        extra = 100 * (row["cpu_two"] / row["cpu_one"] - 1)
        remark = f"load average {row['load']:.1f}; a plain loop gains {row['control']:.2f} times from two threads"
        if row["control"] < 1.6:
            remark += ", so the second core was busy and this says nothing"
        remark += f"; {extra:+.0f} % processor time"
        yield _target(target, row["ratio"], row["ratio"] >= 1.6, f"{row['ratio']:.2f} times", remark)
    for name, most in (("import", 0.5), ("help", 0.5), ("solve", 2.0)):
        words = {"import": "import muster", "help": "muster --help", "solve": "muster solve, cached kernels"}[name]
        value = found["start"][name]
        yield _target(f"{words} < {most} s", value, value < most, f"{value:.2f} s", "wall time, interpreter included")


if __name__ == "__main__":
    print(markdown(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))))
