"""Pack films into short strings: integers, differences from step to step, zigzag varints, deflate, base64.

viewer/unpack.js undoes it in the opposite order. A field is an array [T + 1, K] of integers; a varint has the sign in
its lowest bit, and 7 bits to a byte, the lowest first.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from muster.data import Floats, Ints
from muster.envs.scene import Bounds, Stage, as_places
from muster.errors import InputError
from muster.evaluation.captions import caption, label, verdict
from muster.evaluation.replay import Film, Moment

FORMAT = "muster-film-1"
STEPS_ACROSS = 4096
"""Positions are rounded to the longer side of the box divided by this."""
FULL = 100
"""Health, loads and angles are stored in hundredths."""
MOST_LOAD = 9999
LONGEST_SECONDS = 12.0
"""Longer episodes are shown faster."""

Field = tuple[str, Ints]


def pack(films: Sequence[Film]) -> dict[str, Any]:
    """Films of the same episode by one policy each, as JSON values."""
    stage = films[0].moments[0].scene.stage
    box = bounds_of([moment for film in films for moment in film.moments])
    first = films[0].replay
    words = caption(first.env)
    steps = max(len(film.moments) for film in films) - 1
    return {
        "format": FORMAT,
        "env": first.env,
        "title": words.title,
        "about": words.about,
        "left": words.left,
        "unit": words.unit,
        "verdict": asdict(verdict([film.replay for film in films], [_ending(film) for film in films])),
        "seed": first.seed,
        "metric": first.metric,
        "seconds": min(films[0].seconds_per_step, LONGEST_SECONDS / max(steps, 1)),
        "agents": films[0].moments[0].agent_alive.size,
        "tasks": films[0].moments[0].task_alive.size,
        "stage": stage_json(stage, box),
        "films": [_film(film, box) for film in films],
    }


def stage_json(stage: Stage, box: Sequence[float]) -> dict[str, Any]:
    """The stage, which is the same in all moments, as JSON values."""
    return {
        "bounds": [round(float(side), 4) for side in box],
        "grid": stage.grid,
        "wraps": stage.wraps,
        "follows": stage.bounds is None and not stage.zones,
        "looks": [
            {"name": k.name, "shape": k.shape, "colour": k.colour, "size": k.size, "remains": k.remains}
            for k in stage.looks
        ],
        "zones": [
            {
                "corners": np.round(as_places("a zone", zone.corners), 4).tolist(),
                "shade": round(zone.shade, 3),
                "label": zone.label,
            }
            for zone in stage.zones
        ],
        "agent_names": list(stage.agent_names),
        "task_names": list(stage.task_names),
    }


def _ending(film: Film) -> str:
    """How an episode ended; for a battle, with the units left on both sides: "won after 51 decisions, 6 v 0"."""
    if film.replay.metric != "win_rate" or not caption(film.replay.env).left:
        return film.ending
    return f"{film.ending}, {film.moments[-1].agent_alive.sum()} v {film.moments[-1].task_alive.sum()}"


def _film(film: Film, box: Sequence[float]) -> dict[str, Any]:
    replay = film.replay
    fields = [*_fields(film, box), *_shots(film)]
    # Differences between rows; the first row unchanged.
    rows = [np.diff(field, axis=0, prepend=np.zeros_like(field[:1])) for _, field in fields]
    values = np.concatenate([row.reshape(-1) for row in rows])
    return {
        "policy": replay.policy,
        "label": label(replay.policy, replay.env),
        "ending": _ending(film),
        "outcome": replay.outcome,
        "truncated": replay.truncated,
        "rewards": [round(reward, 6) for reward in replay.rewards],
        "texts": [moment.scene.text for moment in film.moments],
        "fields": [[name, *field.shape] for name, field in fields],
        "data": base64.b64encode(zlib.compress(varints(values), 9)).decode("ascii"),
    }


def _fields(film: Film, box: Sequence[float]) -> list[Field]:
    """Fields with a value for each agent or task; those that the scenes lack are left out."""
    scenes = [moment.scene for moment in film.moments]
    n, m = film.moments[0].agent_alive.size, film.moments[0].task_alive.size
    fields = [
        ("agents", np.array([_whole_places(scene.agents, n, box) for scene in scenes])),
        ("tasks", np.array([_whole_places(scene.tasks, m, box) for scene in scenes])),
        ("agent_alive", np.array([moment.agent_alive for moment in film.moments], np.int64)),
        ("task_alive", np.array([moment.task_alive for moment in film.moments], np.int64)),
        ("assignment", np.vstack([np.maximum(film.replay.assignments, -1), np.full((1, n), -1)])),
        ("task_load", _with_end(np.clip(film.loads * FULL, 0, MOST_LOAD), m)),
        ("task_crowded", _with_end(film.crowded, m)),
    ]
    looks = len(scenes[0].stage.looks)
    for side, size in (("agent", n), ("task", m)):
        kinds = np.array([_row(getattr(scene, f"{side}_looks"), size, 1, f"{side}_looks") for scene in scenes])
        if kinds.size and not (kinds.min() >= 0 and kinds.max() < looks):
            raise InputError(f"{side}_looks of a scene name looks 0 to {looks - 1}, got {kinds.min()} to {kinds.max()}")
        fields.append((f"{side}_looks", kinds))
    optional = ("agent_health", "task_health", "agent_angles", "task_angles", "agent_load", "task_targets")
    for name in optional:
        if getattr(scenes[0], name) is not None:
            size = n if name.startswith("agent") else m
            unit = 1 if name == "task_targets" else FULL
            rows = [_row(getattr(scene, name), size, unit, name) for scene in scenes]
            fields.append((name, np.clip(np.array(rows), -1, MOST_LOAD)))
    if scenes[0].task_ends is not None:
        ends = [_whole_places(() if scene.task_ends is None else scene.task_ends, m, box) for scene in scenes]
        fields.append(("task_ends", np.array(ends)))
    if film.moments[0].task_ids is not None:
        ids = np.array([moment.task_ids for moment in film.moments])
        fields.append(("task_new", np.diff(ids, axis=0, prepend=ids[:1]) != 0))
    return [(name, np.asarray(array, np.int64)) for name, array in fields]


def _shots(film: Film) -> list[Field]:
    """Number of shots in each step [T + 1, 1], and all shots in one row."""
    each = [
        np.zeros((0, 3)) if moment.scene.shots is None else np.asarray(moment.scene.shots, np.float64).reshape(-1, 3)
        for moment in film.moments
    ]
    if not any(map(len, each)):
        return []
    shots = np.concatenate(each) * (1, 1, FULL)
    return [
        ("shot_counts", np.array([[len(some)] for some in each])),
        ("shots", np.round(shots).astype(np.int64).reshape(1, -1)),
    ]


def _with_end(rows: NDArray[Any], size: int) -> Ints:
    """[T + 1, size] integers, with zeros for the end, when nothing is assigned."""
    return np.vstack([np.round(rows).astype(np.int64), np.zeros((1, size), np.int64)])


def _whole_places(places: ArrayLike, size: int, box: Sequence[float]) -> Ints:
    """[2 size] positions as integer steps from the corner of the box; 0 for those without a position."""
    steps = np.zeros((size, 2))
    positions = as_places("places of a scene", places)
    steps[: len(positions)] = (positions - box[:2]) / step_of(box)
    return np.round(steps).astype(np.int64).reshape(-1)


def step_of(box: Sequence[float]) -> float:
    """Length of one step of packed positions, in the environment's unit."""
    return max(box[2] - box[0], box[3] - box[1]) / STEPS_ACROSS


