"""Noticing that a run has lost what it had learned: rewards far below their best for long, or everybody idle."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

WINDOW = 16
"""Updates that a mean reward is taken over."""
LASTING = 16
"""Updates that it has to stay far below its best; that everybody has to be idle, a quarter of them."""
FAR = 1.0
"""Far below: by this many standard deviations of an episode's reward at the best."""
IDLE = 0.99


class Watch:
    """Follows the rewards of a run, update by update."""

    def __init__(self) -> None:
        self.recent: list[list[float]] = []
        """Reward, its deviation and the number of episodes of the last updates in which some ended."""
        self.best: float | None = None
        self.spread = 0.0
        self.below = self.idle = self.collapses = 0

    def see(self, reward: float, spread: float, episodes: float, idle: float) -> Literal["best", "collapsed", ""]:
        """What the update just made says; `idle` is the share of agents that took nothing although they could."""
        self.idle = self.idle + 1 if idle > IDLE else 0
        if np.isfinite(reward) and np.isfinite(spread):
            self.recent = [*self.recent[1 - WINDOW :], [reward, spread, episodes]]
        if len(self.recent) < WINDOW:
            return ""
        rewards, spreads, weights = np.array(self.recent).T
        mean, deviation = float(np.average(rewards, weights=weights)), float(np.average(spreads, weights=weights))
        if self.best is None or mean > self.best:
            self.best, self.spread, self.below = mean, deviation, 0
            return "best"
        self.below = self.below + 1 if mean < self.best - FAR * self.spread else 0
        if self.below < LASTING and (self.idle < LASTING // 4 or mean > self.best - 0.1 * self.spread):
            return ""
        self.collapses += 1
        self.recent, self.below, self.idle = [], 0, 0
        return "collapsed"

    def get_state(self) -> dict[str, Any]:
        """Plain values to go on from."""
        return dict(vars(self))

    def set_state(self, plain: dict[str, Any]) -> None:
        """Go on from what `get_state` returned."""
        vars(self).update(plain)
