"""What a user gets: the wheel in an empty environment, without torch and without the repository."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

pytestmark = pytest.mark.slow


def run(*command: object, cwd: Path, status: int = 0, given: str | None = None) -> subprocess.CompletedProcess[str]:
    bare = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "MUSTER", "NUMBA"))}
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=cwd, env=bare, input=given, capture_output=True, text=True, check=False)
    assert done.returncode == status, f"{' '.join(words)}\n{done.stdout}\n{done.stderr}"
    return done


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    # Built from a copy: the build leaves folders behind.
    source = folder / "source"
    run("git", "clone", "-q", ROOT, source, cwd=folder)
    run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--wheel-dir", folder, source, cwd=folder)
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def place(wheel: Path, tmp_path_factory) -> Path:
    """An empty folder with an environment that holds the wheel and its base dependencies alone."""
    folder = tmp_path_factory.mktemp("user")
    venv.create(folder / "env", with_pip=True)
    pip = (folder / "env" / "bin" / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check")
    run(*pip, "-c", ROOT / "constraints.txt", wheel, cwd=folder)
    return folder


def muster(place: Path, *arguments: object, status: int = 0, given: str | None = None) -> str:
    done = run(place / "env" / "bin" / "muster", *arguments, cwd=place, status=status, given=given)
    return done.stdout if status == 0 else done.stderr


def test_python_in_the_folder_of_a_clone_finds_the_installed_core(place):
    """The clone's sources, which have no core, come first there."""
    code = "import muster; print(muster.__file__, muster.assign([[2.0]]).objective)"
    said = run(place / "env" / "bin" / "python", "-c", code, cwd=ROOT).stdout
    assert said.split() == [str(ROOT / "muster" / "__init__.py"), "2.0"]


def test_the_wheel_holds_code_and_data_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    for data in (
        "muster/py.typed",
        "muster/envs/battle/units.toml",
        "muster/evaluation/viewer/replay.html",
        "muster/evaluation/viewer/player.js",
        "muster/evaluation/viewer/viewer.css",
        "muster/service/page/app.js",
        "muster/service/page/page.css",
        "muster/policy/shipped/rescue-2x4-quad-dm.safetensors",
        "muster/policy/shipped/rescue-2x4-quad-dm.json",
        "muster/policy/shipped/index.json",
    ):
        assert data in names
    assert {name.partition("/")[0].partition("-")[0] for name in names} <= {"muster", "muster_rl"}


def test_torch_is_not_there(place):
    run(place / "env" / "bin" / "python", "-c", "import torch", cwd=place, status=1)


def test_solving(place):
    found = json.loads(muster(place, "solve", "-", "--json", given='{"scores": [[3, 2], [2.5, 0.5]]}'))
    assert found["assignment"] == [1, 0]


def test_evaluating_a_shipped_policy_and_replaying_it(place):
    found = json.loads(muster(place, "evaluate", "rescue-2x4-quad-dm", "rescue:5x10", "--episodes", "20", "--json"))
    assert found["failed"] == 0
    muster(place, "replay", "rescue-2x4-quad-dm", "rescue:2x4", "--out", "replay.html")
    assert (place / "replay.html").stat().st_size > 1000


def test_learning_by_evolution_strategies(place):
    flags = ["--learner", "es", "--inference", "lp", "--steps", "20000", "--out", "run"]
    muster(place, "train", "rescue:2x4", *flags)
    found = json.loads(muster(place, "evaluate", "run", "rescue:2x4", "--episodes", "20", "--json"))
    assert found["mean"] is not None


def test_the_card_of_a_shipped_policy_prints(place):
    assert json.loads(muster(place, "card", "battle-w15v17-quad-dm", "--json", "--no-latency"))["results"]


def test_the_default_learner_needs_no_torch(place):
    muster(place, "train", "rescue:2x4", "--steps", "5000", "--out", "ppo")
    assert json.loads((place / "ppo" / "summary.json").read_text())["learner"] == "ppo"


def test_what_needs_torch_says_which_extra(place):
    said = muster(place, "train", "rescue:2x4", "--model", "pem", "--steps", "10", "--out", "other", status=2)
    assert "torch" in said
