"""Policy names: a baseline of the environment, `prior`, a shipped policy, or a path to a run or model file."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from muster.data import BatchObservation, Ints
from muster.envs.registry import all_baselines, kind_of
from muster.envs.vector import BatchEnv, Policy
from muster.errors import InputError, UnknownNameError, suggestion
from muster.policy.learned import PRIOR, LearnedPolicy, adapt, prior_policy
from muster.policy.lookahead import LookAhead

SHIPPED = Path(__file__).parent / "shipped"


def resolve(policy: str | Path | Policy, env: BatchEnv, noise: bool = False) -> Policy:
    """The policy of a name, path or object, adapted to `env`.

    With `noise` a learned policy acts with its exploration noise. An object is copied, not changed.
    """
    if isinstance(policy, Path):
        policy = str(policy)
    if isinstance(policy, str):
        baselines = env.baselines()
        if policy in baselines:
            if noise:
                raise InputError(f"noise is for learned policies; {policy!r} is a baseline of {env.name}")
            return baselines[policy](env)
        if policy == PRIOR:
            if noise:
                raise InputError("noise is for learned policies; 'prior' learned nothing")
            return prior_policy(env)
        if not is_learned(policy):
            known = [*baselines, *([PRIOR] if env.observe().prior is not None else []), *shipped_for(env)]
            raise UnknownNameError("policy", policy, [*known, "the path of a run"], f"for {env.name}")
        policy = load(policy).variant(name=policy)
    if isinstance(policy, LearnedPolicy):
        adapt(policy, env)
        policy = policy.variant(noisy=noise or policy.noisy)
        return LookAhead(policy, env) if policy.rollouts else policy
    if isinstance(policy, type) or not all(hasattr(policy, name) for name in ("name", "act")):
        raise InputError(
            f"a policy is a name, a path or an object with a name and act(), got {policy!r:.80}; a function of your "
            "own, from an observation to an assignment, goes into baselines() of its environment"
        )
    if noise:
        raise InputError(f"noise is for learned policies, which {policy.name!r} is not")
    return policy if isinstance(policy, Policy) else ForeignPolicy(policy)


class ForeignPolicy(Policy):
    """Adapter of an object with a name, act() and further methods of `Policy` that is not derived from it."""

    def __init__(self, policy: Any) -> None:
        self.name: str = policy.name
        self._policy = policy
        for method in ("reset", "actions", "get_memory", "set_memory", "replan", "expected_return"):
            if hasattr(policy, method):
                setattr(self, method, getattr(policy, method))

    def act(self, observation: BatchObservation) -> Ints:
        """As the object decides."""
        return np.asarray(self._policy.act(observation))


@cache
def shipped() -> dict[str, str]:
    """Policies that ship with muster, with a line on each."""
    return dict(json.loads((SHIPPED / "index.json").read_text()))


def shipped_for(env: BatchEnv) -> list[str]:
    """Names of the shipped policies for environments of this kind."""
    return [name for name in shipped() if name.startswith(f"{kind_of(env.name)}-")]


def load(policy: str | Path) -> LearnedPolicy:
    """A shipped policy by name, or the policy in a file or in the folder of a run."""
    name = str(policy)
    if name in shipped():
        return LearnedPolicy.load(SHIPPED / f"{name}.safetensors")
    if not is_learned(name):
        raise InputError(_unknown(name))
    return LearnedPolicy.load(policy)


def is_learned(name: str) -> bool:
    """Whether the name is that of a shipped policy, or of a file or folder."""
    return name in shipped() or Path(name).exists() or os.sep in name or name.endswith(".safetensors")


def _unknown(name: str) -> str:
    """Error message for a name that is no learned policy's."""
    fixed = all_baselines()
    if name in fixed:
        return f"{name!r} is a baseline and needs its environment: muster.evaluate({name!r}, {fixed[name]!r})"
    near = suggestion(name, shipped())
    told = near if "mean" in near else "; muster policies lists those that ship"
    return f"no learned policy {name!r}, nor a run or .safetensors file at that path{told}"
