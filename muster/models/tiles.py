"""Layers of the pair networks on tiles: each row holds one feature of many pairs, so pairs lie on the vector lanes.

A tile is [rows, STRIDE] with its pairs in the first LANES columns, small enough for the first-level cache. Widths are
multiples of BLOCK (`padded`), lanes in use multiples of STEP, so that every loop is whole vectors: a pair's score does
not depend on its lane.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from muster.compile import fast_kernel, leaf
from muster.data import Floats, Floats32
from muster.models.vectors import AT_ONCE, OUTPUTS, multiply

LANES, STEP, BLOCK = 256, 64, OUTPUTS
# Rows a power of two apart would crowd into few sets of the cache.
STRIDE = LANES + 16
ZERO = np.float32(0.0)

Offsets = NDArray[np.uint64]
"""Indices without a sign: compiled code need not ask whether they count from the end."""


def padded(width: int) -> int:
    """The next multiple of BLOCK."""
    return -(-width // BLOCK) * BLOCK


@leaf
def fill_lane(
    left: Floats32,
    shared: Floats32,
    right: Floats32,
    pair: Floats32,
    slot: int,
    i: int,
    j: int,
    tile: Floats32,
    lane: int,
) -> None:
    """Write the features of objects i and j of a state into a lane: left object's, state's, right object's, pair's."""
    row = 0
    for k in range(left.shape[2]):
        tile[row + k, lane] = left[slot, i, k]
    row += left.shape[2]
    for k in range(shared.shape[1]):
        tile[row + k, lane] = shared[slot, k]
    row += shared.shape[1]
    for k in range(right.shape[2]):
        tile[row + k, lane] = right[slot, j, k]
    row += right.shape[2]
    for k in range(pair.shape[3]):
        tile[row + k, lane] = pair[slot, i, j, k]


@leaf
def gather(features: Floats32, rows: Offsets, width: int, tile: Floats32, first: int, filled: int) -> None:
    """Write the features of the objects `rows`, `width` of each, to the rows of a tile from `first` on."""
    for k in range(width):
        for t in range(filled):
            tile[first + k, t] = features[rows[t] * np.uint64(width) + np.uint64(k)]


@fast_kernel
def dense(weight: Floats32, bias: Floats32, x: Floats32, y: Floats32, lanes: int) -> None:
    """y = weightᵀ x + bias."""
    for t in range(0, lanes, AT_ONCE):
        for k in range(0, weight.shape[1], OUTPUTS):
            multiply(weight, bias, x, y, k, t, False)


@fast_kernel
def dense_rectified(weight: Floats32, bias: Floats32, x: Floats32, y: Floats32, lanes: int) -> None:
    """y = max(weightᵀ x + bias, 0)."""
    for t in range(0, lanes, AT_ONCE):
        for k in range(0, weight.shape[1], OUTPUTS):
            multiply(weight, bias, x, y, k, t, True)


@fast_kernel
def weigh(weight: Floats32, bias: np.float32, x: Floats32, scores: Floats32, lanes: int) -> None:
    """scores = weight·x + bias: the last layer."""
    for t in range(lanes):
        scores[t] = bias
    for k in range(x.shape[0]):
        w = weight[k]
        for t in range(lanes):
            scores[t] += w * x[k, t]


@fast_kernel
def gate(x: Floats32, slope: Floats32, lanes: int) -> None:
    """slope = 0 where the layer's output x was cut off at 0."""
    for k in range(x.shape[0]):
        for t in range(lanes):
            slope[k, t] = slope[k, t] if x[k, t] > ZERO else ZERO


@fast_kernel
def add_rows(x: Floats32, total: Floats, lanes: int) -> None:
    """total += sums of the rows."""
    for k in range(x.shape[0]):
        s = ZERO
        for t in range(lanes):
            s += x[k, t]
        total[k] += s


@fast_kernel
def add_products(x: Floats32, slope: Floats32, total: Floats, lanes: int) -> None:
    """total += x slopeᵀ: the slope of a layer's weights, four by four."""
    for i in range(0, x.shape[0], 4):
        for k in range(0, slope.shape[0], 4):
            s00 = s01 = s02 = s03 = s10 = s11 = s12 = s13 = ZERO
            s20 = s21 = s22 = s23 = s30 = s31 = s32 = s33 = ZERO
            for t in range(lanes):
                x0, x1, x2, x3 = x[i, t], x[i + 1, t], x[i + 2, t], x[i + 3, t]
                d0, d1, d2, d3 = slope[k, t], slope[k + 1, t], slope[k + 2, t], slope[k + 3, t]
                s00 += x0 * d0
                s01 += x0 * d1
                s02 += x0 * d2
                s03 += x0 * d3
                s10 += x1 * d0
                s11 += x1 * d1
                s12 += x1 * d2
                s13 += x1 * d3
                s20 += x2 * d0
                s21 += x2 * d1
                s22 += x2 * d2
                s23 += x2 * d3
                s30 += x3 * d0
                s31 += x3 * d1
                s32 += x3 * d2
                s33 += x3 * d3
            total[i, k] += s00
            total[i, k + 1] += s01
            total[i, k + 2] += s02
            total[i, k + 3] += s03
            total[i + 1, k] += s10
            total[i + 1, k + 1] += s11
            total[i + 1, k + 2] += s12
            total[i + 1, k + 3] += s13
            total[i + 2, k] += s20
            total[i + 2, k + 1] += s21
            total[i + 2, k + 2] += s22
            total[i + 2, k + 3] += s23
            total[i + 3, k] += s30
            total[i + 3, k + 1] += s31
            total[i + 3, k + 2] += s32
            total[i + 3, k + 3] += s33
