"""Policy names: a baseline of the environment, a shipped policy, or a path to a run or model file."""

from __future__ import annotations

from muster.envs.base import BatchEnv
from muster.errors import InputError, UnknownNameError
from muster.policy import Policy


def resolve(name: str, env: BatchEnv, noise: bool = False) -> Policy:
    """The policy that `name` means for `env`; `noise` leaves a learned policy's exploration on."""
    baselines = env.baselines()
    if name in baselines:
        if noise:
            raise InputError(f"noise is for learned policies; {name!r} is a fixed rule of {env.name}")
        return baselines[name](env)
    learned = load_learned(name, env, noise)
    if learned is None:
        raise UnknownNameError(f"policy for {env.name}", name, [*baselines, *shipped()])
    return learned


def load_learned(name: str, env: BatchEnv, noise: bool) -> Policy | None:
    """The learned policy of that name or path, made for `env`; None if there is none."""
    del name, env, noise
    return None


def shipped() -> dict[str, str]:
    """The learned policies that come with muster, with a line on each."""
    return {}
