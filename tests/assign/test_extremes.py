"""Maxima that the compiler takes side by side are those that numpy finds."""

from __future__ import annotations

import numpy as np
import pytest

from muster.assign.extremes import extent, largest_margin, place_of
from muster.compile import entry
from muster.data import Floats


@entry
def find_extent(values: Floats) -> tuple[float, float]:
    return extent(values)


@entry
def find_margin(values: Floats, prices: Floats) -> tuple[float, int]:
    margin = largest_margin(values, prices)
    return margin, place_of(margin, values, prices) if margin > -np.inf else -1


@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 100])
def test_extremes_are_those_of_numpy_and_ties_go_to_the_first(size):
    rng = np.random.default_rng(size)
    for draw in range(20):
        values = rng.normal(size=size) if draw % 2 else rng.integers(-2, 3, size).astype(float)
        prices = rng.integers(0, 2, size).astype(float)
        if draw % 4 == 3:
            values[rng.random(size) < 0.3] = -np.inf
        margins = np.append(values - prices, -np.inf)
        margin, place = find_margin(values, prices)
        assert find_extent(values) == (values.min(initial=np.inf), values.max(initial=-np.inf))
        assert margin == margins.max()
        assert place == (margins.argmax() if margin > -np.inf else -1)


@pytest.mark.parametrize("place", [0, 7, 16, 18])
def test_an_extent_with_a_nan_in_it_is_none(place):
    values = np.arange(19.0)
    values[place] = np.nan
    assert np.isnan(find_extent(values)).all()
