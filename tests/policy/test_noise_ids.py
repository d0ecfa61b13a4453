from __future__ import annotations

import numpy as np

from muster.envs.env import Observation
from muster.envs.padding import observation_of
from muster.policy.noise import ScoreNoise
from muster.policy.settings import NoiseSettings


def seen(agents: list[int] | None, tasks: list[int] | None):
    return observation_of([Observation(np.zeros((2, 1)), np.zeros((3, 1)), agent_ids=agents, task_ids=tasks)])


def test_noise_stays_with_who_stays_and_starts_afresh_for_newcomers():
    noise = ScoreNoise(NoiseSettings(sigma=1.0, correlated_steps=4), 1, 2, 3, task_scores=True)
    rng = np.random.default_rng(0)
    for _ in range(3):
        noise.track(seen([0, 1], [5, 6, 7]))
        noise.add((np.zeros((1, 2, 3), np.float32), np.zeros((1, 3, 3), np.float32)), rng.standard_normal)
    before = [noise.h.total.copy(), noise.g.total.copy()]
    assert (before[0] != 0).all()
    noise.track(seen([0, 2], [5, 9, 7]))
    kept_h = np.array([[True, False, True], [False, False, False]])
    kept_g = np.outer([True, False, True], [True, False, True])
    for part, old, kept in zip((noise.h, noise.g), before, (kept_h, kept_g), strict=True):
        assert np.array_equal(part.total[0], np.where(kept, old[0], 0))
        assert not part.queue[:, 0][:, ~kept].any()


def test_without_ids_nothing_is_forgotten():
    noise = ScoreNoise(NoiseSettings(sigma=1.0), 1, 2, 3, task_scores=False)
    noise.add((np.zeros((1, 2, 3), np.float32), None), np.random.default_rng(0).standard_normal)
    before = noise.h.total.copy()
    noise.track(seen(None, None))
    assert np.array_equal(noise.h.total, before)
