"""Metrics of an update: by episode, of each environment and of all; and by update."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from muster.data import Floats, Ints
from muster.envs.vector import BatchEnv

Metrics = dict[str, float]
EpisodeMetrics = dict[str, Floats]
"""One number for each episode."""

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


class EndedEpisodes:
    """The episodes of one environment that ended during an update."""

    def __init__(self) -> None:
        self._found: list[EpisodeMetrics] = []
        self._rewards: list[Floats] = []
        self.episodes = 0

    def add(self, env: BatchEnv, slots: Ints, reward: Floats) -> None:
        """The episodes in these slots have ended; `reward` [B] is the sum of their rewards."""
        if not len(slots):
            return
        self.episodes += len(slots)
        self._rewards.append(reward[slots])
        found = {"outcome": env.outcome(), "reward": reward} | env_metrics(env)
        self._found.append({name: values[slots] for name, values in found.items()})

    def values(self) -> EpisodeMetrics:
        """Each metric of all of them, in the order in which they ended; NaN where one does not have it."""
        names = {name: None for values in self._found for name in values}
        return {name: np.concatenate([_or_nan(values, name) for values in self._found]) for name in names}

    def rewards(self) -> Floats:
        """Their sums of rewards, in that order."""
        return np.concatenate([np.zeros(0), *self._rewards])

    def mean(self) -> Metrics:
        """Their number, and the mean of each metric."""
        return mean_metrics(self.values(), self.episodes)


def env_metrics(env: BatchEnv) -> EpisodeMetrics:
    """An environment's own metrics [B] by the names that the log has for them."""
    found = {name.replace("/", "_"): values for name, values in env.metrics().items()}
    return {f"env_{name}" if name in RESERVED else name: values for name, values in found.items()}


def _or_nan(values: EpisodeMetrics, name: str) -> Floats:
    return values.get(name, np.full(len(values["reward"]), np.nan))


def mean_metrics(values: EpisodeMetrics, episodes: int) -> Metrics:
    """The number of episodes, and the mean of each metric over those that have it."""
    known = {name: found[np.isfinite(found)] for name, found in values.items()}
    means = {name: float(found.mean()) for name, found in known.items() if len(found)}
    return {"episodes": float(episodes), "outcome": float("nan"), "reward": float("nan"), **means}


def combine(envs: Sequence[BatchEnv], found: Sequence[Metrics]) -> Metrics:
    """Metrics of a run's environments in one: of one environment as they are; of several by name."""
    if len(found) == 1:
        return dict(found[0])
    combined: Metrics = {"episodes": sum(metrics["episodes"] for metrics in found)}
    for env, metrics in zip(envs, found, strict=True):
        combined |= {f"{key}/{env.name}": value for key, value in metrics.items()}
    return combined


def summarise(window: Sequence[Metrics]) -> Metrics:
    """One row for several updates: metrics by episode weighted by the episodes, those of several environments averaged.

    An average is over all environments or is left out: over those in which an episode happened to end, rows could not
    be compared, and the best would be one that left the hardest environment out.
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
