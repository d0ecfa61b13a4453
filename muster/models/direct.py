"""The direct model: scores of pairs by two small networks.

    h(i, j) = scale·prior_ij + w3·relu(W2 relu(Wa x_i + Wt s_j + Wp f_ij + b1) + b2) + b3

and g(j, l) likewise from the two tasks. Global features are appended to x_i; without a prior there is no scale.
Parameters are a dict of arrays; with a leading axis P they are P models, each for its own share of the batch (for
evolution strategies). Only living and allowed pairs are scored. The networks are compiled code (core/models).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muster.custom import is_custom
from muster.data import BatchObservation, Floats32
from muster.kernels import core
from muster.models.context import context_shapes, init_context
from muster.models.custom import custom_shapes, init_custom
from muster.models.limits import START, Limits, start_of, with_limits
from muster.models.linear import LinearModel, linear_shapes
from muster.models.spec import ModelSpec, Parameters, Scores

Gates = dict[str, NDArray[np.uint32]]
"""By network, bits for the hidden units of each pair above 0, which the gradient needs of the forward pass."""

PARTS = ("left", "right", "pair", "bias1", "weight2", "bias2", "weight3", "bias3", "scale")
"""Arrays of a network, in the order of the compiled code."""
NO_PRIOR = np.zeros((0, 0, 0))
ALL_ALLOWED = np.zeros((0, 0, 0), np.bool_)
NOT_SHARED = np.zeros((0, 0), np.float32)


def parameter_shapes(spec: ModelSpec) -> dict[str, tuple[int, ...]]:
    """Name and shape of every array of the model except those of a CNN, in their fixed order."""
    if is_custom(spec.kind):
        return custom_shapes(spec)
    if spec.kind == "linear":
        return linear_shapes(spec)
    k = spec.hidden
    agent, task, shared = spec.agent_width + spec.extra, spec.task_width + spec.extra, spec.global_width
    shapes: dict[str, tuple[int, ...]] = {}
    pairs = spec.pair_width + len(spec.context_features)
    nets = [("h", agent, task, pairs, spec.prior)]
    if spec.task_scores:
        nets.append(("g", task, task, spec.task_pair_width, spec.task_prior))
    # Learned limits: a capacity is between the environment and a task, a contribution between agent and task.
    if "capacities" in spec.learned:
        nets.append(("capacity", 0, task, 0, False))
    if "contributions" in spec.learned:
        nets.append(("contribution", agent, task, pairs, False))
    for net, left, right, pair, prior in nets:
        shapes |= {
            f"{net}.left": (left + shared, k),
            f"{net}.right": (right, k),
            f"{net}.pair": (pair, k),
            f"{net}.bias1": (k,),
            f"{net}.weight2": (k, k),
            f"{net}.bias2": (k,),
            f"{net}.weight3": (k, 1),
            f"{net}.bias3": (1,),
        }
        if prior:
            shapes[f"{net}.scale"] = (1,)
    return shapes | context_shapes(spec) if spec.kind == "context" else shapes


def init_parameters(spec: ModelSpec, rng: np.random.Generator) -> Parameters:
    """Initial parameters: uniform within 1/sqrt(inputs) of each layer, as in torch's linear layers.

    A model that corrects a prior starts as the prior itself: its last layers are 0, its scales 1. The last layers of
    learned limits are 0 too, so that all tasks have equal capacities and all agents contribute equally. All weights of
    a linear model are 0.
    """
    if is_custom(spec.kind):
        return init_custom(spec, rng)
    shapes = parameter_shapes(spec)
    if spec.kind == "linear":
        return {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
    parameters: Parameters = {}
    for name, shape in shapes.items():
        net, part = name.split(".")
        if net not in ("h", "g", *START):
            continue
        if net in START and part in ("weight3", "bias3"):
            parameters[name] = np.full(shape, start_of(net) if part == "bias3" else 0.0, np.float32)
            continue
        if part == "scale" or (spec.corrects and part in ("weight3", "bias3")):
            parameters[name] = np.full(shape, part == "scale", np.float32)
            continue
        first = part in ("left", "right", "pair", "bias1")
        inputs = sum(shapes[f"{net}.{p}"][0] for p in ("left", "right", "pair")) if first else spec.hidden
        bound = 1.0 / np.sqrt(max(inputs, 1))
        parameters[name] = rng.uniform(-bound, bound, shape).astype(np.float32)
    return parameters | init_context(spec, rng) if spec.kind == "context" else parameters


def unflatten(flat: NDArray[np.floating], shapes: Mapping[str, tuple[int, ...]]) -> Parameters:
    """Arrays of these shapes from a vector [D], or with a leading axis P from vectors [P, D] (copies)."""
    parameters: Parameters = {}
    flat, end = flat.astype(np.float32), 0
    for name, shape in shapes.items():
        begin, end = end, end + math.prod(shape)
        parameters[name] = flat[..., begin:end].reshape(*flat.shape[:-1], *shape)
    return parameters


class DirectModel:
    """A direct model, or P of them, with constant parameters, packed for the compiled code."""

    def __init__(self, parameters: Parameters, task_scores: bool) -> None:
        self.parameters = parameters
        self.scored = ("h", "g") if task_scores else ("h",)
        present = [net for net in (*self.scored, *START) if f"{net}.bias1" in parameters]
        self.networks = {net: pack(parameters, net) for net in present}

    def __call__(self, observation: BatchObservation) -> Scores:
        """h [B, N, M] and, if the model has one, g [B, M, M]; 0 for the dead and for what is not allowed."""
        scores = [self._score(net, observation) for net in self.scored]
        return scores[0], scores[1] if len(scores) > 1 else None

    def forward(self, observation: BatchObservation) -> tuple[Scores, Gates]:
        """Scores, and the gates by which `gradient` saves a forward pass."""
        gates: Gates = {}
        scores = [self._score(net, observation, gates) for net in self.scored]
        return (scores[0], scores[1] if len(scores) > 1 else None), gates

    def gradient(
        self, observation: BatchObservation, slopes: Scores, limits: Limits | None = None, gates: Gates | None = None
    ) -> Parameters:
        """Gradient of a loss for every parameter, given its slopes in h [B, N, M], g [B, M, M] and z of the limits.

        Most agents are nearly certain of their choice, so most slopes are tiny: pairs whose slopes are below 1e-5 of
        the mean are skipped. `gates` are those of `forward` on the same observation, if it was run.
        """
        slope_of = dict(zip("hg", slopes, strict=True)) | (limits or {})
        gradient: Parameters = {}
        for net, network in self.networks.items():
            slope = slope_of.get(net)
            if slope is None:
                continue
            shapes = {
                name: self.parameters[name].shape for part in PARTS if (name := f"{net}.{part}") in self.parameters
            }
            flat = np.zeros(sum(map(math.prod, shapes.values())))
            network.add_gradient(self.pairs(net, observation), slope, (gates or {}).get(net), flat)
            gradient |= unflatten(flat, shapes)
        return gradient

    def limits(self, observation: BatchObservation) -> Limits:
        """z of learned capacities [B, 1, M] and contributions [B, N, M], as far as the model has them."""
        return {net: self._score(net, observation) for net in START if net in self.networks}

    def limit(self, observation: BatchObservation) -> BatchObservation:
        """The observation with learned capacities and contributions in place of the environment's."""
        limits = self.limits(observation)
        return with_limits(observation, limits) if limits else observation

    def _score(self, net: str, observation: BatchObservation, gates: Gates | None = None) -> Floats32:
        batch, m = observation.task_alive.shape
        rows = 1 if net == "capacity" else m if net == "g" else observation.agent_alive.shape[1]
        scores = np.empty((batch, rows, m), np.float32)
        if gates is not None:
            gates[net] = np.empty((*scores.shape, self.networks[net].words), np.uint32)
        self.networks[net].score(self.pairs(net, observation), scores, gates and gates[net])
        return scores

    def pairs(self, net: str, observation: BatchObservation) -> Any:
        """Inputs of a network: agents and tasks for h and contributions, tasks twice for g, tasks for capacities."""
        left, alive, pair = observation.agent_features, observation.agent_alive, observation.pair_features
        prior, allowed = observation.prior, observation.allowed
        if net == "g":
            left, alive, pair = observation.task_features, observation.task_alive, observation.task_pair_features
            prior, allowed = observation.task_prior, None
        if net == "capacity":
            batch, m = observation.task_alive.shape
            left, alive = np.zeros((batch, 1, 0), np.float32), np.ones((batch, 1), np.bool_)
            pair, allowed = np.zeros((batch, 1, m, 0), np.float32), None
        return core.models.Pairs(
            left,
            observation.task_features,
            pair,
            alive,
            observation.task_alive,
            ALL_ALLOWED if allowed is None else allowed,
            NO_PRIOR if prior is None or f"{net}.scale" not in self.parameters else prior,
            NOT_SHARED if observation.global_features is None else observation.global_features,
        )


def pack(parameters: Parameters, net: str) -> Any:
    """Pack the network `net` of one model, or of P with a leading axis, for the compiled code."""
    bias, scale = parameters[f"{net}.bias1"], f"{net}.scale" in parameters
    models = len(bias) if bias.ndim == 2 else 1
    arrays = [parameters[f"{net}.{part}"].reshape(models, -1) for part in (PARTS if scale else PARTS[:-1])]
    widths = [parameters[f"{net}.{part}"].shape[-2] for part in ("left", "right", "pair")]
    flat = np.concatenate(arrays, axis=1, dtype=np.float32)
    return core.models.PairNetwork(flat, *widths, bias.shape[-1], scale)


def make_model(spec: ModelSpec, parameters: Parameters, task_scores: bool) -> DirectModel | LinearModel:
    """The direct or linear model of a specification, or P of them."""
    if spec.kind == "linear":
        return LinearModel(spec, parameters, task_scores)
    return DirectModel(parameters, task_scores)
