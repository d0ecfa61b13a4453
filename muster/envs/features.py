"""Names of what an environment shows: one for each column of its features."""

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
"""Kind of feature -> the field of an observation that holds it."""


@dataclass(frozen=True, slots=True)
class FeatureNames:
    """The columns of every block of features, in order."""

    agent: tuple[str, ...] = ()
    task: tuple[str, ...] = ()
    pair: tuple[str, ...] = ()
    task_pair: tuple[str, ...] = ()
    global_: tuple[str, ...] = ()
    """Of the whole environment (global features)."""

    @classmethod
    def of(cls, widths: Mapping[str, int], given: Mapping[str, Sequence[str]], where: str) -> FeatureNames:
        """Those given; columns of blocks without names are numbered. InputError where they do not fit."""
        names = {}
        for kind in given:
            if kind not in BLOCKS:
                raise UnknownNameError(f"kind of feature of {where}", kind, BLOCKS)
        for kind, width in widths.items():
            own = tuple(given.get(kind, ()))
            if own and width and len(own) != width:
                raise InputError(f"{where} names {len(own)} {kind} features ({', '.join(own)}) but shows {width}")
            if len(set(own)) < len(own):
                raise InputError(f"{where} names two of its {kind} features alike: {', '.join(own)}")
            names[kind.replace("global", "global_")] = (
                (own or tuple(f"{kind} {k}" for k in range(width))) if width else ()
            )
        return cls(**names)

    @property
    def hash(self) -> str:
        """Twelve letters that differ where names or their order do."""
        return hashlib.sha256(json.dumps(self.as_dict()).encode()).hexdigest()[:12]

    def as_dict(self) -> dict[str, list[str]]:
        """As plain values."""
        return {kind.rstrip("_"): list(names) for kind, names in asdict(self).items()}


def widths_of(seen: BatchObservation) -> dict[str, int]:
    """How many features of each kind an observation has."""
    blocks = {kind: getattr(seen, field) for kind, field in BLOCKS.items()}
    return {kind: 0 if block is None else int(block.shape[-1]) for kind, block in blocks.items()}
