"""Names of features: one for each column of an observation's blocks."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from muster.data import BatchObservation
from muster.errors import InputError, UnknownNameError

BLOCKS = {
    "agent": "agent_features",
    "task": "task_features",
    "pair": "pair_features",
    "task_pair": "task_pair_features",
    "global": "global_features",
}
"""Kind of feature -> field of an observation."""


@dataclass(frozen=True, slots=True)
class FeatureNames:
    """Names of the columns of every block of features."""

    agent: tuple[str, ...] = ()
    task: tuple[str, ...] = ()
    pair: tuple[str, ...] = ()
    task_pair: tuple[str, ...] = ()
    global_: tuple[str, ...] = ()
    """Global features, of the whole environment."""

    @classmethod
    def of(cls, widths: Mapping[str, int], given: Mapping[str, Sequence[str]], where: str) -> FeatureNames:
        """The given names; numbers in blocks without. Raises InputError for names that do not fit the widths."""
        columns = {}
        for kind in given:
            if kind not in BLOCKS:
                raise UnknownNameError("kind of feature", kind, BLOCKS, f"of {where}")
        for kind, width in widths.items():
            names = tuple(given.get(kind, ()))
            if names and width and len(names) != width:
                raise InputError(f"{where} names {len(names)} {kind} features ({', '.join(names)}) but shows {width}")
            if len(set(names)) < len(names):
                raise InputError(f"{where} names two of its {kind} features alike: {', '.join(names)}")
            names = names or tuple(f"{kind} {k}" for k in range(width))
            columns[kind.replace("global", "global_")] = names if width else ()
        return cls(**columns)

    @property
    def hash(self) -> str:
        """Twelve letters of a hash of the names in their order."""
        return hashlib.sha256(json.dumps(self.as_dict()).encode()).hexdigest()[:12]

    def as_dict(self) -> dict[str, list[str]]:
        """{kind: names} as JSON values."""
        return {kind.rstrip("_"): list(names) for kind, names in asdict(self).items()}


def widths_of(observation: BatchObservation) -> dict[str, int]:
    """{kind: number of features} of an observation."""
    blocks = {kind: getattr(observation, field) for kind, field in BLOCKS.items()}
    return {kind: 0 if block is None else int(block.shape[-1]) for kind, block in blocks.items()}
