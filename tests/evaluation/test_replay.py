"""Episodes that are kept: they can be run again, read back, they can be looked at."""

from __future__ import annotations

import dataclasses
import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageColor

import muster
from muster.envs.scene import RED
from muster.errors import InputError, MissingExtraError, UnknownNameError
from muster.evaluation.replay import Replay, record, state_hash
from muster.evaluation.writers import pictures_of, shortened, writer
from muster.policy.names import resolve

ENVS = [
    ("topline", "rescue:2x3,grid=6"),
    ("closest", "rescue:2x3,grid=6,random_moves=true"),
    ("wcnoks", "battle:w3v3"),
    ("rand-nc", "battle:m3v3,latency=3"),
    ("fullest", "examples.delivery:Delivery"),
]


def replay() -> Replay:
    return record("topline", "rescue:2x3,grid=6", seed=4)


@pytest.mark.parametrize(("policy", "env"), ENVS)
def test_every_environment_is_kept_and_plays_again_to_the_same_end(tmp_path: Path, policy: str, env: str):
    kept = record(policy, env, seed=5)
    path = tmp_path / "replay.json"
    writer(path)([kept], muster.make(env), path)
    read = Replay.load(path)
    assert read.as_dict() == kept.as_dict()
    assert read.verify()


@pytest.mark.parametrize(("policy", "env"), ENVS)
def test_a_changed_assignment_does_not_verify(policy: str, env: str):
    kept = record(policy, env, seed=5)
    changed = kept.assignments.copy()
    changed[: len(changed) // 2 + 1] = -1
    assert not dataclasses.replace(kept, assignments=changed).verify()
    assert not dataclasses.replace(kept, seed=6).verify()
    longer = np.concatenate([kept.assignments, kept.assignments[-1:]])
    assert not dataclasses.replace(kept, assignments=longer).verify()


@pytest.mark.parametrize("env", ["rescue:2x3,grid=6", "battle:w3v3", "examples.delivery:Delivery"])
def test_what_a_slot_held_before_leaves_no_trace(env: str):
    """The hash is of the episode, not of the arrays that happen to hold it."""
    name = next(iter(muster.make(env).baselines()))
    made = muster.make(env, 2)
    first = record(name, made, seed=1)
    record(name, made, seed=2)
    assert record(name, made, seed=1).hash == first.hash
    assert first.verify()
    assert state_hash(made) == first.hash


def test_a_replay_is_what_was_played():
    kept = replay()
    env = muster.make(kept.env, 1, kept.seed)
    acting = resolve("topline", env)
    acting.reset(np.arange(1), np.zeros(1, np.uint64))
    for assignment, reward in zip(kept.assignments, kept.rewards, strict=True):
        chosen = acting.act(env.observe())
        assert chosen[0].tolist() == assignment.tolist()
        assert env.step(chosen).reward[0] == reward
    assert env.outcome()[0] == kept.outcome == len(kept.assignments)
    assert not env.unsolved.any()


def test_an_unfinished_episode_is_kept_as_truncated():
    kept = record("closest", "rescue:1x6,max_steps=3")
    assert kept.truncated
    assert len(kept.assignments) == 3
    assert kept.verify()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nonsense", "cannot read"),
        ("[]", "no replay"),
        ("{}", "no replay"),
        ('{"format": "muster-replay-1"}', "format muster-replay-1; record it again"),
        ('{"format": "muster-replay-2"}', "damaged: KeyError 'env'"),
    ],
)
def test_what_is_no_replay_is_refused(tmp_path: Path, text: str, message: str):
    path = tmp_path / "replay.json"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        Replay.load(path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("seed", "5"),
        ("hash", None),
        ("assignments", [[0, 1], [0]]),
        ("assignments", [[0.5, 1.0]]),
        ("assignments", []),
        ("rewards", [1.0]),
        ("outcome", "many"),
    ],
)
def test_a_damaged_replay_is_refused(tmp_path: Path, name: str, value: object):
    document = replay().as_dict()
    document[name] = value
    path = tmp_path / "replay.json"
    path.write_text(json.dumps(document))
    with pytest.raises(InputError, match="damaged"):
        Replay.load(path)


