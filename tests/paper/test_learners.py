"""Learners side by side: whom the differences are from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from paper import learners


def test_differences_are_from_the_mean_of_the_linear_models_seeds(monkeypatch):
    small = replace(learners.ENVS["couriers"], episodes=6, larger=(6, 12, 4))
    monkeypatch.setitem(learners.ENVS, "couriers", small)
    cells = {(cell.size, cell.policy): cell for cell in learners.pair("couriers")}
    for size, episodes in (("home", 6), ("larger", 4)):
        linear, ppo, nearest = (cells[size, name] for name in ("linear", "ppo", "nearest"))
        assert nearest.episodes == episodes
        assert nearest.gains == {}
        assert set(linear.gains) == {"nearest"}
        seeds = [cell.mean for (at, _), cell in cells.items() if at == size and cell.learner == "linear" != cell.policy]
        assert len(seeds) == len(linear.seeds) == 5
        assert linear.mean == pytest.approx(np.mean(seeds))
        assert ppo.gains["linear"][0] == pytest.approx(ppo.mean - linear.mean)
        assert ppo.gains["nearest"][0] == pytest.approx(ppo.mean - nearest.mean)
