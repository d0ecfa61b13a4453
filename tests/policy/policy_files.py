"""Policies with random weights, as files: enough for tests that evaluate or list policies."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from muster.assign.settings import InferenceSettings, Method
from muster.envs.registry import make
from muster.models.direct import init_parameters
from muster.models.spec import ModelSpec
from muster.policy.learned import LearnedPolicy
from muster.policy.settings import NoiseSettings


def write_random_policy(path: Path, env: str, method: Method = "lp", seed: int = 0) -> Path:
    """A direct model for `env` with random weights."""
    batch_env = make(env, 1)
    batch_env.show(pair_features=True, planes=False)
    spec = ModelSpec.of(batch_env.observe(), "dm", method == "quad")
    parameters = init_parameters(spec, np.random.default_rng(seed))
    header = {"env": env, "seed": seed, "learner": "es", "steps": 1000 + seed, "cpu_minutes": 0.5}
    inference = InferenceSettings(method, assign_all=not batch_env.idling)
    path.parent.mkdir(parents=True, exist_ok=True)
    LearnedPolicy(path.stem, spec, parameters, inference, NoiseSettings(), header).save(path)
    return path
