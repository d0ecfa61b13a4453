"""The policies that are served: their versions, what they were trained to read, and how they are replaced."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from muster.assign.settings import Effort, Method
from muster.assign.solver import Solver
from muster.custom import is_custom
from muster.data import BatchObservation, Floats32
from muster.envs.features import BLOCKS, FeatureNames
from muster.errors import InputError, suggestion
from muster.evaluation.card import read_card
from muster.kernels import core
from muster.policy.learned import LearnedPolicy, features_of
from muster.policy.names import load, shipped
from muster.service.refusal import Refusal, clip

VERSION_LETTERS = 12
FAR = 1.0
"""A feature is far out of range if it is beyond it by more than this share of the range's width."""
MOST_WARNINGS = 8


@dataclass(frozen=True, slots=True, eq=False)
class Served:
    """A policy, the names of what it reads, and the ranges of what training saw."""

    name: str
    policy: LearnedPolicy
    features: FeatureNames
    card: dict[str, Any]
    ranges: Mapping[str, tuple[Floats32, Floats32]]
    """By kind of feature the least and the largest value of each column; kinds that are not recorded are left out."""

    @property
    def version(self) -> str:
        """The first letters of the hash of its weights."""
        return str(self.card["weights_hash"])[:VERSION_LETTERS]

    @property
    def versioned_name(self) -> str:
        """name@version"""
        return f"{self.name}@{self.version}"

    def solver(self, method: Method | None = None, effort: Effort | None = None) -> Solver:
        """The policy's procedure, or another on its scores; with reasons, on one thread: the service has its own."""
        return _solver(self, method, effort)

    def described(self) -> dict[str, Any]:
        """What it is and reads, in short, and its card."""
        return {
            "name": self.name,
            "version": self.version,
            "env": self.policy.header.get("env"),
            **self.policy.facts(),
            "feature_names": self.features.as_dict(),
            "feature_hash": self.features.hash,
            "card": self.card,
        }

    def out_of_range(self, seen: BatchObservation) -> list[list[tuple[str, str, bool]]]:
        """For each slot the features beyond what training saw: "kind.feature", a sentence, whether far beyond."""
        found: list[list[tuple[str, str, bool]]] = [[] for _ in range(seen.batch)]
        for kind, (low, high) in self.ranges.items():
            block = getattr(seen, BLOCKS[kind]).reshape(seen.batch, -1, len(low))
            if core.service.are_within(block.reshape(-1, len(low)), low, high):
                continue
            least, most = block.min(1, initial=np.inf), block.max(1, initial=-np.inf)
            beyond = np.maximum(low - least, most - high)
            names = getattr(self.features, "global_" if kind == "global" else kind)
            for slot, k in np.argwhere(beyond > 0).tolist():
                value = least[slot, k] if least[slot, k] < low[k] else most[slot, k]
                told = f"{kind} feature {names[k]!r} is {value:.4g}; training saw {low[k]:.4g} to {high[k]:.4g}"
                far = bool(beyond[slot, k] > FAR * max(high[k] - low[k], 1e-6))
                found[slot].append((f"{kind}.{names[k]}", told, far))
        return found


class Policies:
    """The policies by name, as they are now; replaced all at once."""

    def __init__(self, names: Sequence[str], custom: Sequence[str] = ()) -> None:
        """`custom`: parts of the users' own that policies may run."""
        self._names, self.custom = tuple(names), tuple(custom)
        self.now: dict[str, Served] = self.read()
        self._before: dict[str, Served] | None = None

    def find(self, text: str) -> Served:
        """The policy of a name, or of name@version if that is the version served; Refusal for others."""
        name, _, version = text.partition("@")
        if text in self.now:
            return self.now[text]
        if name not in self.now:
            told = f"no policy {clip(name)!r} is served{suggestion(name[:80], self.now)}"
            raise Refusal("not_found", told, "policy")
        found = self.now[name]
        if version != found.version:
            told = f"version {clip(version)!r} of {name} is not served; {found.version!r} is"
            raise Refusal("not_found", told, "policy")
        return found

    def read(self) -> dict[str, Served]:
        """The policies as their files are now."""
        return serve_policies(self._names, self.custom)

    def reload(self) -> dict[str, str]:
        """Read all policies again; name -> version. If one cannot be read nothing changes (MusterError)."""
        fresh = self.read()
        self._before, self.now = self.now, fresh
        return self.versions()

    def roll_back(self) -> dict[str, str]:
        """Serve what was served before the last reload."""
        if self._before is None:
            raise InputError("rollback: nothing was reloaded yet")
        self._before, self.now = self.now, self._before
        return self.versions()

    def versions(self) -> dict[str, str]:
        """Name -> version."""
        return {name: served.version for name, served in self.now.items()}


def serve_policies(names: Sequence[str], custom: Sequence[str] = ()) -> dict[str, Served]:
    """Those named; with no names, all that come with muster and need no torch."""
    chosen = list(names) or [name for name in shipped() if not name.endswith("-pem")]
    return {name: serve_policy(name, custom) for name in chosen}


def refuse_unnamed(policy: LearnedPolicy, custom: Sequence[str]) -> None:
    """Raise InputError for a policy whose file names code of the users' own that the service was not given."""
    given = [name.partition(",")[0] for name in custom]
    parts = [part.partition(",")[0] for part in (policy.spec.kind, policy.inference.method) if is_custom(part)]
    if unnamed := [part for part in parts if part not in given]:
        raise InputError(
            f"{policy.name} runs {' and '.join(unnamed)}, not imported unless --envs names it; add --envs "
            + " ".join([*custom, *unnamed])
        )


def serve_policy(name: str, custom: Sequence[str] = ()) -> Served:
    """A policy made ready to be served."""
    policy = load(name).variant(name=name)
    refuse_unnamed(policy, custom)
    if policy.spec.kind == "pem":
        raise InputError(
            f"{name} is a pem policy, which reads planes; a service serves direct and context models (dm, context)"
        )
    features, card = features_of(policy), read_card(name)
    recorded = card.get("feature_ranges", {})
    ranges = {}
    for kind, named in features.as_dict().items():
        rows = [recorded.get(kind, {}).get(feature) for feature in named]
        if rows and all(row is not None for row in rows):
            low, high, _ = np.array(rows, np.float64).T
            # As features are: comparing them with double precision takes longer than the model does.
            widened = low - 1e-6 * np.abs(low), high + 1e-6 * np.abs(high)
            ranges[kind] = widened[0].astype(np.float32), widened[1].astype(np.float32)
    return Served(name, policy, features, card, ranges)


@lru_cache(maxsize=1024)
def _solver(served: Served, method: Method | None, effort: Effort | None) -> Solver:
    changes = {name: value for name, value in (("method", method), ("effort", effort)) if value is not None}
    inference = served.policy.with_inference(**changes).inference
    return dataclasses.replace(Solver.of(inference, threads=1), certify=True)
