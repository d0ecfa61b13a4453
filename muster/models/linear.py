"""The linear model: the prior plus a weighted sum of features, which a person can read.

    h(i, j) = prior_ij + u·(w_0 + sum over f of w_f z_f + sum over f, k of w_fk z_f z_k)
    g(j, l) = task_prior_jl + v·(w_0 [j = l] + sum over f of w_f z_f)

z = (x - mean) / standard deviation are the features of agent, task and pair, the prior itself and the features of the
environment; the products are with the latter. For g they are the sum of the two tasks' features and the features of the
pair. Means and standard deviations are measured before learning (`ModelSpec.h_statistics`), and so is u, the standard
deviation of the prior: a weight is the rise of the score, in units of u, for one standard deviation of the feature. A
feature that did not vary has no influence. All weights are 0 at the start: the model decides as the prior.

Parameters with a leading axis P are P models, each for its own share of the batch.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from muster.data import BatchObservation, Floats32
from muster.errors import InputError
from muster.models.spec import ModelSpec, Parameters, Scores, Statistics


class Block(NamedTuple):
    """Consecutive features of the weighted sum."""

    begin: int
    """Number of the first column."""
    axes: str
    """Axes of the values: letters of b (batch), n (left object) and m (right object)."""
    values: Floats32
    """[*axes, F]"""


def linear_shapes(spec: ModelSpec) -> dict[str, tuple[int, ...]]:
    """Name and shape of every array of a linear model, in their fixed order."""
    shapes: dict[str, tuple[int, ...]] = {"h.weight": (1 + spec.h_columns,)}
    if spec.products:
        shapes["h.products"] = (spec.h_columns - spec.global_width, spec.global_width)
    if spec.task_scores:
        shapes["g.weight"] = (1 + spec.g_columns,)
    return shapes


def h_blocks(spec: ModelSpec, read: BatchObservation) -> list[Block]:
    """Features of h in the order of its weights; global features come last."""
    blocks = [("bn", read.agent_features), ("bm", read.task_features), ("bnm", read.pair_features)]
    if spec.prior:
        assert read.prior is not None
        blocks.append(("bnm", read.prior.astype(np.float32)[..., None]))
    if spec.global_width:
        assert read.global_features is not None
        blocks.append(("b", read.global_features))
    begins = np.cumsum([0, *(values.shape[-1] for _, values in blocks)]).tolist()
    return [Block(begin, *block) for begin, block in zip(begins, blocks, strict=False)]


def g_blocks(spec: ModelSpec, read: BatchObservation) -> list[Block]:
    """Features of g; the two tasks of a pair share columns, so that their features are added."""
    tasks = read.task_features
    return [Block(0, "bn", tasks), Block(0, "bm", tasks), Block(spec.task_width, "bnm", read.task_pair_features)]


class LinearModel:
    """A linear model, or P of them."""

    def __init__(self, spec: ModelSpec, parameters: Parameters, task_scores: bool) -> None:
        """`task_scores`: whether to compute g."""
        self.spec = spec
        self.h = Correction("h", parameters, spec.h_statistics)
        self.g = Correction("g", parameters, spec.g_statistics) if task_scores else None

    def __call__(self, read: BatchObservation) -> Scores:
        """h [B, N, M] and, if the model has one, g [B, M, M]; 0 for the dead and for what is not allowed."""
        pairs = read.pairs
        h = self.h.scores(h_blocks(self.spec, read), np.float32(1.0), pairs.shape, read.global_features)
        if self.spec.prior:
            assert read.prior is not None
            h += read.prior.astype(np.float32)
        h = np.where(pairs, h, np.float32(0.0))
        if self.g is None:
            return h, None
        pairs = read.task_pairs
        g = self.g.scores(g_blocks(self.spec, read), np.eye(pairs.shape[1], dtype=np.float32), pairs.shape)
        if self.spec.task_prior:
            assert read.task_prior is not None
            g += read.task_prior.astype(np.float32)
        return h, np.where(pairs, g, np.float32(0.0))

    def forward(self, read: BatchObservation) -> tuple[Scores, dict[str, Any]]:
        """Scores, and no gates: the gradient needs nothing from the forward pass."""
        return self(read), {}

    def gradient(self, read: BatchObservation, slopes: Scores, *_: Any) -> Parameters:
        """Gradient of a loss for every weight, given its slopes in h [B, N, M] and g [B, M, M].

        Other arguments are a direct model's: there are no limits to learn and no gates.
        """
        h = np.where(read.pairs, slopes[0], np.float32(0.0))
        found = self.h.gradient(h_blocks(self.spec, read), h, h.sum(axis=(1, 2)), read.global_features)
        if self.g is not None and slopes[1] is not None:
            g = np.where(read.task_pairs, slopes[1], np.float32(0.0))
            found |= self.g.gradient(g_blocks(self.spec, read), g, np.trace(g, axis1=1, axis2=2))
        return found


class Correction:
    """The correction of a prior: unit·(w_0·first + weighted sum of normalised features)."""

    def __init__(self, net: str, parameters: Parameters, statistics: Statistics | None) -> None:
        if statistics is None:
            raise InputError("a linear model needs the means and standard deviations of its features")
        self.net, self.unit = net, np.float32(statistics.unit)
        self.means = np.array(statistics.means, np.float32)
        stds = np.array(statistics.deviations, np.float32)
        self.factor = np.divide(1.0, stds, out=np.zeros_like(stds), where=stds > 0)
        """[F] 1 / standard deviation; 0 for a feature that does not vary."""
        self.weights = parameters[f"{net}.weight"].reshape(-1, 1 + len(self.means))
        """[P, 1 + F]"""
        products = parameters.get(f"{net}.products")
        self.products = None if products is None else products.reshape(-1, *products.shape[-2:])
        """[P, F - G, G]"""

    def scores(
        self, blocks: list[Block], first: Floats32 | np.float32, shape: tuple[int, ...], shared: Floats32 | None = None
    ) -> Floats32:
        """[B, N, M] corrections; `first` is the factor of w_0, `shared` are the global features."""
        batch = shape[0]
        weights = np.repeat(self.weights, batch // len(self.weights), axis=0)
        start, slopes = weights[:, 0], weights[:, 1:]
        if self.products is not None:
            assert shared is not None
            products = np.repeat(self.products, batch // len(self.products), axis=0)
            slopes = slopes.copy()
            slopes[:, : products.shape[1]] += np.einsum("bfk,bk->bf", products, self.normal(shared))
        slopes = self.unit * self.factor * slopes
        scores = np.empty(shape, np.float32)
        scores[...] = (self.unit * start)[:, None, None] * first - np.einsum("bf,f->b", slopes, self.means)[
            :, None, None
        ]
        for begin, axes, values in blocks:
            if width := values.shape[-1]:
                part = np.einsum(f"{axes}f,bf->{axes}", values, slopes[:, begin : begin + width])
                scores += part.reshape([size if axis in axes else 1 for axis, size in zip("bnm", shape, strict=True)])
        return scores

    def normal(self, shared: Floats32) -> Floats32:
        """[B, G] normalised global features, which are the last columns."""
        last = slice(len(self.means) - shared.shape[1], None)
        return (shared - self.means[last]) * self.factor[last]

    def gradient(
        self, blocks: list[Block], slopes: Floats32, first: Floats32, shared: Floats32 | None = None
    ) -> Parameters:
        """Gradient of one model's weights, given slopes [B, N, M] and `first` [B], the slope of w_0 / unit."""
        sums = np.zeros((len(slopes), len(self.means)), np.float32)
        for begin, axes, values in blocks:
            sums[:, begin : begin + values.shape[-1]] += np.einsum(f"bnm,{axes}f->bf", slopes, values)
        sums = self.unit * self.factor * (sums - slopes.sum(axis=(1, 2))[:, None] * self.means)
        found = {f"{self.net}.weight": np.concatenate([[self.unit * first.sum()], sums.sum(axis=0)], dtype=np.float32)}
        if self.products is not None:
            assert shared is not None
            own = sums[:, : self.products.shape[1]]
            found[f"{self.net}.products"] = np.einsum("bf,bk->fk", own, self.normal(shared))
        return found
