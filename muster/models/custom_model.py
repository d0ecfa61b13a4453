"""Scores of a custom model; apart from `custom`, which the networks of torch import."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from muster.data import BatchObservation
from muster.models.custom import Arrays, checked_scores, custom_shapes, load_parameters, make_custom, needs_torch
from muster.models.spec import ModelSpec, Scores


class CustomModel:
    """A custom model, or P of them, each for its own share of the batch, where its arrays have a leading axis."""

    def __init__(self, spec: ModelSpec, parameters: Arrays) -> None:
        name, shape = next(iter(custom_shapes(spec).items()))
        first = parameters.get(name)
        models = [parameters]
        if first is not None and first.ndim > len(shape):
            models = [{key: array[p] for key, array in parameters.items()} for p in range(len(first))]
        self.scorers = [_scorer(spec, one) for one in models]

    def __call__(self, observation: BatchObservation) -> Scores:
        """h [B, N, M], and g [B, M, M] if the model has one."""
        if len(self.scorers) == 1:
            return self.scorers[0](observation)
        shares = np.array_split(np.arange(observation.batch), len(self.scorers))
        parts = [score(observation.take(rows)) for score, rows in zip(self.scorers, shares, strict=True)]
        g = [part[1] for part in parts if part[1] is not None]
        return np.concatenate([part[0] for part in parts]), np.concatenate(g) if g else None


def _scorer(spec: ModelSpec, parameters: Arrays) -> Callable[[BatchObservation], Scores]:
    if needs_torch(spec.kind):
        from muster.models.torch_networks import network_from

        return network_from(spec, parameters).scores
    model = make_custom(spec)
    load_parameters(model, parameters, spec.kind)
    return lambda observation: checked_scores(spec, observation, model.scores, observation)
