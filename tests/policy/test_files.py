"""Policy files: what is written is read back; anything else is a typed error, at once."""

import dataclasses
import json
import pickle
import struct
import time

import numpy as np
import pytest
from safetensors.numpy import save_file

import muster
from muster.assign.settings import InferenceSettings
from muster.envs.battle import layout as lay
from muster.errors import InputError, ModelFileError
from muster.models.direct import init_parameters
from muster.models.spec import ModelSpec
from muster.policy.learned import LearnedPolicy
from muster.policy.settings import NoiseSettings


@pytest.fixture
def policy():
    spec = ModelSpec.of(muster.make("rescue:2x4").observe(), "dm", True)
    parameters = init_parameters(spec, np.random.default_rng(0))
    return LearnedPolicy(
        "p", spec, parameters, InferenceSettings(assign_all=True), NoiseSettings(0.5, 3), {"env": "rescue:2x4"}
    )


@pytest.fixture
def path(policy, tmp_path):
    policy.save(tmp_path / "p.safetensors")
    return tmp_path / "p.safetensors"


def test_a_policy_survives_its_file(policy, path):
    again = LearnedPolicy.load(path)
    assert again.spec == policy.spec
    assert again.inference == policy.inference
    assert again.noise == policy.noise
    observation = muster.make("rescue:5x10", 8).observe()
    assert (again.act(observation) == policy.act(observation)).all()


def test_the_first_files_of_lp_mean_by_fast_what_paper_means_now(policy, tmp_path):
    learned_then = policy.with_inference(method="lp")
    path = tmp_path / "lp.safetensors"
    learned_then.save(path)
    assert LearnedPolicy.load(path).inference == learned_then.inference
    rewrite(path, lambda header, tensors: (header.pop("seal"), header.update(version=1)))
    assert LearnedPolicy.load(path).inference == dataclasses.replace(learned_then.inference, effort="paper")
    LearnedPolicy.load(path).with_inference(effort="fast").save(path)
    assert LearnedPolicy.load(path).inference.effort == "fast"


def test_a_policy_runs_on_larger_environments_and_is_the_same_in_any_batch(path):
    results = [
        muster.evaluate(str(path), "rescue:4x6", episodes=20, batch=batch, noise=noise).records.outcome
        for noise in (False, True)
        for batch in (1, 7, 20)
    ]
    for found in results[1:3]:
        assert (found == results[0]).all()
    for found in results[4:]:
        assert (found == results[3]).all()
    assert not (results[3] == results[0]).all()


def test_a_centred_model_does_not_see_where_the_battle_is(tmp_path):
    env = muster.make("battle:zh3v4", 4)
    spec = ModelSpec.of(env.observe(), "dm", True, centred=env.positions)
    parameters = init_parameters(spec, np.random.default_rng(1))
    header = {"env": "battle:zh3v4"}
    LearnedPolicy("p", spec, parameters, InferenceSettings(), NoiseSettings(), header).save(tmp_path / "p.safetensors")
    policy = LearnedPolicy.load(tmp_path / "p.safetensors")
    assert policy.spec == spec
    units = env.units
    units[:, [lay.ALIVE, lay.HP], 1] = 0
    seen = env.observe()
    read = spec.read(seen)
    alive = np.concatenate([seen.agent_alive, seen.task_alive], axis=1)
    places = np.concatenate([read.agent_features, read.task_features], axis=1)[:, :, 1:3]
    assert not alive.all()
    np.testing.assert_allclose((places * alive[:, :, None]).sum(1), 0, atol=1e-5)
    # Nothing else is changed, and the observation itself is not.
    others = [0, 3, 4, 5, 6, 7, 8, 9]
    assert (read.agent_features[:, :, others] == seen.agent_features[:, :, others]).all()
    assert (seen.agent_features == env.observe().agent_features).all()
    h, g = policy.scores(seen)
    units[:, [lay.PX, lay.PY]] += 123
    moved = policy.scores(env.observe())
    np.testing.assert_allclose(moved[0], h, atol=1e-5)
    np.testing.assert_allclose(moved[1], g, atol=1e-5)
    plain = LearnedPolicy("p", dataclasses.replace(spec, centred=()), parameters, InferenceSettings(), NoiseSettings())
    assert abs(plain.scores(env.observe())[0] - plain.scores(seen)[0]).max() > 0.01


