"""Pictures and replays."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image

from muster.envs.battle.replay import Replay, record
from muster.errors import InputError, UnknownNameError

from .conftest import begin, fight


def test_a_replay_plays_again_to_the_same_end(tmp_path: Path) -> None:
    replay = record("battle:w4v4", "wcnoks", seed=5)
    assert replay.verify()
    path = tmp_path / "replay.json"
    replay.save(path)
    assert Replay.load(path) == replay
    assert path.stat().st_size < 20_000


def test_a_changed_assignment_changes_the_hash() -> None:
    replay = record("m3v3", "c", seed=1)
    changed = [list(row) for row in replay.assignments]
    changed[4] = [-2, -2, -2]
    assert not Replay(replay.env, replay.policy, replay.seed, changed, replay.hash).verify()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nonsense", "cannot read"),
        ("{}", "not a battle replay"),
        ('{"format": "muster-battle-replay", "version": 99}', "version 99"),
        ('{"format": "muster-battle-replay", "version": 1}', "damaged"),
    ],
)
def test_bad_replays_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "replay.json"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        Replay.load(path)


def test_a_replay_with_a_foreign_agent_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "replay.json"
    record("m2v1", "c").save(path)
    document = json.loads(path.read_text())
    document["assignments"][0] = [9, 0]
    path.write_text(json.dumps(document))
    with pytest.raises(InputError, match="damaged"):
        Replay.load(path)


def test_an_unknown_heuristic_gets_a_suggestion() -> None:
    with pytest.raises(UnknownNameError, match="did you mean"):
        record("m2v2", "wcnokss")


def test_a_gif_shows_the_battle(tmp_path: Path) -> None:
    path = tmp_path / "battle.gif"
    record("zh1v1", "c", seed=2).to_gif(path, every=12)
    with Image.open(path) as picture:
        assert picture.format == "GIF"
        assert picture.n_frames > 3


def test_draw_gives_a_picture_at_any_moment() -> None:
    env = fight(begin("m3v3", 2), "c", 15)
    assert env.draw(1).size == (840, 480)
