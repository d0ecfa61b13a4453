"""`make soak`: the whole campaign, with a record.

    python -m tests.soak [--kills 200] [--files 10000] [--instances 100000] [--poison 140] [--hours 8]
                         [--episodes 1000000] [--ray-minutes 10] [--minutes 120] [--only files kill …] [--add]
                         [--out benchmarks/soak.md]

Parts that would begin after `--minutes` are left out, and the record says so; kills end there. `--only` runs those
parts whose names hold one of these words; the rows of others stay in the record as they were. With `--add`, kills go on
from those in the record until there are that many, and the row says which campaigns it sums.
"""

from __future__ import annotations

import argparse
import platform
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import muster
from muster.storage import write_atomically
from tests.soak import faults, files, kills, memory, poison, solver

Result = tuple[str, list[str]]
"""What was done and found, in a line; and what was wrong."""


def of_kills(learner: str, count: int, until: float, workers: int = 1, row: str = "") -> Result:
    """kill -9; `row` is what the record has of earlier campaigns, to be added to."""
    sums, before = kills_in(row)
    folder = Path(tempfile.mkdtemp(prefix="soak-"))
    try:
        # Another campaign has other moments.
        report = kills.campaign(folder, learner, count - before.kills, workers, seed=before.kills, until=until)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    sums = [*sums, report.kills]
    told = f" ({' + '.join(map(str, sums))} in {len(sums)} campaigns)" if len(sums) > 1 else ""
    when = f"{sum(sums)} kills{told}, {before.writing + report.writing} of them while a checkpoint was written"
    ended = f"{before.resumed + report.resumed} runs came to their end by resuming"
    return f"{when}; {ended}, with the bits of one that was not killed", report.bad


def kills_in(row: str) -> tuple[list[int], kills.Report]:
    """Kills of each campaign that a row of the record sums, and their report; one that went wrong is not added to."""
    found = re.search(r"(\d+) kills(?: \(([\d +]+) in .*?\))?, (\d+) of them .*; (\d+) runs came .* \| none \|$", row)
    if not found:
        return [], kills.Report()
    total, parts, writing, resumed = found.groups()
    sums = [int(part) for part in (parts or total).split(" + ")]
    return sums, kills.Report(kills=int(total), writing=int(writing), resumed=int(resumed))


def of_ray(minutes: float) -> Result:
    """Ray workers."""
    if find_spec("ray") is None:
        return "not run: Ray is not installed", ["–"]
    from tests.soak import cluster

    told, bad = [], []
    for learner in cluster.LEARNERS:
        report = cluster.campaign(learner, 60 * minutes)
        told.append(f"{learner} {report}")
        bad += report.bad
    when = f"one every 10 s, or when the run next calls its workers, for {minutes:g} minutes of each learner"
    return f"{when}: {'; '.join(told)}; the bits of one process", bad


