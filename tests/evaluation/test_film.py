"""Episodes as scenes: what is packed comes back, a page holds it all, and nothing an env says becomes HTML."""

from __future__ import annotations

import base64
import json
import re
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import muster
from muster.envs.renderer import Renderer
from muster.envs.scene import Look, Scene, Stage
from muster.errors import InputError
from muster.evaluation.packing import pack, step_of, varints
from muster.evaluation.replay import film, record, shares
from muster.evaluation.viewer import MODULES, page, read, script
from muster.evaluation.writers import writer

ENVS = [
    ("closest", "rescue:3x5,grid=9"),
    ("c", "battle:w5v6"),
    ("greedy", "fleet:6,city=small,minutes=6"),
    ("closest", "pursuit:4x2,max_steps=12"),
    ("fullest", "examples.delivery:Delivery"),
    ("worth", "examples.warehouse:Warehouse,steps=5"),
    ("nearest", "examples.couriers:Couriers"),
]


def numbers_of(data: bytes) -> list[int]:
    """What `varints` wrote, read byte by byte."""
    found, value, shift = [], 0, 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            found.append(-((value + 1) >> 1) if value & 1 else value >> 1)
            value = shift = 0
    return found


def fields_of(packed: dict, which: int = 0) -> dict[str, np.ndarray]:
    """The fields of a packed film, as viewer/unpack.js reads them."""
    entry = packed["films"][which]
    numbers = np.array(numbers_of(zlib.decompress(base64.b64decode(entry["data"]))))
    fields, begin = {}, 0
    for name, rows, columns in entry["fields"]:
        fields[name] = numbers[begin : begin + rows * columns].reshape(rows, columns).cumsum(0)
        begin += rows * columns
    assert begin == len(numbers)
    return fields


@given(st.lists(st.integers(-(2**40), 2**40), min_size=1, max_size=50))
def test_numbers_come_back_from_bytes(values: list[int]):
    assert numbers_of(varints(np.array(values))) == values


@pytest.mark.parametrize(("policy", "env"), ENVS)
def test_what_is_packed_is_what_was_played(policy: str, env: str):
    kept = record(policy, env, seed=3)
    found = film(kept)
    packed = pack([found])
    fields = fields_of(packed)
    assert len(found.moments) == len(kept.assignments) + 1
    assert packed["seconds"] == pytest.approx(min(found.seconds_per_step, 12.0 / len(kept.assignments)))
    assert fields["assignment"][:-1].tolist() == np.maximum(kept.assignments, -1).tolist()
    box = packed["stage"]["bounds"]
    for row, moment in enumerate(found.moments):
        for side, places, alive in (
            ("agents", moment.scene.agents, moment.agent_alive),
            ("tasks", moment.scene.tasks, moment.task_alive),
        ):
            shown = np.asarray(places)[alive[: len(places)]]
            read_back = fields[side][row].reshape(-1, 2)[alive] * step_of(box) + box[:2]
            assert read_back == pytest.approx(shown, abs=0.51 * step_of(box) + 2e-4)
        assert fields["task_alive"][row].tolist() == moment.task_alive.astype(int).tolist()
    json.dumps(packed, allow_nan=False)


def test_a_battle_ends_with_the_units_left_on_both_sides():
    found = film(record("c", "battle:w5v6"))
    ours, theirs = found.moments[-1].agent_alive.sum(), found.moments[-1].task_alive.sum()
    assert min(ours, theirs) == 0 < max(ours, theirs)
    packed = pack([found])
    assert packed["films"][0]["ending"].endswith(f" decisions, {ours} v {theirs}")
    assert f"{ours} v {theirs}" in packed["verdict"]["title"]


def test_the_observed_and_the_shown_are_in_the_same_places():
    """A scene is no second truth: distances in it are those that the environment goes by."""
    env = muster.make("battle:w5v6", 1, seed=2)
    scene, seen = env.renderer().scene(0), env.observe()
    way = np.linalg.norm(np.asarray(scene.agents)[:, None] - np.asarray(scene.tasks), axis=-1)
    features = seen.agent_features[0, :, None, 1:3] - seen.task_features[0, None, :, 1:3]
    assert way == pytest.approx(64 * np.linalg.norm(features, axis=-1), abs=0.1)
    env = muster.make("rescue:3x5", 1, seed=2)
    assert np.asarray(env.renderer().scene(0).agents).tolist() == (env.agent_cells[0][:, ::-1] + 0.5).tolist()


def test_shots_are_of_living_shooters_at_the_other_side():
    kept = record("c", "battle:w5v6", seed=1)
    found = film(kept)
    n = kept.assignments.shape[1]
    shots = [(row, *shot) for row, moment in enumerate(found.moments) for shot in moment.scene.shots]
    assert len(shots) > 20
    for row, source, target, when in shots:
        assert (source < n) != (target < n)
        assert 0 <= when <= 1
        moment = found.moments[row - 1]
        assert np.concatenate([moment.agent_alive, moment.task_alive])[int(source)]
    hurt = sum(np.sum(moment.scene.task_health) for moment in found.moments[-1:])
    assert hurt < len(found.moments[0].task_alive)


