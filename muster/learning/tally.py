"""What an update has to say: figures by episode, of each environment and of all, and figures by update."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from muster.data import Floats, Ints
from muster.envs.vector import BatchEnv

Figures = dict[str, float]
Values = dict[str, Floats]
"""Figures by episode: one number for each."""

# Figures of an update as a whole; all others are means over the episodes that ended in it.
BY_UPDATE = (
    *("value_loss", "policy_loss", "policy_gradient", "advantage", "entropy"),
    *("fitness", "fitness_best", "loss", "agreement", "update_seconds", "idle", "messages", "message_bytes"),
)
TAKEN = (
    *("steps", "updates", "episodes", "reward", "outcome", "validation", "collapses", "remark", "cpu_seconds"),
    *("steps_per_second", *BY_UPDATE),
)
"""What the log says of a run under these names, no environment's figure replaces."""


class Ended:
    """The episodes of one environment that ended during an update."""

    def __init__(self) -> None:
        self._found: list[Values] = []
        self._rewards: list[Floats] = []
        self.episodes = 0

    def add(self, env: BatchEnv, slots: Ints, reward: Floats) -> None:
        """The episodes in these slots are over; `reward` [B] is the sum of their rewards."""
        if not len(slots):
            return
        self.episodes += len(slots)
        self._rewards.append(reward[slots])
        figures = {"outcome": env.outcome(), "reward": reward} | own_figures(env)
        self._found.append({name: values[slots] for name, values in figures.items()})

    def values(self) -> Values:
        """Each figure of all of them, in the order in which they ended; NaN where one does not have it."""
        names = {name: None for values in self._found for name in values}
        return {name: np.concatenate([_or_nan(values, name) for values in self._found]) for name in names}

    def rewards(self) -> Floats:
        """Their sums of rewards, in that order."""
        return np.concatenate([np.zeros(0), *self._rewards])

    def metrics(self) -> Figures:
        """Their number, and the mean of each figure."""
        return averaged(self.values(), self.episodes)


def own_figures(env: BatchEnv) -> Values:
    """An environment's own figures [B] by the names that the log has for them."""
    found = {name.replace("/", "_"): values for name, values in env.metrics().items()}
    return {f"world_{name}" if name in TAKEN else name: values for name, values in found.items()}


def _or_nan(values: Values, name: str) -> Floats:
    return values.get(name, np.full(len(values["reward"]), np.nan))


def averaged(values: Values, episodes: int) -> Figures:
    """The number of episodes, and the mean of each figure over those that have it."""
    known = {name: found[np.isfinite(found)] for name, found in values.items()}
    means = {name: float(found.mean()) for name, found in known.items() if len(found)}
    return {"episodes": float(episodes), "outcome": float("nan"), "reward": float("nan"), **means}


def combine(names: Sequence[str], worlds: Sequence[Figures]) -> Figures:
    """Figures of a run's envs in one: of one env as they are; of several by name, and means over the envs."""
    if len(worlds) == 1:
        return dict(worlds[0])
    found: Figures = {"episodes": sum(figures["episodes"] for figures in worlds)}
    for name, figures in zip(names, worlds, strict=True):
        found |= {f"{key}/{name}": value for key, value in figures.items()}
    return found


def summarise(window: Sequence[Figures]) -> Figures:
    """One row for several updates: figures by episode weighed by the episodes, of several environments averaged.

    An average is of all envs or is left out: were it of those in which an episode happened to end, rows could not be
    compared, and the best would be one that left the hardest environment out.
    """
    keys = {key: None for figures in window for key in figures}
    row: Figures = {"episodes": sum(figures["episodes"] for figures in window)}
    for key in keys:
        name, slash, world = key.partition("/")
        if name == "episodes":
            continue
        values = np.array([figures.get(key, np.nan) for figures in window])
        known = np.isfinite(values)
        weights = None
        if name not in BY_UPDATE:
            ended = np.array([figures.get(f"episodes{slash}{world}", 0.0) for figures in window])
            known &= ended > 0
            weights = ended[known]
        if known.any():
            row[key] = float(np.average(values[known], weights=weights))
    of_worlds: dict[str, list[float]] = {}
    for key, value in row.items():
        name, slash, _ = key.partition("/")
        if slash:
            of_worlds.setdefault(name, []).append(value)
    worlds = sum(key.startswith("episodes/") for key in keys)
    # Environments count alike, however many episodes ended in each.
    return {name: float(np.mean(values)) for name, values in of_worlds.items() if len(values) == worlds} | row
