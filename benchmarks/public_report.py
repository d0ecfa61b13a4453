"""What `python -m benchmarks public` found, as tables for the console or as Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.report import BUSY, Section, as_markdown

Row = dict[str, Any]


def sections(found: Row) -> list[Section]:
    """Every table."""
    return [_summary(found), _each(found), _small(found), _diversity(found), _plain(found)]


def percent(share: float | None) -> str:
    """A share, with three decimals."""
    return "none" if share is None else f"{100 * share:.3f} %"


def _label(entry: Row) -> str:
    return entry["solver"] if entry["limit"] is None else f"{entry['solver']}, {entry['limit']:g} s"


def _by_label(found: Row) -> dict[str, list[Row]]:
    table: dict[str, list[Row]] = {}
    for row in found["gap"]:
        for entry in row["runs"]:
            table.setdefault(_label(entry), []).append(entry)
    return table


def _summary(found: Row) -> Section:
    rows = []
    for label, entries in _by_label(found).items():
        gaps = [entry["gap"] for entry in entries if entry["gap"] is not None]
        rows.append(
            (
                label,
                str(len(entries)),
                str(len(entries) - len(gaps)),
                percent(float(np.mean(gaps))) if gaps else "",
                percent(max(gaps)) if gaps else "",
                str(sum(entry["proven"] for entry in entries)),
                f"{1e3 * np.mean([entry['seconds'] for entry in entries]):,.0f}",
                f"{1e3 * max(entry['seconds'] for entry in entries):,.0f}",
            )
        )
    header = ("solver", "problems", "no whole answer", "mean gap", "worst gap", "proven", "mean ms", "longest ms")
    note = "Gaps of whole answers to the best known value; processor time; the limits are of wall time."
    return Section("Generalised assignment", note, header, rows)


def _each(found: Row) -> Section:
    labels = list(_by_label(found))
    rows = []
    for row in found["gap"]:
        known = {_label(entry): entry for entry in row["runs"]}
        cells = (
            "" if label not in known else percent(known[label]["gap"]) + (" proven" if known[label]["proven"] else "")
            for label in labels
        )
        rows.append((row["name"], row["sense"], f"{row['known']:,.0f}", *cells))
    return Section("Each of them", "", ("name", "sense", "best known", *labels), rows)


def _small(found: Row) -> Section:
    times = ("mean", "longest", "longest_wall")
    rows = [
        (row["size"], str(row["problems"]), str(row["proven"]), *(f"{1e3 * row[name]:.1f}" for name in times))
        for row in found["small"]
    ]
    note = "Machines x jobs, type c by the generator, seeds 0 to 4, both senses; effort exact."
    header = ("size", "problems", "proven", "mean ms", "longest ms", "longest wall ms")
    return Section("Small ones, proven", note, header, rows)


def _diversity(found: Row) -> Section:
    rows = []
    for row in found["diversity"]:
        for entry in row["runs"]:
            limit = "" if entry["limit"] is None else f", {entry['limit']:g} s"
            rows.append(
                (row["kind"], str(row["seed"]), entry["effort"] + limit, f"{entry['value']:.2f}", percent(entry["gap"]),
                 f"{1e3 * entry['seconds']:,.0f}")
            )  # fmt: skip
    note = "50 of 500 elements, distances made here; gaps to the best of the runs in this table, so least is 0."
    return Section("Maximum diversity, QUAD", note, ("kind", "seed", "effort", "value", "gap", "ms"), rows)


def _plain(found: Row) -> Section:
    def ms(seconds: float | None) -> str:
        return "" if seconds is None else f"{1e3 * seconds:.2f}"

    rows = [
        (
            f"{row['size']}x{row['size']}",
            ms(row["muster"]),
            ms(row["scipy"]),
            ms(row["lap"]),
            str(row.get("agrees", "")),
        )
        for row in found["plain"]
    ]
    note = "Milliseconds of the processor, one call each."
    return Section("Plain assignment", note, ("size", "muster", "scipy", "lap", "values agree"), rows)


def preamble(found: Row) -> Iterator[str]:
    """How, on what and when."""
    machine = found["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    yield f"{machine['description']}; {versions}; {machine['date']}."
    shared = "The machine was shared, which takes from everybody's time. " if machine["load"] > BUSY else ""
    yield (
        f"One thread each, one run of {found['seconds'] / 60:.1f} minutes. {shared}Load average {machine['load']:.1f} "
        f"at the start and {found['load_at_end']:.1f} at the end."
    )
    yield from found["notes"]


def markdown(found: Row) -> str:
    """The whole report."""
    return as_markdown("Public problems", f"`{found['command']}`", preamble(found), sections(found))
