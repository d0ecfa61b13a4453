"""Custom scoring models, by the name of their class: package.module:Class[,option=value…].

    plain           scores(observation) -> h, g     and `parameters`, a dict of arrays that `scores` reads
    torch module    forward(observation) -> h, g    where the observation's arrays are tensors

h is [B, N, M], g [B, M, M], or None under an inference that reads none. Evolution strategies train either, learners
that need gradients a torch module. The observation is a BatchObservation; constructor arguments with names of FILLED
are filled in, such as the numbers of features.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muster.custom import construct, find, is_custom, naming, split
from muster.data import BatchObservation, Floats32
from muster.errors import InputError
from muster.models.spec import ModelSpec

FILLED = ("agent_width", "task_width", "pair_width", "task_pair_width", "global_width", "task_scores", "rng")
"""Widths of the features, whether g is needed, and a numpy generator for the initial parameters."""
Arrays = dict[str, NDArray[Any]]


def is_module(model: Any) -> bool:
    """Whether an object or a class is a torch module."""
    return callable(getattr(model, "state_dict", None))


def needs_torch(kind: str) -> bool:
    """Whether a kind of model is trained in torch; imports a custom one."""
    if not is_custom(kind):
        return kind in ("pem", "context")
    module, name, _ = split("model", kind)
    return is_module(find("model", module, name))


def make_custom(spec: ModelSpec, rng: np.random.Generator | None = None) -> Any:
    """The custom model with initial parameters; InputError where the class is no model."""
    rng = np.random.default_rng(0) if rng is None else rng
    filled = {name: getattr(spec, name) for name in FILLED[:-1]} | {"rng": rng}
    if not needs_torch(spec.kind):
        model = construct("model", spec.kind, filled)
        if not callable(getattr(model, "scores", None)) or not isinstance(getattr(model, "parameters", None), dict):
            raise InputError(
                f"{spec.kind} must be a torch module, or have scores(observation) and parameters, a dict of arrays"
            )
        return model
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(rng.integers(2**31)))
        return construct("model", spec.kind, filled)


def parameters_of(model: Any) -> Arrays:
    """Copies of a model's arrays; of a torch module, those of its state_dict."""
    if is_module(model):
        return {name: tensor.detach().cpu().numpy().copy() for name, tensor in model.state_dict().items()}
    return {name: np.array(array, np.float32) for name, array in model.parameters.items()}


def learned_by(model: Any) -> list[str]:
    """Names of the arrays that are trained: of a torch module those that are not buffers."""
    return [name for name, _ in model.named_parameters()] if is_module(model) else list(model.parameters)


def load_parameters(model: Any, parameters: Arrays, kind: str) -> None:
    """Set a model's arrays; InputError where names or shapes differ. Buffers may be missing."""
    own = parameters_of(model)
    wrong = [name for name, array in parameters.items() if name not in own or own[name].shape != array.shape]
    wrong += [name for name in learned_by(model) if name not in parameters]
    if wrong:
        raise InputError(f"these parameters are not of {kind} as it is now: {', '.join(wrong[:3])}")
    if is_module(model):
        import torch

        model.load_state_dict({name: torch.from_numpy(np.array(array)) for name, array in parameters.items()}, False)
    else:
        model.parameters = {name: np.array(array, np.float32) for name, array in parameters.items()}


@lru_cache(maxsize=16)
def custom_shapes(spec: ModelSpec) -> dict[str, tuple[int, ...]]:
    """Name and shape of every array that is trained."""
    model = make_custom(spec)
    parameters = parameters_of(model)
    if not sum(parameters[name].size for name in learned_by(model)):
        raise InputError(f"{spec.kind} has no parameters to learn")
    return {name: parameters[name].shape for name in learned_by(model)}


def init_custom(spec: ModelSpec, rng: np.random.Generator) -> dict[str, Floats32]:
    """Initial values of the arrays that are trained."""
    model = make_custom(spec, rng)
    parameters = parameters_of(model)
    return {name: parameters[name].astype(np.float32) for name in learned_by(model)}


def checked_scores(spec: ModelSpec, observation: BatchObservation, scorer: Callable[[Any], Any], shown: Any) -> Any:
    """h and g of `scorer(shown)` in single precision; InputError where it fails or they do not fit the observation."""
    with naming(spec.kind):
        scores = scorer(shown)
    batch, m = observation.task_alive.shape
    if not isinstance(scores, tuple) or len(scores) != 2:
        raise InputError(f"{spec.kind} must return two things, h and g (or None for g), got {type(scores).__name__}")
    expected = [("h", scores[0], (batch, observation.agent_alive.shape[1], m))]
    expected += [("g", scores[1], (batch, m, m))] if spec.task_scores else []
    for name, array, shape in expected:
        if array is None or tuple(np.shape(array)) != shape:
            got = "none" if array is None else f"shape {tuple(np.shape(array))}"
            raise InputError(f"{spec.kind} must return {name} of shape {shape}, got {got}")
        plain = array.detach().numpy() if hasattr(array, "detach") else np.asarray(array)
        if plain.dtype.kind not in "biuf" or not np.isfinite(plain).all():
            found = plain[~np.isfinite(plain)][0] if plain.dtype.kind == "f" else plain.dtype
            raise InputError(
                f"{spec.kind} must return {name} with a finite number for every pair, also of agents and tasks that "
                f"are not alive and where `allowed` forbids it, got {found}; check also that its parameters are finite"
            )
    if hasattr(scores[0], "detach"):
        return scores[0].float(), scores[1].float() if spec.task_scores else None
    return np.asarray(scores[0], np.float32), np.asarray(scores[1], np.float32) if spec.task_scores else None


def as_tensors(observation: BatchObservation) -> Any:
    """The observation with tensors in place of arrays, numbers in single precision."""
    import torch

    fields = {entry.name: getattr(observation, entry.name) for entry in dataclasses.fields(BatchObservation)}
    for name, array in fields.items():
        if array is not None:
            fields[name] = torch.from_numpy(np.array(array, np.float32 if array.dtype.kind == "f" else None))
    return BatchObservation(**fields)
