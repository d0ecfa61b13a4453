"""Policy files: what is written is read back; anything else is a typed error, at once."""

import json
import pickle
import struct
import time

import numpy as np
import pytest
from safetensors.numpy import save_file

import muster
from muster.checkpoint import load_policy, save_policy
from muster.errors import InputError, ModelFileError
from muster.learned import LearnedPolicy
from muster.options import InferenceSettings, NoiseSettings
from muster.policies import load_learned
from muster.scoring.direct import init_parameters
from muster.scoring.spec import ModelSpec


@pytest.fixture
def policy():
    spec = ModelSpec.of(muster.make("rescue:2x4").observe(), "dm", True)
    parameters = init_parameters(spec, np.random.default_rng(0))
    return LearnedPolicy(
        "p", spec, parameters, InferenceSettings(forced=True), NoiseSettings(0.5, 3), {"env": "rescue:2x4"}
    )


@pytest.fixture
def path(policy, tmp_path):
    save_policy(policy, tmp_path / "p.safetensors")
    return tmp_path / "p.safetensors"


def test_a_policy_survives_its_file(policy, path):
    again = load_policy(path)
    assert again.spec == policy.spec
    assert again.inference == policy.inference
    assert again.noise == policy.noise
    observation = muster.make("rescue:5x10", 8).observe()
    assert (again.act(observation) == policy.act(observation)).all()


def test_a_policy_runs_on_larger_worlds_and_is_the_same_in_any_batch(path):
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


def test_a_policy_that_reads_centred_positions_gets_them(tmp_path):
    env = muster.make("battle:m3v3", 2)
    env.show(pair_features=True, planes=False, centred=True)
    spec = ModelSpec.of(env.observe(), "dm", False, centred=True)
    parameters = init_parameters(spec, np.random.default_rng(1))
    inference = InferenceSettings(method="lp")
    centred = LearnedPolicy("p", spec, parameters, inference, NoiseSettings(), {"env": "battle:m3v3"})
    save_policy(centred, tmp_path / "p.safetensors")
    # Another world, which nobody told what to show.
    world = muster.make("battle:m5v5", 4)
    again = load_learned(str(tmp_path / "p.safetensors"), world, noise=False)
    assert again.spec.centred
    seen = world.observe()
    places = np.concatenate([seen.agent_features, seen.task_features], axis=1)[:, :, 1:3]
    np.testing.assert_allclose(places.mean(1), 0, atol=1e-6)
    with pytest.raises(InputError, match="cannot measure positions from the middle"):
        muster.make("rescue:2x4").show(pair_features=True, planes=False, centred=True)


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
        (lambda h, t: h.update(version=99), "policy format 99, this muster reads 1"),
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
    ],
)
def test_a_damaged_or_foreign_policy_is_named(path, change, message):
    rewrite(path, change)
    started = time.perf_counter()
    with pytest.raises(ModelFileError, match=message):
        load_policy(path)
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
        load_policy(tmp_path / "x.safetensors")


def test_a_truncated_file_is_refused(path):
    data = path.read_bytes()
    path.write_bytes(data[: len(data) - 100])
    with pytest.raises(ModelFileError, match="damaged"):
        load_policy(path)


def test_a_missing_file_and_an_empty_folder_are_named(tmp_path):
    with pytest.raises(ModelFileError, match="no policy file"):
        load_policy(tmp_path / "nothing.safetensors")
    with pytest.raises(ModelFileError, match="not the folder of a run"):
        load_policy(tmp_path)


def test_a_policy_refuses_another_kind_of_world(path):
    with pytest.raises(InputError, match=r"was trained on rescue:2x4; it cannot play tests.learning.toy"):
        muster.evaluate(str(path), "tests.learning.toy:Pairing", episodes=1)
