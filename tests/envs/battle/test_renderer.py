"""Battles to look at: pictures and text."""

from __future__ import annotations

import numpy as np

from muster.envs.battle import layout as lay
from muster.evaluation.packing import bounds_of
from muster.evaluation.replay import film, record
from muster.evaluation.writers import follow

from .conftest import begin, fight


def test_draw_shows_what_has_changed() -> None:
    env = fight(begin("m3v3", 2), "c", 15)
    renderer = env.renderer()
    before = renderer.draw(1)
    assert before.shape == (556, 512, 3)
    fight(env, "c", 1)
    after = renderer.draw(1)
    assert after.shape == before.shape
    assert after.tobytes() != before.tobytes()


def test_the_camera_follows_and_never_loses_a_live_unit() -> None:
    shown = film(record("c", "battle:w8v8"))
    boxes, whole = np.array(follow(shown)), bounds_of(shown.moments)
    assert len(boxes) > 20
    # It comes nearer than one picture of the whole battle would, and moves little from decision to decision.
    assert (boxes[:, 2] - boxes[:, 0]).min() < 0.8 * (whole[2] - whole[0])
    assert np.abs(np.diff(boxes, axis=0)).max() < 0.1 * (whole[2] - whole[0])
    for (left, top, right, bottom), moment in zip(boxes, shown.moments, strict=True):
        for places, alive in ((moment.scene.agents, moment.agent_alive), (moment.scene.tasks, moment.task_alive)):
            x, y = np.asarray(places)[alive].T
            assert ((x > left) & (x < right) & (y > top) & (y < bottom)).all()


def test_text_shows_how_many_are_left_and_where() -> None:
    env = begin("zh2v1", 2)
    head, *board = env.renderer().describe(1).splitlines()
    assert head == "4 v 2, 0.0 s"
    assert len({len(row) for row in board}) == 1
    assert len(board) <= 24
    assert len(board[0]) <= 72
    letters = "".join(board).replace(".", "")
    assert sorted(letters.lower()) == sorted("zzhhzh") or set(letters) & set("23!*")


def test_crowds_are_counted_on_the_map() -> None:
    env = begin("m12v2", 1)
    renderer = env.renderer()
    units = env.units[0]
    units[lay.PX, :] = 1000
    units[lay.PY, :] = 1000
    units[lay.PX, 12:] = 1100
    units[lay.PX, 9:12] = 1050
    _, board, *_ = renderer.describe(0).splitlines()
    assert board.replace(".", "") == "93!"
    units[lay.PX, :] = 1000
    assert renderer.describe(0).splitlines()[1] == "*"
