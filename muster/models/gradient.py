"""The policy gradient of the direct model, by hand: one pass over tiles of living pairs, without torch.

For each pair the score s is made again, and with it the slope of the loss: one that is given, or that of

    L = -weight · sum over pairs of advantage · ratio · log N(played; s, sigma)

where ratio is that of the likelihoods under s and under the score that played, clamped, and no slope runs through it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from muster.compile import fast_entry, fast_kernel
from muster.data import BatchObservation, Floats32
from muster.models.direct import DirectModel, Packed, Parameters, Scores, lanes_of, score_tile
from muster.models.heads import Limits
from muster.models.likelihood import LARGEST_RATIO, SMALLEST_RATIO
from muster.models.pairs import Pairs, is_forbidden
from muster.models.tiles import LANES, STRIDE, add_products, add_rows, dense, fill_lane, gate


class Loss(NamedTuple):
    """Where the slopes of the scores come from: `slope` if it has rows, else the likelihood of what was played."""

    slope: Floats32
    """[B, N, M] of the loss in each score, or nothing."""
    old: Floats32
    """[B, N, M] scores of the policy that played, or nothing."""
    played: Floats32
    """[B, N, M] with noise, or nothing."""
    advantage: Floats32
    """[B], or nothing."""
    sigma: np.float32


NEGLIGIBLE = 1e-5
"""Slopes below this share of their mean size are taken for 0: together they are less than that share of the whole."""
NONE, NOBODY = np.zeros((0, 0, 0), np.float32), np.zeros(0, np.float32)


def policy_gradient(
    model: DirectModel, seen: BatchObservation, old: Scores, played: Scores, advantage: Floats32, sigma: float
) -> tuple[float, Parameters]:
    """Loss of the played scores, averaged over the batch's states, and its slope for every parameter."""
    losses = [
        None if scores is None or actions is None else Loss(NONE, scores, actions, advantage, np.float32(sigma))
        for scores, actions in zip(old, played, strict=True)
    ]
    return _descend(model, seen, dict(zip("hg", losses, strict=True)))


def score_gradient(
    model: DirectModel, seen: BatchObservation, slopes: Scores, limits: Limits | None = None
) -> Parameters:
    """The slope of a loss for every parameter, given its slopes in h [B, N, M], in g [B, M, M] and in z of the heads.

    Most agents are in no doubt, so that nineteen of twenty slopes of their choices are next to nothing: those pairs are
    passed over.
    """
    given = dict(zip("hg", slopes, strict=True)) | (limits or {})
    losses = {
        net: None if slope is None else Loss(_notable(slope), NONE, NONE, NOBODY, np.float32(1.0))
        for net, slope in given.items()
    }
    return _descend(model, seen, losses)[1]


def _notable(slope: Floats32) -> Floats32:
    size = np.abs(slope)
    return np.where(size > NEGLIGIBLE * size.mean(), slope, np.float32(0.0))


def _descend(model: DirectModel, seen: BatchObservation, losses: dict[str, Loss | None]) -> tuple[float, Parameters]:
    total, gradients, parameters = 0.0, {}, model.parameters
    for net, packed in {"h": model.h, "g": model.g, **model.heads}.items():
        loss = losses.get(net)
        if packed is None or loss is None:
            continue
        slopes = Packed(*(np.zeros(array.shape) for array in packed))  # type: ignore[arg-type]
        total += descend_pairs(packed, model.pairs(seen, net), loss, slopes)
        hidden = len(parameters[f"{net}.bias1"])
        row = 0
        for name in ("left", "right", "pair"):
            shape = parameters[f"{net}.{name}"].shape
            gradients[f"{net}.{name}"] = slopes.weight1[0, row : row + shape[0], :hidden]
            row += shape[0]
        gradients |= {
            f"{net}.bias1": slopes.bias1[0, :hidden],
            f"{net}.weight2": slopes.weight2[0, :hidden, :hidden],
            f"{net}.bias2": slopes.bias2[0, :hidden],
            f"{net}.weight3": slopes.weight3[0, :hidden, None],
            f"{net}.bias3": slopes.bias3,
        }
        if len(packed.scale):
            gradients[f"{net}.scale"] = slopes.scale
    return total, {name: np.ascontiguousarray(array, np.float32) for name, array in gradients.items()}


