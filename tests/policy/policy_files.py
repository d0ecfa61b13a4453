"""Policies with random numbers, as files: enough for whatever plays or lists policies."""

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
    """A direct model for `env` that nobody trained."""
    world = make(env, 1)
    world.show(pair_features=True, planes=False)
    spec = ModelSpec.of(world.observe(), "dm", method == "quad")
    parameters = init_parameters(spec, np.random.default_rng(seed))
    header = {"env": env, "seed": seed, "learner": "es", "steps": 1000 + seed, "cpu_minutes": 0.5}
    inference = InferenceSettings(method, assign_all=not world.idling)
    LearnedPolicy(path.stem.save(spec, parameters, inference, NoiseSettings(), header), path)
    return path
