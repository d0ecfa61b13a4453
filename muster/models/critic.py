"""The entity critic: state values and the gradient of their loss, by compiled code (core/models/critic.cpp).

One network embeds every living agent, another every living task; a head reads the mean and the maximum of the agents'
embeddings, the share of living agents, the same of tasks, and global features. The loss is Huber's, averaged over the
states. Parameters have the names and shapes of torch's linear layers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from muster.data import BatchObservation, Floats32
from muster.kernels import core
from muster.models.direct import NOT_SHARED, unflatten
from muster.models.spec import Parameters

WIDTH = 32
"""Hidden units of every layer."""
NETWORKS = ("agent", "task", "head")


def critic_shapes(agents: int, tasks: int, shared: int, width: int = WIDTH) -> dict[str, tuple[int, ...]]:
    """Name and shape of every array, by the widths of agent, task and global features, in their fixed order."""
    inputs = {"agent": agents, "task": tasks, "head": 4 * width + 2 + shared}
    shapes: dict[str, tuple[int, ...]] = {}
    for net, reads in inputs.items():
        out = 1 if net == "head" else width
        shapes |= {f"{net}.0.weight": (width, reads), f"{net}.0.bias": (width,)}
        shapes |= {f"{net}.2.weight": (out, width), f"{net}.2.bias": (out,)}
    return shapes


def init_critic(shapes: Mapping[str, tuple[int, ...]], rng: np.random.Generator) -> Parameters:
    """Initial parameters: uniform within 1/sqrt(inputs) of each layer."""
    parameters: Parameters = {}
    for name, shape in shapes.items():
        inputs = shapes[name.replace("bias", "weight")][1]
        bound = 1.0 / np.sqrt(max(inputs, 1))
        parameters[name] = rng.uniform(-bound, bound, shape).astype(np.float32)
    return parameters


class EntityCritic:
    """State values of a critic with constant parameters, packed for the compiled code."""

    def __init__(self, parameters: Parameters) -> None:
        width, agents = parameters["agent.0.weight"].shape
        tasks, inputs = (parameters[f"{net}.0.weight"].shape[1] for net in ("task", "head"))
        shared = inputs - 4 * width - 2
        self.shapes = critic_shapes(agents, tasks, shared, width)
        flat = np.concatenate([parameters[name].ravel() for name in self.shapes], dtype=np.float32)
        self.network = core.models.EntityCritic(flat, agents, tasks, shared, width)

    def __call__(self, observation: BatchObservation) -> Floats32:
        """State values [B]."""
        values = np.empty(observation.batch, np.float32)
        self.network.value(*_read(observation), values)
        return values

    def gradient(self, observation: BatchObservation, target: Floats32) -> tuple[Floats32, float, Parameters]:
        """Values [B], their loss against the target [B], and its gradient for every parameter."""
        values = np.empty(observation.batch, np.float32)
        flat = np.zeros(sum(map(math.prod, self.shapes.values())))
        loss = self.network.add_gradient(*_read(observation), target, values, flat)
        return values, loss, unflatten(flat, self.shapes)


def _read(observation: BatchObservation) -> tuple[Any, ...]:
    shared = NOT_SHARED if observation.global_features is None else observation.global_features
    return (
        observation.agent_features,
        observation.task_features,
        observation.agent_alive,
        observation.task_alive,
        shared,
    )