def _row(values: ArrayLike | None, size: int, unit: int, name: str) -> Ints:
    """[size] integer multiples of 1/unit, padded with 0."""
    row = np.zeros(size)
    array = np.asarray(0 if values is None else values, np.float64)
    if array.ndim > 1 or array.size > size or not np.isfinite(array).all():
        raise InputError(f"{name} of a scene must be a finite number for each, got {values!r:.80}")
    row[: size if array.ndim == 0 else array.size] = array
    return np.round(row * unit).astype(np.int64)


def bounds_of(moments: Sequence[Moment]) -> Bounds:
    """Bounds of the stage, else a box round the positions of living agents and tasks, with a margin."""
    stage = moments[0].scene.stage
    if stage.bounds is not None:
        return stage.bounds
    positions = [np.zeros((0, 2))]
    for moment in moments:
        for places, alive in ((moment.scene.agents, moment.agent_alive), (moment.scene.tasks, moment.task_alive)):
            placed = as_places("places of a scene", places)
            positions.append(placed[alive[: len(placed)]])
    return around(np.concatenate(positions))


def around(places: Floats) -> Bounds:
    """A box round positions [K, 2], with a margin."""
    if not len(places):
        return 0.0, 0.0, 1.0, 1.0
    low, high = places.min(0), places.max(0)
    margin = 0.06 * float(max((high - low).max(), 1e-6))
    return float(low[0] - margin), float(low[1] - margin), float(high[0] + margin), float(high[1] + margin)


def varints(values: Ints) -> bytes:
    """Integers as varints: sign in the lowest bit, 7 bits to a byte, the highest bit set if more bytes follow."""
    rest = (values << 1) ^ (values >> 63)
    pieces, more = [], []
    while True:
        pieces.append(rest & 127)
        rest = rest >> 7
        more.append(rest > 0)
        if not more[-1].any():
            break
    # Keep a byte if it is the first, or if the one before has its highest bit set.
    counts = np.stack([np.ones(len(values), np.bool_), *more[:-1]], axis=1)
    rows = np.stack(pieces, axis=1) | (np.stack(more, axis=1) << 7)
    return rows.astype(np.uint8)[counts].tobytes()
