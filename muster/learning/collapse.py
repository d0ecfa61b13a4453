"""Noticing that a run has lost what it had learned: all of it, rewards far below their best or everybody idle; or a
little of it, for longer. Once a policy is fair, advantages are mostly chance, and what is wrong in a likelihood can
lead away from what was good: too slowly to be seen in a few updates, and in no hurry to come back.
"""

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
LONG = 4 * WINDOW
"""Updates of the mean that tells a decline."""
LESS = 0.1
"""By how many such deviations it has to be below the best of its kind,"""
SURE = 6.5
"""and by how many standard errors of its own."""


class Watch:
    """Follows the rewards of a run, update by update."""

    def __init__(self) -> None:
        self.recent: list[list[float]] = []
        """Reward, its deviation and the number of episodes of the last updates in which some ended."""
        self.best: float | None = None
        self.best_long: float | None = None
        self.spread = 0.0
        self.below = self.idle = self.collapses = 0

    def see(self, reward: float, spread: float, episodes: float, idle: float) -> Literal["best", "collapsed", ""]:
        """What the update just made says; `idle` is the share of agents that took nothing although they could."""
        self.idle = self.idle + 1 if idle > IDLE else 0
        if np.isfinite(reward) and np.isfinite(spread):
            self.recent = [*self.recent[1 - LONG :], [reward, spread, episodes]]
        if len(self.recent) < WINDOW:
            return ""
        declined = self._declined()
        rewards, spreads, weights = np.array(self.recent[-WINDOW:]).T
        mean, deviation = float(np.average(rewards, weights=weights)), float(np.average(spreads, weights=weights))
        if self.best is None or mean > self.best:
            self.best, self.spread, self.below = mean, deviation, 0
            return "best"
        self.below = self.below + 1 if mean < self.best - FAR * self.spread else 0
        all_idle = self.idle >= LASTING // 4 and mean <= self.best - 0.1 * self.spread
        if self.below < LASTING and not all_idle and not declined:
            return ""
        self.collapses += 1
        self.recent, self.below, self.idle = [], 0, 0
        return "collapsed"

    def _declined(self) -> bool:
        """Whether the mean over many updates is clearly below what it was at its best."""
        if len(self.recent) < LONG:
            return False
        rewards, _, weights = np.array(self.recent).T
        mean = float(np.average(rewards, weights=weights))
        if self.best_long is None or mean > self.best_long:
            self.best_long = mean
        clearly = max(LESS, SURE / float(np.sqrt(weights.sum()))) * self.spread
        return mean < self.best_long - clearly

    def get_state(self) -> dict[str, Any]:
        """Plain values to go on from."""
        return dict(vars(self))

    def set_state(self, plain: dict[str, Any]) -> None:
        """Go on from what `get_state` returned."""
        vars(self).update(plain)
