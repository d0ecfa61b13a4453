"""Policies as torch modules of plain tensors, and as ONNX graphs."""

from __future__ import annotations

import dataclasses
import warnings

import numpy as np
import pytest
import torch

import muster
from muster.assign.settings import InferenceSettings
from muster.envs.checks.probes import AXES
from muster.errors import InputError
from muster.learning.envs import prepare
from muster.learning.settings import TrainSettings
from muster.models.direct import init_parameters
from muster.policy.learned import LearnedPolicy
from muster.policy.settings import PAPER_NOISE

CASES = {
    "rescue-2x4-quad-dm": "rescue:3x6",
    "rescue-small-quad-dm": "rescue:5x9",
    "rescue-small-lp-context": "rescue:3x6",
    "fleet-24-lp-dm": "fleet:12,city=small",
    "battle-w15v17-quad-dm": "battle:w5v6",
    "context-lp": "battle:m5v5",
    "context-quad": "tests.learning.toy:Roomy",
    "linear-lp": "examples.field_service:FieldService",
    "linear-quad": "tests.learning.toy:Sized",
}


def policy_of(name):
    """A shipped policy; or one of that model and inference, whose every array says something."""
    if name.startswith(("rescue", "fleet", "battle")):
        return muster.load(name)
    model, inference = name.split("-")
    spec = prepare(TrainSettings(CASES[name], model=model, inference=inference, learner="ppo", num_envs=4)).spec
    rng = np.random.default_rng(1)
    parameters = init_parameters(spec, rng)
    parameters = {key: array + rng.normal(0, 0.1, array.shape).astype(np.float32) for key, array in parameters.items()}
    return LearnedPolicy(name, spec, parameters, InferenceSettings(inference), PAPER_NOISE)


def situations(name):
    """The module of a policy, what it is to read of situations without padding, and the policy's own scores."""
    policy = policy_of(name)
    env = muster.make(CASES[name], 2, seed=777)
    env.show(**policy.spec.shown)
    seen = env.observe()
    rows = np.flatnonzero(seen.task_alive.all(0))  # of a fleet, the requests that are there
    seen = muster.BatchObservation(
        **{
            field: None if (array := getattr(seen, field)) is None else _tasks(field, array, rows)
            for field in seen.__slots__
        }
    )
    if policy.spec.kind in ("context", "linear"):  # they read of one pair what is possible for others
        everything = {"agent_alive": np.ones_like(seen.agent_alive), "allowed": None}
        seen = dataclasses.replace(seen, **everything)
    model = policy.to_torch()
    tensors = [torch.as_tensor(np.array(getattr(seen, field), np.float32)) for field in model.inputs]
    h, g = policy.scores(seen)
    # What is not possible scores 0 with us.
    return model, tensors, (np.where(seen.pairs, h, np.nan), g)


def _tasks(field, array, rows):
    for axis, letter in enumerate(AXES[field], start=1):
        array = np.take(array, rows, axis=axis) if letter == "M" else array
    return array


def assert_close(found, expected):
    assert np.isfinite(expected).any()
    np.testing.assert_allclose(np.where(np.isnan(expected), np.nan, found), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", CASES)
def test_the_module_scores_as_the_policy_does(name):
    model, tensors, (h, g) = situations(name)
    with torch.no_grad():
        found = model(*tensors)
    assert_close(found[0].numpy(), h)
    assert len(found) == 1 + (g is not None)
    if g is not None:
        assert_close(found[1].numpy(), g)


@pytest.mark.parametrize("name", ["rescue-2x4-quad-dm", "context-quad", "linear-quad"])
def test_gradients_reach_the_parameters(name):
    model, tensors, _ = situations(name)
    sum(one.square().sum() for one in model(*tensors)).backward()
    assert all(parameter.grad is not None for parameter in model.parameters() if parameter.numel())


@pytest.mark.parametrize("name", ["rescue-small-lp-context", "linear-lp"])
def test_gradients_reach_what_is_read(name):
    """Through distances and gaps too: a small step along the slopes changes the scores as they say."""
    model, tensors, _ = situations(name)
    torch.manual_seed(0)  # no ties
    near = [(one.double() + 0.01 * torch.randn(one.shape)).requires_grad_() for one in tensors]
    model = model.double()
    slopes = torch.autograd.grad(model(*near)[0].sum(), near, allow_unused=True, materialize_grads=True)
    with torch.no_grad():
        ahead, behind = (
            model(*[one + step * slope for one, slope in zip(near, slopes, strict=True)])[0].sum()
            for step in (1e-7, -1e-7)
        )
    assert float(ahead - behind) / 2e-7 == pytest.approx(float(sum((slope**2).sum() for slope in slopes)), rel=1e-3)


def test_a_model_of_planes_is_refused():
    with pytest.raises(InputError, match=r"a positional model \(pem\) reads planes"):
        muster.load("rescue-2x4-lp-pem").to_torch()


@pytest.mark.parametrize("name", ["rescue-2x4-quad-dm", "rescue-small-quad-dm", "context-quad", "linear-quad"])
def test_an_onnx_graph_scores_as_the_policy_does(name, tmp_path):
    """onnx and onnxruntime are not installed for development: 100 MB for one test."""
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    model, tensors, (h, g) = situations(name)
    file, outputs = str(tmp_path / "scorer.onnx"), ["h", "g"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(model, tuple(tensors), file, input_names=model.inputs, output_names=outputs, dynamo=False)
    given = {field: tensor.numpy() for field, tensor in zip(model.inputs, tensors, strict=True)}
    found = runtime.InferenceSession(file).run(outputs, given)
    assert_close(found[0], h)
    assert_close(found[1], g)
