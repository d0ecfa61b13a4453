"""The policies that are served: their versions, the features that they read, and how they are replaced."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from muster.assign.settings import Effort, Method
from muster.assign.solver import Solver
from muster.custom import find, is_custom, split
from muster.data import BatchObservation, Floats32
from muster.envs.features import BLOCKS, FeatureNames
from muster.envs.registry import BUILT_IN, full_env, kind_of
from muster.errors import InputError, suggestion
from muster.evaluation.card import read_card
from muster.kernels import core
from muster.policy.learned import LearnedPolicy, features_of
from muster.policy.names import load, shipped
from muster.service.errors import RequestError, clip

VERSION_DIGITS = 12
FAR = 1.0
"""A feature is far out of range if it is outside by more than this share of the range's width."""


class OutOfRange(NamedTuple):
    """A feature outside of its range in training."""

    feature: str
    """kind.name"""
    warning: str
    far: bool


@dataclass(frozen=True, eq=False)
class Served:
    """A policy, the names of its features, and their ranges in training."""

    name: str
    policy: LearnedPolicy
    features: FeatureNames
    card: dict[str, Any]
    ranges: Mapping[str, tuple[Floats32, Floats32]]
    """Smallest and largest value of each feature, by kind; kinds without a record are left out."""

    @cached_property
    def version(self) -> str:
        """The first digits of the hash of its weights."""
        return str(self.card["weights_hash"])[:VERSION_DIGITS]

    @cached_property
    def versioned_name(self) -> str:
        """name@version"""
        return f"{self.name}@{self.version}"

    @lru_cache(maxsize=1024)  # noqa: B019 - there are few policies
    def solver(self, method: Method | None = None, effort: Effort | None = None) -> Solver:
        """The policy's inference, or another, with reasons and on one thread: the service has its own."""
        changes = {name: value for name, value in (("method", method), ("effort", effort)) if value is not None}
        inference = self.policy.with_inference(**changes).inference
        return dataclasses.replace(Solver.of(inference, threads=1), certify=True)

    def as_json(self) -> dict[str, Any]:
        """The policy's entry in GET /policies."""
        return {
            "name": self.name,
            "version": self.version,
            "env": self.policy.header.get("env"),
            **self.policy.facts(),
            "feature_names": self.features.as_dict(),
            "feature_hash": self.features.hash,
            "card": self.card,
        }

    def out_of_range(self, observation: BatchObservation) -> list[list[OutOfRange]]:
        """The features of each instance that are outside of their range in training."""
        outside: list[list[OutOfRange]] = [[] for _ in range(observation.batch)]
        for kind, (low, high) in self.ranges.items():
            block = getattr(observation, BLOCKS[kind])
            if core.service.are_within(block.reshape(-1, len(low)), low, high):
                continue
            block = block.reshape(observation.batch, -1, len(low))
            least, most = block.min(1, initial=np.inf), block.max(1, initial=-np.inf)
            excess = np.maximum(low - least, most - high)
            names = self.features.as_dict()[kind]
            for b, k in np.argwhere(excess > 0).tolist():
                value = least[b, k] if least[b, k] < low[k] else most[b, k]
                warning = f"{kind} feature {names[k]!r} is {value:.4g}; training saw {low[k]:.4g} to {high[k]:.4g}"
                far = bool(excess[b, k] > FAR * max(high[k] - low[k], 1e-6))
                outside[b].append(OutOfRange(f"{kind}.{names[k]}", warning, far))
        return outside


class Policies:
    """The served policies by name; a reload replaces all of them at once."""

    def __init__(self, names: Sequence[str], custom: Sequence[str] = ()) -> None:
        """`custom`: environments, models and inference of the users' own that may run."""
        self._names, self.custom = tuple(names), find_custom(custom)
        self.now = self.read()
        self._before: dict[str, Served] | None = None

    def find(self, text: str) -> Served:
        """The policy of a name, or of name@version if it has that version; RequestError for others."""
        if text in self.now:
            return self.now[text]
        name, _, version = text.partition("@")
        if name not in self.now:
            error = f"no policy {clip(name)!r} is served{suggestion(name[:80], self.now)}"
            raise RequestError("not_found", error, "policy")
        served = self.now[name]
        if version != served.version:
            error = f"version {clip(version)!r} of {name} is not served; {served.version!r} is"
            raise RequestError("not_found", error, "policy")
        return served

    def next(self, rollback: bool = False) -> dict[str, Served]:
        """What a reload would serve: the policies in their files, or those before the last reload."""
        if not rollback:
            return self.read()
        if self._before is None:
            raise InputError("rollback: nothing was reloaded yet")
        return self._before

    def read(self) -> dict[str, Served]:
        """The policies in their files."""
        return serve_policies(self._names, self.custom)

    def reload(self, rollback: bool = False) -> dict[str, str]:
        """Read all policies again, or return to those before; name -> version. MusterError: nothing has changed."""
        self._before, self.now = self.now, self.next(rollback)
        return versions(self.now)


def versions(policies: Mapping[str, Served]) -> dict[str, str]:
    """The version of each policy."""
    return {name: served.version for name, served in policies.items()}


def serve_policies(names: Sequence[str], custom: Sequence[str] = ()) -> dict[str, Served]:
    """The policies of these names; without names, all shipped ones that need no torch."""
    chosen = list(names) or [name for name in shipped() if not name.endswith("-pem")]
    return {name: serve_policy(name, custom) for name in chosen}


def serve_policy(name: str, custom: Sequence[str] = ()) -> Served:
    """A policy made ready to be served."""
    policy = load(name).variant(name=name)
    refuse_custom(policy, custom)
    if policy.spec.kind == "pem":
        raise InputError(
            f"{name} is a pem policy, which reads planes; a service serves direct and context models (dm, context)"
        )
    features, card = features_of(policy), read_card(name)
    recorded = card.get("feature_ranges", {})
    ranges = {}
    for kind, names in features.as_dict().items():
        rows = [recorded.get(kind, {}).get(feature) for feature in names]
        if rows and all(row is not None for row in rows):
            low, high, _ = np.array(rows, np.float64).T
            # Single precision as the features: comparing with double takes longer than the model does.
            low, high = low - 1e-6 * np.abs(low), high + 1e-6 * np.abs(high)
            ranges[kind] = low.astype(np.float32), high.astype(np.float32)
    return Served(name, policy, features, card, ranges)


def find_custom(names: Sequence[str]) -> list[str]:
    """package.module:Name of each of these parts of the users' own; InputError for one that cannot be imported."""
    custom = [kind_of(full_env(name)) for name in names]
    for name in custom:
        if name not in BUILT_IN:
            module, part, _ = split("environment", name)
            find("environment", module, part)
    return custom


def refuse_custom(policy: LearnedPolicy, custom: Sequence[str]) -> None:
    """Raise InputError for a policy whose file names code of the users' own that is not among `custom`."""
    parts = [part.partition(",")[0] for part in (policy.spec.kind, policy.inference.method) if is_custom(part)]
    if others := [part for part in parts if part not in custom]:
        raise InputError(
            f"{policy.name} runs {' and '.join(others)}, not imported unless --envs names it; add --envs "
            + " ".join([*custom, *others])
        )