def test_a_replay_of_another_environment_is_refused():
    with pytest.raises(InputError, match=r"2 agents cannot run in rescue:3x6, which has 3"):
        replay().verify(muster.make("rescue:3x6"))


def test_a_task_that_there_is_not_is_refused():
    kept = replay()
    with pytest.raises(InputError, match="tasks are -1 to 2, got 9"):
        dataclasses.replace(kept, assignments=np.full_like(kept.assignments, 9)).verify()


def test_an_unknown_policy_gets_a_suggestion():
    with pytest.raises(UnknownNameError, match="did you mean"):
        record("wcnokss", "battle:m2v2")


def frames_of(path: Path) -> tuple[int, int]:
    """How many, and how many milliseconds they take together."""
    with Image.open(path) as picture:
        assert picture.format == "GIF"
        total = 0
        for k in range(picture.n_frames):
            picture.seek(k)
            total += picture.info["duration"]
        return picture.n_frames, total


def test_a_gif_glides_from_step_to_step(tmp_path: Path):
    """Three pictures a step, at 400 ms, and the end; Pillow merges equal neighbours and adds up their times."""
    found = replay()
    env = muster.make(found.env)
    steps = pictures_of(found, env)
    assert [len(step) for step in steps] == [3] * len(found.assignments) + [1]
    path = tmp_path / "replay.gif"
    writer(path)([found], env, path)
    count, milliseconds = frames_of(path)
    drawn = [picture.tobytes() for step in steps for picture in step]
    assert count == 1 + sum(a != b for a, b in itertools.pairwise(drawn))
    # A GIF counts hundredths of a second: 130 for each third of 400 ms.
    assert milliseconds == 3 * 130 * len(found.assignments) + 2000


def test_a_gif_keeps_the_colours_of_small_things(tmp_path: Path):
    """Requests are red and few beside the zones of a city; a palette by frequency would make them brown."""
    found = record("match", "fleet:8,city=small,minutes=15", seed=1)
    path = tmp_path / "replay.gif"
    writer(path)([found], muster.make(found.env), path)
    with Image.open(path) as picture:
        picture.seek(picture.n_frames // 2)
        shown = np.asarray(picture.convert("RGB")).astype(int)
    assert np.abs(shown - ImageColor.getrgb(RED)).sum(-1).min() < 30


def test_a_battle_moves_at_the_pace_of_the_game(tmp_path: Path):
    found = record("c", "battle:m2v2", seed=2)
    path = tmp_path / "replay.gif"
    writer(path)([found], muster.make(found.env), path)
    _, milliseconds = frames_of(path)
    decisions = len(found.assignments)
    assert milliseconds == pytest.approx(250 * decisions + 2000, rel=0.05)


@pytest.mark.parametrize(("pictures", "each"), [(10, 100), (99, 100), (102, 100), (700, 83), (5000, 20)])
def test_a_gif_takes_at_most_twelve_seconds(pictures: int, each: int):
    shown, durations = shortened([each] * pictures)
    assert sum(durations) <= 12_000
    assert min(durations) >= min(each, 40)
    assert shown == sorted(set(shown))
    assert (shown[0], shown[-1]) == (0, pictures - 1)
    if pictures * each > 12_000:
        assert sum(durations) >= 9_000


@pytest.mark.parametrize(
    ("name", "complaint"), [("x.mp4", "no replay format '.mp4'"), ("none/x.gif", "there is no folder")]
)
def test_a_file_that_cannot_be_written_is_refused_first(tmp_path: Path, name: str, complaint: str):
    with pytest.raises(InputError, match=complaint):
        writer(tmp_path / name)


@pytest.mark.parametrize("name", ["x.gif", "x.json"])
def test_two_policies_need_a_page(tmp_path: Path, name: str):
    with pytest.raises(InputError, match="two policies side by side need a page"):
        writer(tmp_path / name, 2)


def test_a_moving_picture_without_pillow_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr("muster.evaluation.writers.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"replay\.gif needs more .*or write a page such as replay\.html"):
        writer(tmp_path / "replay.gif")
