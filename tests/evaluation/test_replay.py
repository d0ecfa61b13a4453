from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import muster
from muster.errors import InputError
from muster.evaluation.replay import record, writer
from muster.policy.names import resolve


def replay(**options):
    env = muster.make("rescue:2x3,grid=6")
    return record(resolve("topline", env), env, seed=4, **options)


def test_a_recorded_episode_plays_again():
    kept = replay().as_dict()
    env = muster.make(kept["env"], 1, kept["seed"])
    rewards = [env.step(np.array([assignment])).reward[0] for assignment in kept["assignments"]]
    assert rewards == kept["rewards"]
    assert env.outcome()[0] == kept["outcome"]
    assert not env.waiting.any()


def test_a_gif_glides_from_step_to_step(tmp_path: Path):
    found = replay()
    path = tmp_path / "replay.gif"
    writer(path)(found, path)
    with Image.open(path) as picture:
        assert picture.format == "GIF"
        # Pillow merges frames that are equal, so at most four a step.
        assert len(found.assignments) < picture.n_frames <= 1 + 4 * len(found.assignments)


def test_a_page_holds_everything(tmp_path: Path):
    path = tmp_path / "replay.html"
    found = replay()
    writer(path)(found, path)
    page = path.read_text()
    assert "/*REPLAY*/" not in page
    assert "http" not in page
    data = json.loads(page.split("const replay = ")[1].split(";\n")[0])
    assert len(data["pictures"]) == 1 + len(found.assignments)


def test_json_needs_no_pictures(tmp_path: Path):
    path = tmp_path / "replay.json"
    writer(path)(replay(pictures=False), path)
    assert json.loads(path.read_text())["policy"] == "topline"


@pytest.mark.parametrize(
    ("name", "complaint"), [("x.mp4", "no replay format '.mp4'"), ("none/x.gif", "there is no folder")]
)
def test_a_file_that_cannot_be_written_is_refused_first(tmp_path: Path, name: str, complaint: str):
    with pytest.raises(InputError, match=complaint):
        writer(tmp_path / name)
