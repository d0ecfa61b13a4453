"""Policies with random numbers, as files: enough for whatever plays or lists policies."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from muster.envs.registry import make
from muster.inference.settings import InferenceSettings, Method
from muster.policy.files import save_policy
from muster.policy.learned import LearnedPolicy
from muster.policy.settings import NoiseSettings
from muster.scoring.direct import init_parameters
from muster.scoring.spec import ModelSpec


def write_random_policy(path: Path, env: str, method: Method = "lp", seed: int = 0) -> Path:
    """A direct model for `env` that nobody trained."""
    world = make(env, 1)
    world.show(pair_features=True, planes=False)
    spec = ModelSpec.of(world.observe(), "dm", method == "quad")
    parameters = init_parameters(spec, np.random.default_rng(seed))
    header = {"env": env, "seed": seed, "learner": "es", "steps": 1000 + seed, "cpu_minutes": 0.5}
    inference = InferenceSettings(method, forced=not world.idling)
    save_policy(LearnedPolicy(path.stem, spec, parameters, inference, NoiseSettings(), header), path)
    return path
