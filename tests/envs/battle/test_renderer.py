"""Battles to look at: pictures, what lies between two decisions, and text."""

from __future__ import annotations

import numpy as np

from muster.envs.battle import layout as lay
from muster.envs.battle.pictures import follow, view_box

from .conftest import begin, fight


def test_draw_gives_a_picture_at_any_moment() -> None:
    env = fight(begin("m3v3", 2), "c", 15)
    renderer = env.renderer()
    assert renderer.draw(1).size == (840, 480)


def test_the_pictures_between_lead_to_the_next_state() -> None:
    """Half of a decision run again from the state before it, and its whole as it is now."""
    env = fight(begin("w3v3", 2), "attack-move", 30)
    renderer = env.renderer()
    before = env.get_state()
    fight(env, "attack-move", 1)
    after = env.get_state()
    middle, end = renderer.animate(before, 1)
    assert end == renderer.draw(1)
    assert middle != end
    assert all((env.get_state()[name] == after[name]).all() for name in after)
    orders = env.units[:, lay.PREVIOUS, : env.n_agents].astype(np.int64)
    env.set_state(before)
    assert middle != renderer.draw(1)
    env.run_frames(orders, 3)
    assert middle == renderer.draw(1)
    env.set_state(before)
    env.run_frames(orders)
    assert all((env.get_state()[name] == after[name]).all() for name in after)


def test_the_camera_follows_and_never_loses_a_live_unit() -> None:
    env = begin("w8v8", 1)
    renderer = env.renderer()
    states = [env.get_state()]
    while env.running()[0] and len(states) < 200:
        fight(env, "c", 1)
        states.append(env.get_state())
    boxes = follow(np.stack([state["units"][0] for state in states]))
    assert len(states) > 20
    # It comes nearer than one picture of the whole battle would, and moves little from decision to decision.
    whole = view_box(np.stack([state["units"][0] for state in states]))
    assert (boxes[:, 2] - boxes[:, 0]).min() < 0.8 * (whole[2] - whole[0])
    assert np.abs(np.diff(boxes, axis=0)).max() < 0.1 * (whole[2] - whole[0])
    for (left, top, right, bottom), state in zip(boxes, states, strict=True):
        units = state["units"][0]
        lives = units[lay.ALIVE] != 0
        assert ((units[lay.PX] > left) & (units[lay.PX] < right))[lives].all()
        assert ((units[lay.PY] > top) & (units[lay.PY] < bottom))[lives].all()
    alone = renderer.draw(0)
    renderer.frame(states, 0, "c")
    assert renderer.draw(0) != alone
    renderer.frame([], 0)
    assert renderer.draw(0) == alone


def test_text_shows_where_everyone_is_and_what_is_left_of_them() -> None:
    env = begin("zh2v1", 2)
    renderer = env.renderer()
    text = renderer.describe(1)
    head, *board, ours, theirs = text.splitlines()
    assert head == "frame 0, 4 of ours v 2 of theirs"
    assert ours == "ours: zergling 35 35 hydralisk 80 80"
    assert theirs == "theirs: zergling 35 hydralisk 80"
    assert len({len(row) for row in board}) == 1
    assert len(board) <= 24
    assert len(board[0]) <= 72
    letters = "".join(board).replace(".", "")
    assert sorted(letters.lower()) == sorted("zzhhzh") or set(letters) & set("23!*")


def test_text_tells_the_dead() -> None:
    env = fight(begin("m4v1", 1), "c", 200)
    renderer = env.renderer()
    head, *_, ours, theirs = renderer.describe(0).splitlines()
    assert head.endswith("of ours v 0 of theirs")
    assert theirs == "theirs: marine -"
    assert "-" not in ours.split()[2:3]


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
