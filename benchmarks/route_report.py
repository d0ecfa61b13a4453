"""What `python -m benchmarks routes` found: targets, tables for the console, Markdown for the record."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.report import Section, as_markdown, print_report, target_section

Row = dict[str, Any]


def groups(rows: list[Row]) -> dict[str, list[Row]]:
    """Rows by set, in order."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row["set"], []).append(row)
    return found


def mean_ours(rows: list[Row], k: int, what: str = "makespan") -> float:
    """Mean of ours at its k-th limit."""
    return float(np.mean([row["ours"][k][what] for row in rows]))


def mean_peer(rows: list[Row]) -> float | None:
    """Mean of OR-Tools over the rows; None unless it has solved them all."""
    found = [row.get("peer", {}).get("makespan") for row in rows]
    return None if None in found else float(np.mean(found))


def targets(found: Row) -> list[Row]:
    """Each target with what was measured; one whose peer is missing is left out."""
    listed: list[Row] = []
    for name, rows in groups(found["static"]).items():
        peer, ours = mean_peer(rows), mean_ours(rows, -1)
        if peer is not None:
            spent = max(row["ours"][-1]["seconds"] for row in rows)
            target = f"{name}: shorter than OR-Tools in {rows[0]['peer']['limit']:g} s, in under 50 ms"
            shown = f"{ours:.2f} in {1e3 * spent:.0f} ms at most, OR-Tools {peer:.2f}"
            listed.append({"target": target, "shown": shown, "met": ours < peer and spent < 0.05})
    for name, rows in groups(found["uniform"]).items():
        peer, ours, cities = mean_peer(rows), mean_ours(rows, -1), int(name.split()[1].strip(","))
        if peer is None or not (cities == 50 or cities >= 200):
            continue
        limit, their = rows[0]["ours"][-1]["limit"], rows[0]["peer"]["limit"]
        words = "at most 2 % above" if cities == 50 else "ahead of"
        target = f"{name}: in {limit:g} s {words} OR-Tools in {their:g} s"
        shown = f"{ours:.4f}, OR-Tools {peer:.4f} ({ours / peer - 1:+.2%})"
        met = ours <= 1.02 * peer if cities == 50 else ours < peer
        listed.append({"target": target, "shown": shown, "met": met})
    return listed


def sections(found: Row) -> list[Section]:
    """Every table of the report."""
    made = [
        target_section(found["targets"]),
        _beside("Longest route at the start of search and rescue", found["static"], 1),
    ]
    made[-1] = made[-1]._replace(
        note="Ambulances and victims on distinct cells of a 64x64 grid, king's moves, none has to return."
    )
    uniform = _beside("Multiple travelling salesmen, uniform", found["uniform"], 4)
    made.append(
        uniform._replace(
            note="Cities and salesmen; the first instances of numpy's seed 3333, longest tour from the first city and "
            "back. Means; below 0 % ours are shorter."
        )
    )
    if found["mtsplib"]:
        made.append(_mtsplib(found))
    return made


def _beside(title: str, rows: list[Row], digits: int) -> Section:
    limits = [f"ours, {one['limit']:g} s" for one in rows[0]["ours"]]
    table = []
    for name, group in groups(rows).items():
        ours = [mean_ours(group, k) for k in range(len(limits))]
        spent = [1e3 * mean_ours(group, k, "seconds") for k in range(len(limits))]
        peer = mean_peer(group)
        cells = [f"{value:.{digits}f} ({ms:,.0f} ms)" for value, ms in zip(ours, spent, strict=True)]
        told = ("–", "–") if peer is None else (f"{peer:.{digits}f}", f"{ours[-1] / peer - 1:+.2%}")
        bound = f"{np.mean([row['ours'][-1]['bound'] for row in group]):.{digits}f}"
        table.append((name, str(len(group)), *cells, *told, bound))
    their = next((f", {row['peer']['limit']:g} s" for row in rows if "peer" in row), "")
    return Section(
        title,
        "",
        ("set", "instances", *limits, f"OR-Tools{their}", "ours beside it", "no routes are shorter than"),
        table,
    )


def _mtsplib(found: Row) -> Section:
    rows = []
    for row in found["mtsplib"]:
        gaps = [f"{one['makespan']:.1f} ({one['makespan'] / row['published'] - 1:+.2%})" for one in row["ours"]]
        rows.append((row["name"], f"{row['published']:.1f}", *gaps))
    limits = [f"ours, {one['limit']:g} s" for one in found["mtsplib"][0]["ours"]]
    note = (
        "Longest tour; the published values are those of CPLEX runs, proven for eil51 and eil76 with 2 salesmen only. "
        "Below 0 % ours are shorter."
    )
    return Section("mTSPLib beside published values", note, ("instance, salesmen", "published", *limits), rows)


def preamble(found: Row) -> list[str]:
    """How, on what and when."""
    peers = [row["peer"] for part in ("static", "uniform") for row in found[part] if "peer" in row]
    told = f"{found['machine']['description']}; OR-Tools {found['machine']['ortools']}; {found['machine']['date']}."
    known = sum(peer["recorded"] for peer in peers)
    how = (
        "One thread each, processor time; in brackets what a call of ours took. OR-Tools: guided local search from "
        "local cheapest insertion, span coefficient 10,000, in a process of its own. "
        f"{known} of its {len(peers)} runs were taken over from an earlier record: they are long, which is also why "
        "there are so few instances. Others print better figures of OR-Tools for 200 cities, on other draws and "
        "machines (2.33 with 10 salesmen); these are what it does here."
    )
    return [told, how if peers else "OR-Tools did not take part.", *found["notes"]]


def markdown(found: Row) -> str:
    """The whole report as Markdown."""
    count = max(len(rows) for rows in groups(found["uniform"]).values())
    made_by = f"`python -m benchmarks routes --instances {count} --record benchmarks/routes.json`"
    return as_markdown("Routes", made_by, preamble(found), sections(found))


def print_tables(found: Row) -> None:
    """The whole report on the console."""
    print_report(preamble(found), sections(found))
