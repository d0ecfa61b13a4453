"""Battles to look at: pictures, what lies between two decisions, and text."""

from __future__ import annotations

import numpy as np

from muster.envs.battle import layout as lay
from muster.envs.battle.pictures import view_box

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


def test_a_framed_battle_keeps_its_part_of_the_map() -> None:
    env = begin("m3v3", 1)
    renderer = env.renderer()
    first = env.get_state()
    fight(env, "c", 60)
    states = [first, env.get_state()]
    alone = renderer.draw(0)
    renderer.frame(states, 0, "c")
    assert renderer.draw(0) != alone
    left, top, right, bottom = view_box(np.stack([state["units"][0] for state in states]))
    for state in states:
        lives = state["units"][0][lay.ALIVE] != 0
        assert ((state["units"][0][lay.PX] > left) & (state["units"][0][lay.PX] < right))[lives].all()
        assert ((state["units"][0][lay.PY] > top) & (state["units"][0][lay.PY] < bottom))[lives].all()
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
