"""What `python -m benchmarks inference` found, as tables for the console or as Markdown.

`python -m benchmarks.inference_report FOUND.json` prints the Markdown.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

# Above this load average others are at work: one runs for the benchmark itself.
BUSY = 1.5


class Section(NamedTuple):
    """A table with a title and a note."""

    title: str
    note: str
    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


def sections(found: dict[str, Any]) -> list[Section]:
    """Every table of the report."""
    return [
        _floors(found),
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


def _floors(found: dict[str, Any]) -> Section:
    rows = [(one["promise"], one["shown"], "yes" if one["met"] else "NO", one["remark"]) for one in found["floors"]]
    return Section("What was promised, and what was measured", "", ("promise", "measured", "met", "remarks"), rows)


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
    lines = ["# Inference", "", "Made by `make bench-record`, which keeps one run of `python -m benchmarks inference`."]
    for paragraph in preamble(found):
        lines += ["", paragraph]
    for section in sections(found):
        lines += ["", f"## {section.title}", ""]
        lines += [section.note, ""] if section.note else []
        lines.append(f"| {' | '.join(section.header)} |")
        lines.append("|" + "---|" * len(section.header))
        lines += [f"| {' | '.join(row)} |" for row in section.rows]
    return "\n".join(lines)


def print_tables(found: dict[str, Any]) -> None:
    """The whole report on the console."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    for section in sections(found):
        table = Table(*section.header, title=section.title, title_justify="left", caption=section.note or None)
        for row in section.rows:
            table.add_row(*row)
        console.print(table)
    for paragraph in preamble(found):
        console.print(paragraph)


if __name__ == "__main__":
    print(markdown(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))))
