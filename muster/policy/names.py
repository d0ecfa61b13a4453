"""Policy names: a baseline of the environment, a shipped policy, or a path to a run or model file."""

from __future__ import annotations

import json
import os
from pathlib import Path

from muster.envs.base import BatchEnv, Policy
from muster.errors import InputError, UnknownNameError
from muster.policy.files import load_policy
from muster.policy.learned import LearnedPolicy

SHIPPED = Path(__file__).parent / "shipped"


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
    if name in shipped():
        policy = load_policy(SHIPPED / f"{name}.safetensors")
    elif Path(name).exists() or os.sep in name or name.endswith(".safetensors"):
        policy = load_policy(name)
        policy.name = name
    else:
        return None
    adapt(policy, env)
    return policy.with_noise() if noise else policy


def adapt(policy: LearnedPolicy, env: BatchEnv) -> None:
    """Make `env` show what the policy reads; refuse a world of another kind or with other features."""
    trained_on = str(policy.header.get("env", ""))
    if trained_on.partition(":")[0] != env.name.partition(":")[0]:
        raise InputError(f"{policy.name} was trained on {trained_on}; it cannot play {env.name}")
    env.show(pair_features=policy.spec.pair_width > 0, planes=policy.spec.kind == "pem")
    policy.spec.check(env.observe(), env.name)


def shipped() -> dict[str, str]:
    """The learned policies that come with muster, with a line on each."""
    index = SHIPPED / "index.json"
    return dict(json.loads(index.read_text())) if index.exists() else {}


def load(policy: str) -> LearnedPolicy:
    """A shipped policy by name, or the policy in a file or in the folder of a run."""
    return load_policy(SHIPPED / f"{policy}.safetensors" if policy in shipped() else policy)
