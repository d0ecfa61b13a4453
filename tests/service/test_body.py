"""Bodies are read as a JSON parser reads them, whichever of their lists are arrays."""

from __future__ import annotations

import json
import random
from typing import Any

import jiter
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.service.body import parse
from muster.service.errors import RequestError

NUMBERS = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
ROWS = st.integers(0, 4).flatmap(lambda n: st.lists(st.lists(NUMBERS, min_size=n, max_size=n), max_size=4))
NAMES = st.text(max_size=4) | st.sampled_from(["previous", "routes", "["])
VALUES = st.recursive(
    NUMBERS | st.none() | st.booleans() | st.text(max_size=5) | st.lists(NUMBERS, max_size=9) | ROWS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)


def plain(value: Any) -> Any:
    """The value with lists instead of arrays."""
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    return value.tolist() if isinstance(value, np.ndarray) else value


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(NAMES, VALUES, max_size=4), st.sampled_from([None, 1]))
def test_arrays_change_no_value(data, indent):
    text = json.dumps(data, indent=indent).encode()
    found = plain(parse(text))
    assert found == json.loads(text)
    assert list(found) == list(data)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.text(max_size=4), VALUES, min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_what_the_parser_refuses_is_refused_and_nothing_else(data, rng: random.Random):
    text = bytearray(json.dumps(data).encode())
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(text))
        text[at : at + rng.randint(0, 2)] = rng.choice(
            [b"", b"0", b"-", b".", b"e", b"[", b"]", b",", b'"', b"\\", b"N"]
        )
    try:
        expected = jiter.from_json(bytes(text), catch_duplicate_keys=True)
    except ValueError:
        expected = None
    if isinstance(expected, dict):
        found = plain(parse(bytes(text)))
        assert json.dumps(found) == json.dumps(expected) or found == expected
    else:
        with pytest.raises(RequestError):
            parse(bytes(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[1, 2]", np.array([1.0, 2.0])),
        ("[[1, 2.5], [3e2, -0.125]]", np.array([[1, 2.5], [300, -0.125]])),
        ("[[1], [2]]", np.array([[1.0], [2.0]])),
        ("[0.1, 123456789.123456789, 5e-324]", np.array([0.1, 123456789.123456789, 5e-324])),
        ("[1, null]", [1, None]),
        ("[[1], [2, 3]]", [[1], [2, 3]]),
        ("[1, [2]]", [1, [2]]),
        ("[[1, [2]], [3, 4]]", [[1, [2]], [3, 4]]),
        ("[[[1]], [[2]]]", [[[1]], [[2]]]),
        ("[1, true]", [1, True]),
        ("[1e31]", [1e31]),
        ("[]", []),
    ],
)
def test_regular_lists_of_numbers_are_arrays(text, expected):
    found = parse(b'{"x": %s}' % text.encode())["x"]
    assert type(found) is type(expected)
    assert np.array_equal(found, expected) if isinstance(found, np.ndarray) else found == expected
