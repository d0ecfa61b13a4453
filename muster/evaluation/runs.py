"""Training runs in a folder, as data for the service's page; damaged files of a run never raise."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
import tomllib
from pathlib import Path
from typing import Any

from muster.errors import UnknownNameError

MOST_RUNS = 200
MOST_ROWS = 1500
"""Rows of a curve; of a longer log, evenly spaced ones."""
CONFIG_BYTES = 2**20
LOG_BYTES = 256 * 2**20
"""Larger files are not read."""
SHOWN = ("steps", "reward", "outcome", "validation", "fitness", "cpu_seconds", "steps_per_second", "value_loss")


def read_runs(folder: Path) -> list[dict[str, Any]]:
    """Descriptions of the runs in a folder, the most recently updated first."""
    try:
        runs = [describe(run) for run in folder.iterdir() if (run / "config.toml").is_file()]
    except OSError:
        return []
    return sorted(runs, key=lambda run: -float(run["updated"]))[:MOST_RUNS]


def read_curve(folder: Path, name: str) -> dict[str, Any]:
    """A run's description, the rows of its log, its baselines and its card."""
    known = {run["name"]: run for run in read_runs(folder)}
    if name not in known:
        raise UnknownNameError("run", name[:80], known, f"in {folder}")
    rows = []
    # A run that is training may have written its last line in part.
    for line in read_file(folder / name / "metrics.jsonl", LOG_BYTES).splitlines(keepends=True):
        try:
            row = json.loads(line) if line.endswith("\n") else {}
        except (ValueError, RecursionError):
            continue
        numbers = {key: row[key] for key in SHOWN if is_finite(row.get(key))} if isinstance(row, dict) else {}
        if numbers:
            rows.append(numbers)
    every = -(-len(rows) // MOST_ROWS) or 1
    chosen = rows[::every]
    if rows and chosen[-1] is not rows[-1]:
        chosen.append(rows[-1])
    summary, card = (read_json(folder / name / file) for file in ("summary.json", "card.json"))
    return {**known[name], "rows": chosen, "baselines": baselines_of(summary), "card": card or None}


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in a file; empty if there is none."""
    try:
        data = json.loads(read_file(path, CONFIG_BYTES), parse_constant=lambda name: None)
    except (ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def baselines_of(summary: dict[str, Any]) -> dict[str, float]:
    """{baseline: mean} from the validation at the end of a run; empty before."""
    baselines = summary.get("baselines")
    rows = baselines.items() if isinstance(baselines, dict) else ()
    return {name: each["mean"] for name, each in rows if isinstance(each, dict) and is_finite(each.get("mean"))}


def train_command(folder: Path) -> str:
    """Command that trains a first run into the folder, with this installation of muster."""
    program = "muster" if shutil.which("muster") else f"{shlex.quote(sys.executable)} -m muster"
    return f"{program} train rescue:2x4 --minutes 1 --out {shlex.quote(str(folder / 'first'))}"


def describe(run: Path) -> dict[str, Any]:
    """Description of a run from its config; entries of a wrong type are empty."""
    try:
        settings = tomllib.loads(read_file(run / "config.toml", CONFIG_BYTES))
    except (ValueError, RecursionError):
        settings = {}
    env = next((settings[key] for key in ("env", "on", "envs") if settings.get(key)), "")
    env = env[0] if isinstance(env, list) else env
    inference = settings.get("inference", "")
    method = inference.get("method", "") if isinstance(inference, dict) else inference
    log, best, seed = run / "metrics.jsonl", run / "best.safetensors", settings.get("seed")
    return {
        "name": run.name,
        "env": env if isinstance(env, str) else "",
        "learner": str(settings.get("learner", "")),
        "inference": str(method),
        "seed": seed if is_finite(seed) else None,
        "finished": (run / "summary.json").exists(),
        "updated": log.stat().st_mtime if log.exists() else 0.0,
        "policy": str(best) if best.is_file() else "",
    }


def read_file(path: Path, most: int) -> str:
    """The text of a regular file of at most `most` bytes; empty if there is none."""
    try:
        return path.read_text("utf-8", "replace") if path.is_file() and path.stat().st_size <= most else ""
    except OSError:
        return ""


def is_finite(value: Any) -> bool:
    """Whether a value is a finite number."""
    return isinstance(value, int | float) and abs(value) < float("inf")
