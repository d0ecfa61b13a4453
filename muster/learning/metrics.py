"""Metrics of an update: by episode, of each environment and of all; and by update."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from muster.data import Floats
from muster.envs.vector import BatchEnv

Metrics = dict[str, float]
EpisodeMetrics = dict[str, Floats]
"""By name, [E] one number for each episode."""

# Metrics of an update as a whole; all others are means over the episodes that ended in it.
BY_UPDATE = (
    *("value_loss", "policy_loss", "policy_gradient", "advantage", "entropy"),
    *("fitness", "fitness_best", "loss", "agreement", "update_seconds", "idle", "messages", "message_bytes"),
)
RESERVED = (
    *("steps", "updates", "episodes", "reward", "outcome", "validation", "rollbacks", "remark", "cpu_seconds"),
    *("steps_per_second", *BY_UPDATE),
)
"""Names of the log that no metric of an environment replaces."""


def episode_metrics(env: BatchEnv, reward: Floats) -> EpisodeMetrics:
    """Metrics [B] of the episodes in all slots under their names in the log; those of ended episodes are final.

    `reward` [B] is the undiscounted return so far.
    """
    metrics = {"outcome": env.outcome(), "reward": reward}
    for name, values in env.metrics().items():
        plain = name.replace("/", "_")
        metrics[f"env_{plain}" if plain in RESERVED else plain] = values
    return metrics


def mean_metrics(values: EpisodeMetrics, episodes: int) -> Metrics:
    """The number of episodes, and the mean of each metric over those that have it."""
    finite = {name: array[np.isfinite(array)] for name, array in values.items()}
    means = {name: float(array.mean()) for name, array in finite.items() if len(array)}
    return {"episodes": float(episodes), "outcome": float("nan"), "reward": float("nan"), **means}


def combine(envs: Sequence[BatchEnv], by_env: Sequence[Metrics]) -> Metrics:
    """Metrics of all environments of a run: of one as they are, of several under metric/environment."""
    if len(by_env) == 1:
        return dict(by_env[0])
    combined: Metrics = {"episodes": sum(metrics["episodes"] for metrics in by_env)}
    for env, metrics in zip(envs, by_env, strict=True):
        combined |= {f"{key}/{env.name}": value for key, value in metrics.items()}
    return combined


def summarise(window: Sequence[Metrics]) -> Metrics:
    """One row of the log for several updates: episode metrics weighted by episodes, others averaged over updates.

    The mean over environments is of all or is left out: rows with a mean over those in which an episode happened to end
    could not be compared, and the best row would be one without the hardest environment.
    """
    keys = {key: None for metrics in window for key in metrics}
    row: Metrics = {"episodes": sum(metrics["episodes"] for metrics in window)}
    for key in keys:
        name, slash, env = key.partition("/")
        if name == "episodes":
            continue
        values = np.array([metrics.get(key, np.nan) for metrics in window])
        known = np.isfinite(values)
        weights = None
        if name not in BY_UPDATE:
            ended = np.array([metrics.get(f"episodes{slash}{env}", 0.0) for metrics in window])
            known &= ended > 0
            weights = ended[known]
        if known.any():
            row[key] = float(np.average(values[known], weights=weights))
    by_name: dict[str, list[float]] = {}
    for key, value in row.items():
        name, slash, _ = key.partition("/")
        if slash:
            by_name.setdefault(name, []).append(value)
    envs = sum(key.startswith("episodes/") for key in keys)
    # Environments count alike, however many episodes ended in each.
    return {name: float(np.mean(values)) for name, values in by_name.items() if len(values) == envs} | row
