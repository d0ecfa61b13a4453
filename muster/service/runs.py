"""The runs in a folder, for whoever watches them learn."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

from muster.errors import UnknownNameError

MOST_RUNS = 200
MOST_ROWS = 1500
"""Rows of a curve that are sent; of more, evenly chosen ones."""
SHOWN = ("steps", "reward", "outcome", "validation", "fitness", "cpu_seconds", "steps_per_second", "value_loss")


def runs_in(folder: Path) -> list[dict[str, Any]]:
    """What each run in a folder is, the one written to last first."""
    found = []
    if folder.is_dir():
        for place in folder.iterdir():
            if (place / "config.toml").is_file():
                found.append(_describe(place))
    return sorted(found, key=lambda run: -float(run["updated"]))[:MOST_RUNS]


def curve_of(folder: Path, name: str) -> dict[str, Any]:
    """A run with the rows of its log."""
    known = {run["name"]: run for run in runs_in(folder)}
    if name not in known:
        raise UnknownNameError(f"run in {folder}", name[:80], known)
    rows = []
    try:
        with (folder / name / "metrics.jsonl").open(encoding="utf-8") as file:
            for line in file:
                # The last line may still be being written.
                if line.endswith("\n"):
                    row = json.loads(line)
                    rows.append({key: row[key] for key in SHOWN if isinstance(row.get(key), int | float)})
    except (OSError, ValueError):
        pass
    every = -(-len(rows) // MOST_ROWS) or 1
    chosen = rows[::every]
    if rows and chosen[-1] is not rows[-1]:
        chosen.append(rows[-1])
    return {**known[name], "rows": chosen}


def _describe(place: Path) -> dict[str, Any]:
    try:
        settings = tomllib.loads((place / "config.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        settings = {}
    env = settings.get("env") or (settings.get("on") or settings.get("envs") or [""])[0]
    log, best = place / "metrics.jsonl", place / "best.safetensors"
    inference = settings.get("inference", {})
    return {
        "name": place.name,
        "env": str(env),
        "learner": str(settings.get("learner", "")),
        "inference": str(inference.get("method", "") if isinstance(inference, dict) else inference),
        "seed": settings.get("seed"),
        "finished": (place / "summary.json").exists(),
        "updated": log.stat().st_mtime if log.exists() else 0.0,
        "policy": str(best) if best.exists() else "",
    }