def of_faults() -> Result:
    """Signals, disks, folders, clocks."""
    folder = Path(tempfile.mkdtemp(prefix="soak-"))
    try:
        found = faults.campaign(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return f"{len(found)}: {', '.join(found)}", [f"{name}: {wrong}" for name, wrong in found.items() if wrong]


def of_files(count: int) -> Result:
    """Damaged files."""
    folder = Path(tempfile.mkdtemp(prefix="soak-"))
    try:
        found = files.campaign(folder, count)
        made = files.crafted_campaign(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    parts = []
    for kind, report in found.items():
        counts = Counter(report.counts) + Counter(made[kind].counts if kind in made else {})
        slowest = max(report.slowest, made[kind].slowest if kind in made else 0.0)
        told = ", ".join(f"{number:,} {outcome}" for outcome, number in sorted(counts.items()))
        parts.append(f"{kind} {told}, slowest {1000 * slowest:.0f} ms")
    bad = [line for report in (*found.values(), *made.values()) for line in report.bad]
    return "; ".join(parts), bad


def of_instances(count: int) -> Result:
    """Solvers."""
    report = solver.campaign(count, seed=1)
    told = ", ".join(f"{number:,} {status}" for status, number in sorted(report.counts.items()))
    return f"{count:,} instances: {told}; slowest {report.slowest:.2f} s", report.bad


def of_poison(count: int) -> Result:
    """Numbers that are none."""
    return f"{count} runs, fields {', '.join(poison.FIELDS)}, both learners", poison.campaign(count)


def of_training(hours: float) -> Result:
    """Memory of training."""
    updates = {learner: round(most * hours / 8) for learner, most in memory.EIGHT_HOURS.items()}
    found = {learner: memory.growth_of_training(learner, count) for learner, count in updates.items()}
    told = ", ".join(f"{learner} {grown:.1f} MB" for learner, grown in found.items())
    counts = " and ".join(f"{count:,} updates of {learner}" for learner, count in updates.items())
    when = f"{counts}, as in {hours:g} CPU hours on battle:zh10v10 with QUAD, on a tiny environment"
    return f"{when}; growth over the second half: {told}", [told] if max(found.values()) > 20 else []


def of_evaluation(episodes: int) -> Result:
    """Memory of evaluation."""
    grown = memory.growth_of_evaluation(episodes)
    told = f"{grown:.0f} MB more than for a tenth; the process never had more than {memory.peak():.0f} MB"
    return f"{episodes:,} episodes: {told}", [told] if grown > 200 else []


def main() -> None:
    """Run the parts one after the other and write the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    counts = {"kills": 200, "files": 10_000, "instances": 100_000, "poison": 140}
    for name, usual in {**counts, "episodes": 1_000_000}.items():
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--hours", type=float, default=8.0)
    parser.add_argument("--ray-minutes", type=float, default=10.0)
    parser.add_argument("--minutes", type=float, default=120.0)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--add", action="store_true")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/soak.md"))
    asked = parser.parse_args()
    end, failed = time.monotonic() + 60 * asked.minutes, False
    earlier = rows_of(asked.out) if asked.add else {}
    rows = {
        "kill -9, evolution": ("es", asked.kills // 3, 1),
        "kill -9, ppo": ("ppo", asked.kills // 3, 1),
        "kill -9, evolution, 2 workers": ("es", asked.kills // 6, 2),
        "kill -9, ppo, 2 workers": ("ppo", asked.kills - 2 * (asked.kills // 3) - asked.kills // 6, 2),
    }
    parts: dict[str, Callable[[], Result]] = {
        "damaged files": lambda: of_files(asked.files),
        "random instances": lambda: of_instances(asked.instances),
        "numbers that are none": lambda: of_poison(asked.poison),
        "memory of an evaluation": lambda: of_evaluation(asked.episodes),
        "memory of training": lambda: of_training(asked.hours),
        **{
            name: partial(of_kills, learner, count, end, workers, earlier.get(name, ""))
            for name, (learner, count, workers) in rows.items()
        },
        "Ray workers killed": lambda: of_ray(asked.ray_minutes),
        "faults of the system": of_faults,
    }
    for name, part in parts.items():
        if asked.only and not any(word in name for word in asked.only):
            continue
        if name in rows and kills_in(earlier.get(name, ""))[1].kills >= rows[name][1]:
            continue
        said, bad = f"not run: the {asked.minutes:g} minutes were over", ["–"]
        if time.monotonic() <= end:
            said, bad = part()
            failed |= bool(bad)
        verdict = "none" if not bad else "–" if bad == ["–"] else f"{len(bad)}: {'; '.join(bad[:5])}"
        row = f"| {name} | {said} | {verdict} |".replace("\n", " ")
        print(row, flush=True)
        known = rows_of(asked.out) | {name: row}
        write_atomically(asked.out, text_of([known[part] for part in parts if part in known]).encode())
    sys.exit(failed)


def rows_of(path: Path) -> dict[str, str]:
    """The rows of a record, by their parts."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {line.split(" | ")[0].removeprefix("| "): line for line in lines if line.startswith("| ") and line[2] != "|"}


def text_of(rows: list[str]) -> str:
    """The record."""
    machine = f"Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    return "\n".join(
        [
            "# The fault campaign",
            "",
            "Made by `make soak`, which runs `python -m tests.soak`. Counts are flags; each row says how many it was. "
            f"muster {muster.__version__}, {machine}, two cores, busy otherwise. `make test` has it in short.",
            "",
            "| | what was done and what came of it | wrong |",
            "|---|---|---|",
            *rows,
            "",
            "Of damaged files, `refused` is a sentence of a typed error; `same` hit nothing that counts; `other` is a",
            "text (settings, replay, record) that now says something else, which cannot be known. Policies and",
            "checkpoints are sealed by hashes: none of them is ever `other`. Each must take less than 1 s and 200 MB.",
            "",
        ]
    )


if __name__ == "__main__":
    main()
