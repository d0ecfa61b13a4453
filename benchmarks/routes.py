"""Routes: PLAN beside OR-Tools' routing on the same instances, and beside published values.

What is compared is the longest route. Seconds are those of the processor, one thread, on both sides: other work on the
machine takes nothing from either. A figure of ours is a whole call, cold, with as many iterations as take so long.
"""

from __future__ import annotations

import importlib.metadata
import json as json_format
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.envs import machine
from benchmarks.route_report import markdown, print_tables, targets
from benchmarks.route_sets import MTSPLIB, PUBLISHED, SALESMEN, Instance, mtsplib, static, uniform
from muster.assign import Solver
from muster.errors import InputError
from muster.storage import write_atomically

Row = dict[str, Any]

LIMITS = {"static": (0.01, 0.03), "uniform": (0.1, 1.0), "mTSPLib": (0.1, 1.0)}
"""Processor seconds of ours, about."""
PROBE = 1000
"""Iterations by which their time is estimated."""
STATIC_SECONDS = 10.0
"""Of OR-Tools on the static starts of rescue."""


def run(json: bool = False, instances: int = 3, peer_seconds: float = 60.0, record: Path | None = None) -> None:
    """Routes beside OR-Tools' routing (extra `bench`).

    Args:
        json: print one JSON object.
        instances: of each size, 1 to 100.
        peer_seconds: processor seconds for OR-Tools on each instance (rescue's at most 10); 0 leaves it out.
        record: JSON file to keep the results in, with a Markdown page beside it; OR-Tools' runs in it are taken over.

    """
    if instances < 1 or instances > 100:
        raise InputError(f"instances must be from 1 to 100, got {instances}")
    if peer_seconds < 0:
        raise InputError(f"peer_seconds must not be negative, got {peer_seconds}; 0 leaves OR-Tools out")
    found: Row = {
        "command": "python -m benchmarks routes",
        "machine": describe(),
        "notes": [],
        "load": os.getloadavg()[0],
    }
    before = known_answers(record)
    began = time.perf_counter()
    Solver("routes", threads=1)(next(static(1)).problem)  # compiled or loaded: that is not solving
    listed = list(mtsplib())
    if not listed:
        found["notes"].append(f"mTSPLib is left out: there is no {'/'.join(MTSPLIB.parts[-3:])} beside the repository.")
    found["static"] = beside(static(instances), min(STATIC_SECONDS, peer_seconds), before, found["notes"])
    found["uniform"] = beside(uniform(instances), peer_seconds, before, found["notes"])
    found["mtsplib"] = [own_row(instance) | {"published": published(instance.name)} for instance in listed]
    found["seconds"] = time.perf_counter() - began
    found["targets"] = targets(found)
    if record is not None:
        write_atomically(record, (json_format.dumps(found, indent=1) + "\n").encode())
        write_atomically(record.with_suffix(".md"), (markdown(found) + "\n").encode())
    if json:
        print(json_format.dumps(found, indent=1))
    else:
        print_tables(found)


def describe() -> Row:
    """What the figures were measured on and with."""
    try:
        version = importlib.metadata.version("ortools")
    except importlib.metadata.PackageNotFoundError:
        version = "not installed"
    return {"description": machine(), "ortools": version, "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")}


def published(name: str) -> float:
    """The published value of an instance of mTSPLib."""
    instance, m = name.split()
    return PUBLISHED[instance][SALESMEN.index(int(m))]


def own_row(instance: Instance) -> Row:
    """What PLAN finds within each limit."""
    limits = LIMITS[instance.set.split()[0]]
    row: Row = {"set": instance.set, "name": instance.name, "ours": []}
    for limit in limits:
        found, spent = timed(instance, iterations_for(instance, limit))
        row["ours"].append({"limit": limit, "seconds": spent, **found})
    return row


def timed(instance: Instance, iterations: int) -> tuple[Row, float]:
    """Longest route and bound after so many iterations, and the processor time of the call."""
    began = time.process_time()
    solution = Solver("routes", steps=iterations, threads=1)(instance.problem)
    spent = time.process_time() - began
    return {"makespan": -float(solution.objective[0]), "bound": -float(solution.bound[0])}, spent


def iterations_for(instance: Instance, seconds: float) -> int:
    """About as many as fit, by what a few of them take."""
    start = timed(instance, 0)[1]
    each = (timed(instance, PROBE)[1] - start) / PROBE
    return int(max(0.0, seconds - start) / max(each, 1e-7))


def beside(instances: Iterable[Instance], seconds: float, before: dict[Any, Row], notes: list[str]) -> list[Row]:
    """Ours and, unless it has no time or is not installed, OR-Tools'."""
    rows = []
    for instance in instances:
        row = own_row(instance)
        known = before.get((instance.set, instance.name, seconds))
        if known is not None:
            row["peer"] = {**known, "recorded": True}
        elif seconds > 0:
            answer = ask_peer(instance, seconds)
            if "skipped" in answer:
                if answer["skipped"] not in notes:
                    notes.append(answer["skipped"])
            else:
                row["peer"] = {**answer, "limit": seconds, "recorded": False}
        rows.append(row)
    return rows


def ask_peer(instance: Instance, seconds: float) -> Row:
    """OR-Tools' answer, from a process of its own; what is wrong under "skipped"."""
    arrays = {"first0": instance.first, "follow0": instance.follow}
    arrays |= {} if instance.last is None else {"last0": instance.last}
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "instance.npz")
        np.savez(file, **arrays)  # type: ignore[arg-type]
        command = [sys.executable, "-m", "benchmarks.route_peer", file, str(seconds)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"skipped": f"OR-Tools failed: {(done.stderr.strip().splitlines() or ['no reason given'])[-1]}"}
    answer: Row = json_format.loads(done.stdout.strip().splitlines()[-1])
    return answer


def known_answers(record: Path | None) -> dict[Any, Row]:
    """OR-Tools' answers in an earlier record, by set, name and limit."""
    if record is None or not record.exists():
        return {}
    try:
        found = json_format.loads(record.read_text(encoding="utf-8"))
        rows = [row for part in ("static", "uniform") for row in found.get(part, []) if "peer" in row]
        return {(row["set"], row["name"], row["peer"]["limit"]): row["peer"] for row in rows}
    except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
        raise InputError(f"{record} is no record of python -m benchmarks routes ({error}); name another file") from None