def test_a_crowd_is_one_agent_too_many():
    """By definition: the task would be full without its smallest contribution."""
    env = muster.make("rescue:3x2", 1)
    load, crowded = shares(env.observe(), 0, np.array([0, 0, 1]))
    assert load.tolist() == [2.0, 1.0]
    assert crowded.tolist() == [True, False]
    env = muster.make("battle:w5v2", 1)
    seen = env.observe()
    hits = int(np.ceil(seen.capacities[0, 0] / seen.contributions[0, 0, 0]))
    assert hits > 5
    assert not shares(seen, 0, np.zeros(5, int))[1].any()


@pytest.mark.parametrize("env", ["examples.delivery:Delivery", "rescue:2x3,grid=6"])
def test_an_environment_that_says_nothing_is_still_shown(env: str):
    made = muster.make(env, 1)
    scene = Renderer(made).scene(0)
    assert np.asarray(scene.agents).shape == (made.n_agents, 2)
    places = np.concatenate([scene.agents, scene.tasks])
    assert len(np.unique(places, axis=0)) == len(places)


class Odd(muster.Env):
    n_agents, n_tasks = 2, 3

    def __init__(self, what: str = "fine"):
        self.what = what

    def reset(self, rng):
        self.t = 0

    def observe(self):
        return muster.Observation(np.zeros((2, 1)), np.zeros((3, 1)))

    def step(self, assignment):
        self.t += 1
        return 0.0, self.t == 2

    def scene(self):
        places = {"nan": [[0, np.nan], [1, 1]], "many": np.zeros((4, 2)), "flat": [1, 2]}.get(
            self.what, [[0, 0], [1, 1]]
        )
        stage = Stage((Look("</script><b>a", "disc", "red" if self.what == "colour" else "#123456"), Look("t")))
        return 7 if self.what == "none" else Scene(places, np.eye(3, 2), stage=stage, text="</script><img src=x>")

    @classmethod
    def baselines(cls):
        return {"none": lambda view: np.full(2, -1)}


@pytest.mark.parametrize(
    ("what", "complaint"),
    [
        ("nan", "agents of the scene of .* must be finite"),
        ("many", "has 4 agents, but the environment at most 2"),
        ("flat", "must be x and y of each"),
        ("colour", "written #rrggbb, got 'red'"),
        ("none", "must return a Scene, got int"),
    ],
)
def test_a_scene_that_nothing_can_be_drawn_of_is_refused(what: str, complaint: str):
    with pytest.raises(InputError, match=complaint):
        muster.make(Odd, what=what).renderer().scene(0)


class InPlace(Odd):
    """Moves its agents in the array that its scenes were made of."""

    def reset(self, rng):
        super().reset(rng)
        self.places = np.zeros((2, 2))

    def step(self, assignment):
        self.places += 1.0
        return super().step(assignment)

    def scene(self):
        return Scene(self.places, np.eye(3, 2))


def test_scenes_keep_their_moment_where_an_environment_changes_its_arrays_in_place():
    env = muster.make(InPlace)
    found = film(record("none", env), env)
    assert [float(np.asarray(moment.scene.agents)[0, 0]) for moment in found.moments] == [0.0, 1.0, 2.0]


def test_names_of_an_environment_stay_text(tmp_path: Path):
    env = muster.make(Odd)
    path = tmp_path / "odd.html"
    writer(path)([record("none", env)], env, path)
    written = path.read_text()
    inside = re.search(r'<script type="application/json" id="film">(.*?)</script>', written, re.S)
    assert inside is not None
    assert json.loads(inside[1])["films"][0]["texts"][0] == "</script><img src=x>"
    assert "<img" not in written.replace(inside[1], "")


def test_a_page_needs_nothing_else(tmp_path: Path):
    kept = record("closest", "rescue:3x5,grid=9")
    written = page(pack([film(kept), film(record("topline", "rescue:3x5,grid=9"))]))
    # The name of what is drawn in; nothing is fetched from there.
    written = written.replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?:|src=|href=|^import |^export |/\*(FILM|SCRIPT|STYLE)\*/", written, re.M)
    assert "default-src 'none'" in written


def test_a_large_battle_is_a_small_page():
    """The bound of the service's promise, on the policy with the longest battle of the two."""
    written = page(pack([film(record("c", "battle:w80v82"))]))
    assert len(written.encode()) < 500_000


def test_every_module_is_inlined_after_what_it_imports():
    before: set[str] = set()
    for name in MODULES:
        wanted = set(re.findall(r'^import .* from "\./(\w+)\.js";$', read(f"{name}.js"), re.M))
        assert wanted <= before, f"{name}.js imports {wanted - before}, which comes later"
        before.add(name)
    names = re.findall(r"^(?:async )?(?:const|let|class|function) (\w+)", script(), re.M)
    assert len(names) == len(set(names)), "two modules declare one name"
