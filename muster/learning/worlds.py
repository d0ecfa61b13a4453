"""The environments of a run, showing what its model reads."""

from __future__ import annotations

from muster.envs.registry import make
from muster.envs.vector import BatchEnv
from muster.learning.settings import TrainSettings


def prepare_env(settings: TrainSettings, name: str, n_envs: int, critic: bool = True) -> BatchEnv:
    """An environment of the settings, showing what the model reads and, unless it only plays, the critic too."""
    env = make(name, n_envs, settings.seed)
    conv = settings.model == "pem" or (critic and settings.learner == "a2c" and settings.a2c.critic == "conv")
    env.show(pair_features=settings.pair_features, planes=conv)
    return env
