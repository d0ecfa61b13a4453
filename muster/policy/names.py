"""Policy names: a baseline of the environment, a shipped policy, or a path to a run or model file."""

from __future__ import annotations

import json
import os
from pathlib import Path

from muster.envs.base import BatchEnv, Policy
from muster.envs.registry import kind_of, rules
from muster.errors import InputError, UnknownNameError, suggestion
from muster.policy.files import load_policy
from muster.policy.learned import LearnedPolicy

SHIPPED = Path(__file__).parent / "shipped"


def resolve(policy: str | Policy, env: BatchEnv, noise: bool = False) -> Policy:
    """The policy that a name means for `env`, or the object itself, made ready for it.

    `noise` leaves a learned policy's exploration on. An object is not changed: who plays is a copy.
    """
    if isinstance(policy, str):
        baselines = env.baselines()
        if policy in baselines:
            if noise:
                raise InputError(f"noise is for learned policies; {policy!r} is a fixed rule of {env.name}")
            return baselines[policy](env)
        if not _is_learned(policy):
            raise UnknownNameError(f"policy for {env.name}", policy, [*baselines, *shipped()])
        policy = load(policy).variant(name=policy)
    if isinstance(policy, LearnedPolicy):
        adapt(policy, env)
        return policy.variant(noisy=noise or policy.noisy)
    if noise:
        raise InputError(f"noise is for learned policies; {policy.name!r} is none")
    return policy


def adapt(policy: LearnedPolicy, env: BatchEnv) -> None:
    """Make `env` show what the policy reads; refuse a world of another kind or with other features."""
    trained_on = str(policy.header.get("env", env.name))
    if kind_of(trained_on) != kind_of(env.name):
        raise InputError(f"{policy.name} was trained on {trained_on}; it cannot play {env.name}")
    env.show(pair_features=policy.spec.pair_width > 0, planes=policy.spec.kind == "pem")
    policy.spec.view(env.observe(), env.name)


def shipped() -> dict[str, str]:
    """The learned policies that come with muster, with a line on each."""
    index = SHIPPED / "index.json"
    return dict(json.loads(index.read_text())) if index.exists() else {}


def load(policy: str | Path) -> LearnedPolicy:
    """A shipped policy by name, or the policy in a file or in the folder of a run."""
    name = str(policy)
    if name in shipped():
        return load_policy(SHIPPED / f"{name}.safetensors")
    if not _is_learned(name):
        raise InputError(_unknown(name))
    return load_policy(policy)


def _is_learned(name: str) -> bool:
    return name in shipped() or Path(name).exists() or os.sep in name or name.endswith(".safetensors")


def _unknown(name: str) -> str:
    """Why no learned policy can be had by that name."""
    fixed = rules()
    if name in fixed:
        return f"{name!r} is a fixed rule and needs its world: muster.evaluate({name!r}, {fixed[name]!r})"
    return f"no learned policy {name!r}{suggestion(name, shipped())}; a file or folder of a run is named by its path"
