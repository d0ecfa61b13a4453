"""The policies that are served, each made ready once."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from muster.envs.features import FeatureNames
from muster.errors import InputError
from muster.inference.solver import Solver
from muster.policy.features import features_of
from muster.policy.learned import LearnedPolicy
from muster.policy.names import load, shipped


@dataclass(frozen=True, slots=True)
class Served:
    """A policy and the names of what it reads."""

    name: str
    policy: LearnedPolicy
    features: FeatureNames
    solver: Solver
    """The policy's procedure, with reasons, on one thread: the service has its own."""

    def card(self) -> dict[str, Any]:
        """What there is to know about it."""
        return {
            "policy": self.name,
            "env": self.policy.header.get("env"),
            **self.policy.facts(),
            "feature_names": self.features.as_dict(),
            "feature_hash": self.features.hash,
        }


def serve_policies(names: Sequence[str]) -> dict[str, Served]:
    """Those named; with no names, all that come with muster and need no torch."""
    chosen = list(names) or [name for name in shipped() if name.endswith("-dm")]
    served: dict[str, Served] = {}
    for name in chosen:
        policy = load(name).variant(name=name)
        if policy.spec.kind != "dm":
            raise InputError(
                f"{name} is a {policy.spec.kind} policy, which reads planes; a service serves direct models (dm)"
            )
        solver = dataclasses.replace(Solver.of(policy.inference, threads=1), certify=True)
        served[name] = Served(name, policy, features_of(policy), solver)
    return served
