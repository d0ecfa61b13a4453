"""Bodies that differ in their numbers alone are read by their form, and answered as if there were none."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from muster.service import acting, forms, scanning
from muster.service.forms import Filled, Forms, answer_together
from muster.service.served import serve_policies

RESCUE, FLEET = "rescue-2x4-quad-dm", "fleet-24-lp-dm"
SERVED = serve_policies((RESCUE, FLEET))


def read(data: Any) -> acting.Asked | None:
    return acting.quick_asked(data, SERVED, 250_000)


def body_of(policy: str, n: int, m: int, rng: np.random.Generator, **more: Any) -> dict[str, Any]:
    """A situation of any numbers; agents are listed one by one, tasks by columns."""
    names = SERVED[policy].features

    def block(*shape: int) -> Any:
        return rng.normal(size=shape).round(3).tolist()

    situation: dict[str, Any] = {
        "agents": [dict(zip(names.agent, block(len(names.agent)), strict=True)) for _ in range(n)],
        "tasks": {name: block(m) for name in names.task},
        "pairs": {name: block(n, m) for name in names.pair},
        "task_pairs": {name: block(m, m) for name in names.task_pair},
        "capacities": rng.integers(1, 4, m).tolist(),
    }
    if names.env:
        situation["world"] = dict(zip(names.env, block(len(names.env)), strict=True))
    if SERVED[policy].policy.spec.prior:
        situation["prior"] = block(n, m)
    return {"policy": policy, "situation": situation | more}


def without_time(answer: Any) -> dict[str, Any]:
    return {name: value for name, value in answer.items() if name != "seconds"}


@pytest.mark.parametrize("policy", [RESCUE, FLEET])
def test_what_is_read_by_form_is_answered_as_what_is_read_slowly(policy):
    rng, known, sizes = np.random.default_rng(0), Forms(read), [(2, 4), (3, 4)]
    extras = [
        lambda n, m: {},
        lambda n, m: {
            "contributions": rng.random((n, m)).tolist(),
            "allowed": (np.arange(n * m).reshape(n, m) % 3 > 0).tolist(),
        },
    ]
    for n, m in sizes:
        for extra in extras:
            texts = [json.dumps(body_of(policy, n, m, rng, **extra(n, m))).encode() for _ in range(5)]
            asked = [known.read(text) for text in texts]
            assert [isinstance(one, Filled) for one in asked] == [False, False, True, True, True]
            slowly = [without_time(acting.act(json.loads(text), SERVED, 250_000)) for text in texts]
            assert [without_time(answer) for answer in answer_together(asked)] == slowly
            assert [without_time(one.answer()) for one in asked] == slowly


def test_forms_of_several_kinds_are_answered_in_their_order():
    rng, known = np.random.default_rng(1), Forms(read)
    kinds = [(n, scores) for n in (2, 3) for scores in (False, True)]
    bodies = [body_of(RESCUE, n, 4, rng) | {"scores": scores} for _ in range(3) for n, scores in kinds]
    asked = [known.read(json.dumps(body).encode()) for body in bodies]
    assert [isinstance(one, Filled) for one in asked] == [False] * 8 + [True] * 4
    answers = [acting.act(body, SERVED, 250_000) for body in bodies]
    assert list(map(without_time, answer_together(asked))) == list(map(without_time, answers))


def test_plans_before_are_looked_at_each_time():
    known, rng = Forms(read), np.random.default_rng(2)
    for _ in range(4):
        text = json.dumps(body_of(RESCUE, 2, 4, rng, previous=[3, 0])).encode()
        assert isinstance(known.read(text), acting.Asked)
    with pytest.raises(acting.Refusal, match=r"previous\[0\]"):
        known.read(text.replace(b"[3, 0]", b"[4, 0]"))


def test_switch_costs_are_looked_at_each_time():
    known, rng = Forms(read), np.random.default_rng(2)
    text = json.dumps(body_of(RESCUE, 2, 4, rng, switch_cost=0)).encode()
    for _ in range(4):
        assert isinstance(known.read(text), acting.Asked)
    with pytest.raises(acting.Refusal, match="give previous too"):
        known.read(text.replace(b'"switch_cost": 0', b'"switch_cost": 5'))


def test_no_more_forms_are_kept_than_there_is_room_for():
    known, rng = Forms(read), np.random.default_rng(3)
    for n in range(1, 30):
        for m in range(1, 8):
            known.read(json.dumps(body_of(RESCUE, n, m, rng)).encode())
    assert len(known._known) == forms.MOST_FORMS


def test_outlines_tell_apart_all_but_numbers_and_spaces():
    bodies = (
        b'{"a":[1,2],"b":"x"}',
        b'{"a":[1,2],"b":"y"}',
        b'{"c":[1,2],"b":"x"}',
        b'{"a":[1,2,3],"b":"x"}',
        b'{"a":[[1,2]],"b":"x"}',
        b'{"a":[[1],[2]],"b":"x"}',
        b'{"a":1,"b":"x"}',
        b'{"a":true,"b":"x"}',
        b'{"a":false,"b":"x"}',
        b'{"a":null,"b":"x"}',
        b'{"a":{"b":"x"}}',
        b'{"a":[],"b":"x"}',
        b'{"b":"x","a":[1,2]}',
        b'{"ab":"x"}',
        b'{"a":"bx"}',
    )
    outlines = {outline(body) for body in bodies}
    assert len(outlines) == len(bodies)
    assert outline(b'{"a": [-0.5, 2e3], "b": "x"}') == outline(bodies[0])


def outline(body: bytes) -> bytes:
    tape = scanning.taped(body)
    assert tape is not None
    return forms.outline_of(tape, body)


def test_every_number_that_is_plain_is_one_that_features_may_have():
    assert scanning.LARGEST <= acting.MOST