def test_an_environment_without_positions_cannot_be_centred():
    with pytest.raises(InputError, match="names no positions"):
        muster.train("pursuit:4x2", steps=1, form="centred")


def rewrite(path, change):
    """Write the file again with a changed header and changed tensors, without the writer's own checks."""
    from safetensors import safe_open

    with safe_open(str(path), framework="numpy") as file:
        header = json.loads(file.metadata()["muster"])
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    change(header, tensors)
    save_file(tensors, path, metadata={"muster": json.dumps(header)})


def poison(header, tensors):
    tensors["h.left"][0, 0] = np.nan


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda h, t: h.update(version=99), "policy format 99, this muster reads 1 to 3"),
        (lambda h, t: h.update(format="other"), "not a muster policy"),
        (lambda h, t: h.pop("spec"), "damaged header"),
        (lambda h, t: h["spec"].update(hidden=-3), "damaged header"),
        (lambda h, t: h["spec"].update(hidden=16), "must be float32"),
        (lambda h, t: h["inference"].update(method="magic"), "damaged header"),
        (lambda h, t: t.pop("g.bias1"), "missing"),
        (lambda h, t: t.update(extra=np.zeros(3, np.float32)), "unknown"),
        (lambda h, t: t.update({"h.left": t["h.left"].astype(np.float64)}), "must be float32"),
        (poison, "NaN or infinity"),
        (lambda h, t: t["h.left"].__iadd__(1), "do not match its hash"),
        (lambda h, t: h["noise"].update(sigma=0.7), "does not match its seal"),
    ],
)
def test_a_damaged_or_foreign_policy_is_named(path, change, message):
    rewrite(path, change)
    started = time.perf_counter()
    with pytest.raises(ModelFileError, match=message):
        LearnedPolicy.load(path)
    assert time.perf_counter() - started < 1.0


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not a policy",
        pickle.dumps({"weights": [1, 2, 3]}),
        struct.pack("<Q", 2**62) + b"{}",
        b"PK\x03\x04" + bytes(100),
    ],
    ids=["empty", "text", "pickle", "huge header", "zip"],
)
def test_a_file_that_is_no_policy_is_refused(content, tmp_path):
    (tmp_path / "x.safetensors").write_bytes(content)
    with pytest.raises(ModelFileError, match="not a policy file, or damaged"):
        LearnedPolicy.load(tmp_path / "x.safetensors")


def test_a_truncated_file_is_refused(path):
    data = path.read_bytes()
    path.write_bytes(data[: len(data) - 100])
    with pytest.raises(ModelFileError, match="damaged"):
        LearnedPolicy.load(path)


def test_a_missing_file_and_an_empty_folder_are_named(tmp_path):
    with pytest.raises(ModelFileError, match="no policy file"):
        LearnedPolicy.load(tmp_path / "nothing.safetensors")
    with pytest.raises(ModelFileError, match="not the folder of a run"):
        LearnedPolicy.load(tmp_path)
    (tmp_path / "config.toml").touch()
    with pytest.raises(ModelFileError, match="holds a run that has saved no policy yet; see --resume"):
        LearnedPolicy.load(tmp_path)


def test_a_policy_refuses_another_kind_of_environment(path):
    with pytest.raises(InputError, match=r"was trained on rescue:2x4; it cannot run on tests.learning.toy"):
        muster.evaluate(str(path), "tests.learning.toy:Pairing", episodes=1)
