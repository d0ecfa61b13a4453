"""The policies that are served, each made ready once."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from muster.assign.settings import Effort, Method
from muster.assign.solver import Solver
from muster.envs.features import FeatureNames
from muster.errors import InputError
from muster.evaluation.card import read_card
from muster.policy.learned import LearnedPolicy, features_of
from muster.policy.names import load, shipped


@dataclass(frozen=True, slots=True, eq=False)
class Served:
    """A policy and the names of what it reads."""

    name: str
    policy: LearnedPolicy
    features: FeatureNames

    def solver(self, method: Method | None = None, effort: Effort | None = None) -> Solver:
        """The policy's procedure, or another on its scores; with reasons, on one thread: the service has its own."""
        return _solver(self, method, effort)

    def described(self) -> dict[str, Any]:
        """What it is and reads, in short, and its card."""
        return {
            "policy": self.name,
            "env": self.policy.header.get("env"),
            **self.policy.facts(),
            "feature_names": self.features.as_dict(),
            "feature_hash": self.features.hash,
            "card": _card(self.name),
        }


def serve_policies(names: Sequence[str]) -> dict[str, Served]:
    """Those named; with no names, all that come with muster and need no torch."""
    chosen = list(names) or [name for name in shipped() if not name.endswith("-pem")]
    served: dict[str, Served] = {}
    for name in chosen:
        policy = load(name).variant(name=name)
        if policy.spec.kind == "pem":
            raise InputError(
                f"{name} is a pem policy, which reads planes; a service serves direct and context models (dm, context)"
            )
        served[name] = Served(name, policy, features_of(policy))
    return served


@lru_cache(maxsize=1024)
def _card(name: str) -> dict[str, Any]:
    return read_card(name)


@lru_cache(maxsize=1024)
def _solver(served: Served, method: Method | None, effort: Effort | None) -> Solver:
    changes = {name: value for name, value in (("method", method), ("effort", effort)) if value is not None}
    inference = served.policy.with_inference(**changes).inference
    return dataclasses.replace(Solver.of(inference, threads=1), certify=True)
