"""Layers on tiles: the product that is written in vector operations is the product."""

from __future__ import annotations

import numpy as np
import pytest

from muster.compile import callable_from_python
from muster.models.tiles import LANES, STEP, STRIDE, dense, dense_rectified
from muster.models.vectors import AT_ONCE, OUTPUTS, _multiply_plainly


@pytest.mark.parametrize("rectified", [False, True])
@pytest.mark.parametrize(("inputs", "outputs", "lanes"), [(24, 32, LANES), (4, 4, STEP), (0, 8, STEP)])
def test_a_layer_is_the_product_and_leaves_other_lanes_alone(inputs, outputs, lanes, rectified):
    rng = np.random.default_rng(inputs)

    def draw(*shape):
        return rng.normal(size=shape).astype(np.float32)

    weight, bias, x = draw(inputs, outputs), draw(outputs), draw(inputs, STRIDE)
    y = np.full((outputs, STRIDE), np.nan, np.float32)
    callable_from_python(dense_rectified if rectified else dense)(weight, bias, x, y, lanes)
    wanted = weight.astype(float).T @ x + bias[:, None]
    wanted = np.maximum(wanted, 0.0) if rectified else wanted
    assert y[:, :lanes] == pytest.approx(wanted[:, :lanes], abs=1e-5)
    assert np.isnan(y[:, lanes:]).all()


def test_a_sum_is_built_input_by_input_from_the_bias_on():
    """1e8 swallows what comes before and after it: any other order would leave another sum."""
    weight = np.zeros((4, OUTPUTS), np.float32)
    weight[:, 0] = 1.0, 1e8, -1e8, 1.0
    bias, x = np.full(OUTPUTS, 3.0, np.float32), np.ones((4, STRIDE), np.float32)
    y = np.zeros((OUTPUTS, STRIDE), np.float32)
    callable_from_python(dense)(weight, bias, x, y, STEP)
    assert (y[0, :STEP] == 1.0).all()
    assert (y[1:, :STEP] == 3.0).all()


def test_without_a_compiler_it_is_the_same_product():
    rng = np.random.default_rng(1)
    weight, bias, x = (rng.normal(size=shape).astype(np.float32) for shape in ((8, 8), (8,), (8, STRIDE)))
    compiled, plain = np.zeros((8, STRIDE), np.float32), np.zeros((8, STRIDE), np.float32)
    callable_from_python(dense_rectified)(weight, bias, x, compiled, STEP)
    for t in range(0, STEP, AT_ONCE):
        for k in range(0, 8, OUTPUTS):
            _multiply_plainly(weight, bias, x, plain, k, t, True)
    assert compiled == pytest.approx(plain, abs=1e-5)
    assert (plain > 0).any()
