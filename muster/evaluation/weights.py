"""Weights of a linear policy by the names of its features, and in a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from muster.data import Floats32
from muster.models.context_features import MEANINGS
from muster.models.spec import Statistics
from muster.policy.learned import LearnedPolicy, features_of

NAMED = 3
"""Features in the sentence."""
LEAST = 0.05
"""Smallest effect in the sentence, in standard deviations of the prior."""


@dataclass(frozen=True, slots=True)
class Weight:
    """Weight of a feature, or of the product of two."""

    score: str
    """h (agent and task) or g (two tasks)."""
    kind: str
    """agent, task, pair, task_pair, global, context, prior, constant or product."""
    feature: str
    effect: float
    """Change of a score by one standard deviation of the feature, in standard deviations of the prior."""
    weight: float | None
    """Change of a score by one unit of the feature, in units of the prior; None for a product."""


def named_weights(policy: LearnedPolicy) -> list[Weight]:
    """All weights of a linear policy, the largest effect first."""
    spec, names = policy.spec, features_of(policy)
    assert spec.h_statistics is not None
    of_h = [("agent", name) for name in names.agent] + [("task", name) for name in names.task]
    of_h += [("pair", name) for name in names.pair] + [("context", name) for name in spec.context_features]
    of_h += [("prior", "prior")] * spec.prior + [("global", name) for name in names.global_]
    weights = _weights("h", policy.parameters["h.weight"], of_h, "constant", spec.h_statistics)
    if spec.products:
        both = product(of_h[: spec.h_columns - spec.global_width], names.global_)
        effects = policy.parameters["h.products"].ravel().tolist()
        weights += [
            Weight("h", "product", f"{name} x {shared}", effect, None)
            for ((_, name), shared), effect in zip(both, effects, strict=True)
        ]
    if spec.task_scores:
        assert spec.g_statistics is not None
        of_g = [("task", f"{name} of both") for name in names.task] + [("task_pair", name) for name in names.task_pair]
        weights += _weights("g", policy.parameters["g.weight"], of_g, "same task", spec.g_statistics)
    return sorted(weights, key=lambda one: -abs(one.effect))


def _weights(
    score: str, effects: Floats32, names: Sequence[tuple[str, str]], constant: str, statistics: Statistics
) -> list[Weight]:
    deviations = np.array(statistics.deviations)
    # A feature that never varied has no effect, whatever its weight.
    varying = np.where(deviations > 0, effects[1:], 0.0)
    weights = np.divide(statistics.unit * varying, deviations, out=np.zeros(len(varying)), where=deviations > 0)
    first = Weight(score, "constant", constant, float(effects[0]), float(statistics.unit * effects[0]))
    columns = zip(names, varying.tolist(), weights.tolist(), strict=True)
    return [first, *(Weight(score, kind, name, effect, weight) for (kind, name), effect, weight in columns)]


def in_words(weights: Sequence[Weight]) -> str:
    """A sentence about the features with the largest effects on a pair's score, beside the prior."""
    strong = [one for one in weights if one.score == "h" and one.kind != "constant" and abs(one.effect) >= LEAST]
    largest = strong[:NAMED]
    if not largest:
        return "It decides as the environment's prior does: no feature moves a score by much."
    parts = [f"{'a high' if one.effect > 0 else 'a low'} {one.feature} ({one.effect:+.2f})" for one in largest]
    listed = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
    meanings = [f"{one.feature}: {MEANINGS[one.feature]}" for one in largest if one.feature in MEANINGS]
    return (
        f"Beside the prior, what most speaks for a pair is {listed}: by so many standard deviations of the prior a "
        "score rises with one standard deviation of the feature." + (f" ({'; '.join(meanings)}.)" if meanings else "")
    )
