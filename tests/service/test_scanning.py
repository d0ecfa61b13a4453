"""The quick reader of plain JSON: whatever it reads, it reads as the slow one does."""

import json
import random
from typing import Any

import jiter
import numba
import numpy as np
import pytest

from muster.service.decimals import decimal
from muster.service.scanning import scanned

BODIES = (
    b'{"a":[1,2.5],"b":[[1,2],[3,4.5]],"c":"x","d":true,"e":null,"f":-3.25e2,"g":[],"h":{"k":[{"z":1},{"z":2}]}}',
    b' {"x" : [ -0.0 , 1E+2, 10 , -0], "y":["p", "q", false], "cube": [[[1,2]],[[3,4],[5,6]]]}\n',
    b"[[0.1,0.2],[3,4]]",
    b'{"long":[0.12345678901234567,5.551115123125783e-17,123456789012345.678,1e-44,9007199254740991]}',
)
LETTERS = b'{}[]",:.-+eE0123456789 truefalsn\\\x00\n\xc3xNaI'


@numba.njit
def decimals(m: Any, e: Any) -> Any:
    found = np.empty(len(m))
    for i in range(len(m)):
        found[i] = decimal(m[i], e[i])
    return found


def as_lists(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, dict):
        return {name: as_lists(entry) for name, entry in value.items()}
    return [as_lists(entry) for entry in value] if isinstance(value, list) else value


@pytest.mark.parametrize("body", BODIES)
def test_plain_bodies_are_read(body):
    assert as_lists(scanned(body)) == json.loads(body)


def test_lists_of_numbers_are_arrays_whole_where_written_so():
    found = scanned(b'{"whole":[1,2],"not":[1,2.0],"rows":[[1],[2]]}')
    assert [found[name].dtype for name in ("whole", "not", "rows")] == [np.int64, np.float64, np.int64]
    assert found["rows"].shape == (2, 1)


def test_damaged_bodies_are_read_as_the_slow_reader_does_or_not_at_all():
    rng, read = random.Random(0), 0
    for _ in range(20_000):
        body = bytearray(rng.choice(BODIES))
        for _ in range(rng.randint(1, 3)):
            k, change = rng.randrange(len(body)), rng.randrange(3)
            if change == 0:
                body[k] = rng.choice(LETTERS)
            elif change == 1 and len(body) > 1:
                del body[k]
            else:
                body.insert(k, rng.choice(LETTERS))
        found = scanned(bytes(body))
        if found is not None:
            read += 1
            assert as_lists(found) == jiter.from_json(bytes(body), catch_duplicate_keys=True), body
    assert read > 1000


@pytest.mark.parametrize(
    "body",
    [
        *(
            b"[1, %s]" % entry
            for entry in (b"NaN", b"1e400", b'"3.5"', b"true", b"null", b"01", b"1.", b".5", b"+1", b"-")
        ),
        b'{"a":1,"a":2}',
        b"[[1,2],[3]]",
        b"[[1,2],3]",
        b"[1e31]",
        b"[" * 9 + b"]" * 9,
        b'{"a":[1,2]} x',
        b'{"a":[1,2]',
        b'"\\u0041"',
        b"",
    ],
)
def test_what_is_not_plain_is_left_to_the_slow_reader(body):
    assert scanned(body) is None


def test_decimals_are_the_nearest_doubles():
    rng = random.Random(1)
    cases = [(rng.randrange(10 ** rng.randint(1, 18)), rng.randint(-46, 46)) for _ in range(20_000)]
    for _ in range(20_000):
        mantissa, _, exponent = f"{abs(rng.gauss(0, 1)) * 10 ** rng.randint(-12, 12):.16e}".partition("e")
        cases.append((int(mantissa.replace(".", "")), int(exponent) - 16))
    # Next to the middle between two doubles, and in it.
    cases += [(2 * rng.randrange(2**52, 2**53) + rng.randint(0, 1), 0) for _ in range(5_000)]
    cases += [(2**k + sign, e) for k in range(59) for sign in (-1, 0, 1) for e in range(-44, 45)]
    found = decimals(*np.array(cases).T)
    settled = ~np.isnan(found)
    wanted = np.array([float(f"{m}e{e}") for m, e in cases])
    np.testing.assert_array_equal(found[settled], wanted[settled])
    assert settled[:40_000][np.abs(np.array(cases)[:40_000, 1]) <= 44].mean() > 0.99
