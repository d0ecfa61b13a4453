"""Policies as torch modules of plain tensors, and as ONNX graphs."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch

import muster
from muster.envs.checks.probes import AXES, possible_pairs
from muster.errors import InputError

CASES = {
    "rescue-2x4-quad-dm": "rescue:3x6",
    "rescue-small-quad-dm": "rescue:5x9",
    "fleet-24-lp-dm": "fleet:12,city=small",
    "battle-w15v17-quad-dm": "battle:w5v6",
}


def situations(name):
    """The module of a policy, what it is to read of situations without padding, and the policy's own scores."""
    policy = muster.load(name)
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
    model = policy.to_torch()
    tensors = [torch.as_tensor(np.array(getattr(seen, field), np.float32)) for field in model.inputs]
    h, g = policy.scores(seen)
    # What is not possible scores 0 with us.
    return model, tensors, (np.where(possible_pairs(seen), h, np.nan), g)


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


def test_gradients_reach_the_parameters():
    model, tensors, _ = situations("rescue-2x4-quad-dm")
    sum(one.sum() for one in model(*tensors)).backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_other_models_are_refused():
    with pytest.raises(InputError, match="to_torch is for direct models"):
        muster.load("rescue-small-lp-context").to_torch()


@pytest.mark.parametrize("name", ["rescue-2x4-quad-dm", "rescue-small-quad-dm"])
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
