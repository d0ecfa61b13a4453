"""The engine's integer arithmetic."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.kernels import core

direction, length = core.battle.direction, core.battle.length


@pytest.mark.parametrize(
    ("x", "y", "expected"),
    # By hand from the formula a - a/16 + 3b/8 - a/64 + 3b/256, every division floored; a alone where b <= a/4.
    [(0, 0, 0), (100, 0, 100), (0, -100, 100), (100, 25, 100), (100, 26, 102), (3, 4, 5), (-300, 400, 484), (1, 1, 1)],
)
def test_length_follows_the_engines_formula(x: int, y: int, expected: int) -> None:
    a, b = max(abs(x), abs(y)), min(abs(x), abs(y))
    by_hand = a - a // 16 + 3 * b // 8 - a // 64 + 3 * b // 256 if a // 4 < b else a
    assert length(x, y) == by_hand == expected


@given(st.integers(-2000, 2000), st.integers(-2000, 2000))
def test_length_is_symmetric_and_near_the_true_one(x: int, y: int) -> None:
    assert length(x, y) == length(y, x) == length(-x, y)
    assert abs(length(x, y) - math.hypot(x, y)) <= 0.08 * math.hypot(x, y) + 4


@given(st.integers(-2000, 2000), st.integers(-2000, 2000))
def test_direction_points_where_the_vector_does(x: int, y: int) -> None:
    if (x, y) == (0, 0):
        return
    found = direction(x, y)
    assert 0 <= found < 256
    truth = math.atan2(x, -y) * 128 / math.pi
    assert abs(((found - truth + 128) % 256) - 128) <= 1.01


def test_cardinal_directions() -> None:
    assert [direction(0, -9), direction(9, 0), direction(0, 9), direction(-9, 0)] == [0, 64, 128, 192]
    assert direction(0, 0) == 0
