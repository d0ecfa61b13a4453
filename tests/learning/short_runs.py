"""Runs of a second or two, and what of them must not differ."""

import json

import numpy as np

from muster.learning.settings import ESSettings, PPOSettings, TrainSettings


def small(learner: str, steps: int) -> TrainSettings:
    pem, linear = learner == "pem", learner == "linear"
    return TrainSettings(
        env="rescue:2x3,grid=5",
        learner="a2c" if pem else "es" if linear else learner,
        model=learner if pem or linear else "dm",
        steps=steps // 4 if pem else steps,
        log_every=500,
        evaluate_episodes=4,
        num_envs=0 if linear or learner == "es" else 16,
        ppo=PPOSettings(rollout_length=8),
        es=ESSettings(pairs=2, episodes=4),
    )


def rows_without_times(folder):
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in row.items() if k not in ("cpu_seconds", "steps_per_second")} for row in rows]


def assert_same_end(one, other):
    """Everything that two runs would go on from is the same, bit for bit."""
    first, second = final_state(one), final_state(other)
    assert first.keys() == second.keys()
    for name in first:
        assert np.array_equal(first[name], second[name]), name


def final_state(folder):
    from safetensors.numpy import load_file

    return load_file(folder / "checkpoint.safetensors")
