"""What agents and tasks know of each other before anybody speaks, for the context model (muster.models.context)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from muster.data import BatchObservation, Bools, Floats32
from muster.models.context import AGENT, TASK, measured
from muster.models.spec import ModelSpec

LEAST_SPACING = np.float32(1e-3)
"""In units of distance of an environment that does not say what its shortest one is."""


class Relation(NamedTuple):
    """Of X listeners and Y speakers."""

    features: Floats32
    """[B, X, Y, R]"""
    distance: Floats32
    """[B, X, Y] in units of s; 0 where there is none."""
    heard: Bools
    """[B, X, Y] True where both live, are not one and the same, and may have to do with each other."""

    def turned(self) -> Relation:
        """The same for who was the speaker."""
        return Relation(*(np.ascontiguousarray(part.swapaxes(1, 2)) for part in self))  # type: ignore[arg-type]


def relate(spec: ModelSpec, seen: BatchObservation) -> dict[tuple[str, str], Relation]:
    """Relations of every kind of listener and speaker, in what is seen."""
    features = {AGENT: seen.agent_features, TASK: seen.task_features}
    alive = {AGENT: seen.agent_alive, TASK: seen.task_alive}
    prior = seen.prior if spec.reads_prior else None
    own = {
        (AGENT, TASK): (seen.pair_features, prior),
        (TASK, TASK): (seen.task_pair_features, seen.task_prior if spec.task_prior else None),
        (AGENT, AGENT): (None, None),
    }
    found: dict[tuple[str, str], Relation] = {}
    spacing: Floats32 | None = None
    for (listener, speaker), (declared, prior) in own.items():
        heard = alive[listener][:, :, None] & alive[speaker][:, None, :]
        if listener == speaker:
            heard &= ~np.eye(heard.shape[1], dtype=np.bool_)
        elif seen.allowed is not None:
            heard &= seen.allowed
        parts: list[Floats32] = []
        far: Floats32 | None = None
        if declared is not None and declared.shape[-1]:
            parts.append(declared)
            far = declared[..., spec.distances[0 if listener == AGENT else 1]] if spec.distances else None
        if spec.places and far is None:
            columns = list(spec.places)
            apart = features[speaker][:, None, :, columns] - features[listener][:, :, None, columns]
            parts += [apart, np.abs(apart)]
            far = np.sqrt((apart * apart).sum(-1))
        distance = np.zeros(heard.shape, np.float32)
        if far is not None and measured(spec, listener, speaker):
            if spacing is None:
                spacing = _spacing(spec, far, heard)
            np.divide(far, spacing[:, None, None], out=distance, where=heard)
            parts += [distance[..., None], np.exp(-distance)[..., None]]
        if prior is not None:
            parts.append(np.asarray(prior, np.float32)[..., None])
        together = np.concatenate(parts, axis=-1) if parts else np.zeros((*heard.shape, 0), np.float32)
        together[~heard] = 0.0
        found[listener, speaker] = Relation(together, distance, heard)
    found[TASK, AGENT] = found[AGENT, TASK].turned()
    return found


def _spacing(spec: ModelSpec, far: Floats32, heard: Bools) -> Floats32:
    """[B] s: the mean distance of the living agents to their nearest tasks, at least one unit."""
    nearest = np.where(heard, far, np.inf).min(axis=2, initial=np.inf)
    known = np.isfinite(nearest)
    mean = np.where(known, nearest, 0.0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    return np.maximum(mean, spec.distance_unit or LEAST_SPACING).astype(np.float32)
