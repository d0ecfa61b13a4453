"""Model, learner and inference of a run that leaves them open: by what its environment shows.

With a prior a linear correction of it, learned by evolution strategies, wins on what new users bring (docs/choose.md);
without one, and in the environments that come with muster, a direct model learned by PPO is the better start.
"""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

from muster.custom import is_custom
from muster.envs.registry import BUILT_IN, kind_of, make
from muster.errors import MusterError
from muster.models import ModelKind
from muster.models.custom import needs_torch
from muster.policy.names import load


class Shown(NamedTuple):
    """What a custom environment shows."""

    prior: bool
    task_pairs: bool
    """Whether it tells anything of two tasks: features or a prior."""


def shown_by(env: str) -> Shown:
    """What to choose by; nothing for environments that come with muster, and for those that cannot be made."""
    with suppress(MusterError):
        if kind_of(env) not in BUILT_IN:
            seen = make(env).observe()
            of_two = seen.task_prior is not None or seen.task_pair_features.shape[-1] > 0
            return Shown(seen.prior is not None, of_two)
    return Shown(False, False)


def model_for(env: str, from_policy: str | None) -> ModelKind:
    """That of the policy that the run goes on from; else linear where there is a prior to correct."""
    if from_policy is not None:
        with suppress(MusterError):
            return "linear" if load(from_policy).spec.kind == "linear" else "dm"
        return "dm"
    return "linear" if shown_by(env).prior else "dm"


def is_plain(model: str) -> bool:
    """Whether a model is a custom one that is no torch module: only evolution strategies need no gradients."""
    return is_custom(model) and not needs_torch(model)


def inference_for(env: str, from_policy: str | None) -> str:
    """Of a linear model: quad only where the environment tells something of two tasks."""
    if from_policy is not None:
        with suppress(MusterError):
            return load(from_policy).inference.method
    return "quad" if shown_by(env).task_pairs else "lp"