@fast_entry
def descend_pairs(packed: Packed, pairs: Pairs, loss: Loss, slopes: Packed) -> float:
    """Add up the slopes over every living pair that is allowed, in double precision; returns the loss, if known."""
    batch, n = pairs.left_alive.shape
    m = pairs.right_alive.shape[1]
    known = len(loss.slope) > 0
    d, k = packed.weight1.shape[1:]
    inputs = np.zeros((d, STRIDE), np.float32)
    x, y, back = np.zeros((k, STRIDE), np.float32), np.zeros((k, STRIDE), np.float32), np.zeros((k, STRIDE), np.float32)
    # What each lane's pair was scored and played, and its share of the loss; or the slope that is given, as its worth.
    was, action, worth = np.zeros(LANES, np.float32), np.zeros(LANES, np.float32), np.zeros(LANES, np.float32)
    scores, given = np.zeros(LANES, np.float32), np.zeros(LANES if len(pairs.prior) else 0, np.float32)
    transposed = np.ascontiguousarray(packed.weight2[0].T)
    total, filled = 0.0, 0
    for slot in range(batch):
        for i in range(n):
            if not pairs.left_alive[slot, i]:
                continue
            for j in range(m):
                if not pairs.right_alive[slot, j] or is_forbidden(pairs.allowed, slot, i, j):
                    continue
                if known and loss.slope[slot, i, j] == 0.0:
                    continue
                fill_lane(pairs.left, pairs.shared, pairs.right, pairs.pair, slot, i, j, inputs, filled)
                if known:
                    worth[filled] = loss.slope[slot, i, j]
                else:
                    was[filled], action[filled] = loss.old[slot, i, j], loss.played[slot, i, j]
                    worth[filled] = loss.advantage[slot] / batch
                if len(pairs.prior):
                    given[filled] = pairs.prior[slot, i, j]
                filled += 1
                if filled == LANES:
                    score_with_prior(packed, inputs, x, y, scores, given, filled)
                    total += spread_loss(scores, known, was, action, worth, loss.sigma, filled)
                    descend_tile(packed, transposed, inputs, x, y, back, scores, given, filled, slopes)
                    filled = 0
    if filled:
        score_with_prior(packed, inputs, x, y, scores, given, filled)
        total += spread_loss(scores, known, was, action, worth, loss.sigma, filled)
        descend_tile(packed, transposed, inputs, x, y, back, scores, given, filled, slopes)
    return total


@fast_kernel
def score_with_prior(
    packed: Packed, inputs: Floats32, x: Floats32, y: Floats32, scores: Floats32, given: Floats32, filled: int
) -> None:
    """Forward through one tile."""
    score_tile(packed, 0, inputs, x, y, scores, filled)
    for t in range(filled if len(given) else 0):
        scores[t] += packed.scale[0] * given[t]


@fast_kernel
def spread_loss(
    scores: Floats32,
    known: bool,
    was: Floats32,
    action: Floats32,
    worth: Floats32,
    sigma: np.float32,
    filled: int,
) -> float:
    """Put the slope of the loss in the place of each lane's score, 0 in lanes not in use; returns the loss."""
    precision = np.float32(1.0) / (sigma * sigma)
    loss = 0.0
    for t in range(lanes_of(filled)):
        if t >= filled:
            scores[t] = 0.0
            continue
        if known:
            scores[t] = worth[t]
            continue
        error, before = action[t] - scores[t], action[t] - was[t]
        likelihood = np.float32(-0.5) * precision * error * error
        ratio = np.exp(likelihood + np.float32(0.5) * precision * before * before)
        ratio = min(max(ratio, np.float32(SMALLEST_RATIO)), np.float32(LARGEST_RATIO))
        loss -= worth[t] * ratio * likelihood
        scores[t] = -worth[t] * ratio * precision * error
    return loss


@fast_kernel
def descend_tile(
    packed: Packed,
    transposed: Floats32,
    inputs: Floats32,
    x: Floats32,
    y: Floats32,
    back: Floats32,
    slope: Floats32,
    given: Floats32,
    filled: int,
    slopes: Packed,
) -> None:
    """Back through one tile, from the slope of the loss in each lane's score."""
    lanes = lanes_of(filled)
    total = np.float32(0.0)
    for t in range(lanes):
        total += slope[t]
    slopes.bias3[0] += total
    for t in range(filled if len(given) else 0):
        slopes.scale[0] += slope[t] * given[t]
    # Third layer; y then becomes the slope of the second layer's sums.
    for k in range(y.shape[0]):
        w, total = packed.weight3[0, k], np.float32(0.0)
        for t in range(lanes):
            total += y[k, t] * slope[t]
            y[k, t] = w * slope[t] if y[k, t] > np.float32(0.0) else np.float32(0.0)
        slopes.weight3[0, k] += total
    add_rows(y, slopes.bias2[0], lanes)
    add_products(x, y, slopes.weight2[0], lanes)
    dense(transposed, np.zeros(x.shape[0], np.float32), y, back, lanes)
    gate(x, back, lanes)
    add_rows(back, slopes.bias1[0], lanes)
    add_products(inputs, back, slopes.weight1[0], lanes)
