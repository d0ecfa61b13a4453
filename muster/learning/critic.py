"""A critic without torch: the entity critic's values, in the units of the rewards, learned from returns by Adam.

It values what is observed; or an assignment in it, if every agent is shown with what it was given (`with_choices`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muster.data import BatchObservation, Floats, Floats32, Ints
from muster.learning.optimiser import Descent
from muster.models.direct import Parameters
from muster.models.spec import ModelSpec
from muster.models.values import EntityValues, value_gradient

WIDTH = 32
MEMORY = 0.99
"""Share of what is known of the returns' mean and spread that an update keeps."""


def critic_shapes(agents: int, tasks: int, env: int, width: int = WIDTH) -> dict[str, tuple[int, ...]]:
    """Name and shape of every array of an entity critic that reads so many features."""
    inputs = {"agent": agents, "task": tasks, "head": 4 * width + 2 + env}
    shapes: dict[str, tuple[int, ...]] = {}
    for net, reads in inputs.items():
        out = 1 if net == "head" else width
        shapes |= {f"{net}.0.weight": (width, reads), f"{net}.0.bias": (width,)}
        shapes |= {f"{net}.2.weight": (out, width), f"{net}.2.bias": (out,)}
    return shapes


def init_critic(shapes: Mapping[str, tuple[int, ...]], rng: np.random.Generator) -> Parameters:
    """Uniform within 1/sqrt(inputs) of each layer, as torch's linear layers begin."""
    found: Parameters = {}
    for name, shape in shapes.items():
        inputs = shapes[name.replace("bias", "weight")][1]
        bound = 1.0 / np.sqrt(max(inputs, 1))
        found[name] = rng.uniform(-bound, bound, shape).astype(np.float32)
    return found


def with_choices(seen: BatchObservation, assignment: Ints) -> BatchObservation:
    """What is observed, with each agent's task [B, N] in its features: whether it has one, that task's features and
    those of the pair; and with the number of agents, by that of all, on each task.
    """
    rows, agents = np.indices(assignment.shape)
    tasks = np.arange(seen.task_alive.shape[1])
    at, given = np.maximum(assignment, 0), (assignment >= 0)[:, :, None]
    chosen = np.concatenate([seen.task_features[rows, at], seen.pair_features[rows, agents, at]], axis=2)
    shown: list[Floats32] = [seen.agent_features, given.astype(np.float32), np.where(given, chosen, np.float32(0.0))]
    crowd = (assignment[:, :, None] == tasks).mean(axis=1, dtype=np.float32)
    return dataclasses.replace(
        seen,
        agent_features=np.concatenate(shown, axis=2),
        task_features=np.concatenate([seen.task_features, crowd[:, :, None]], axis=2),
    )


class Critic:
    """What is still to be earned. Its network sees returns of mean 0 and deviation 1, whatever the env's rewards."""

    def __init__(self, spec: ModelSpec, rng: np.random.Generator, longest: float, choices: bool = False) -> None:
        """`choices`: of assignments, by what `with_choices` shows."""
        agents, tasks = spec.agent_width, spec.task_width
        if choices:
            agents, tasks = 1 + agents + tasks + spec.pair_width, 1 + tasks
        shapes = critic_shapes(agents, tasks, spec.global_width)
        self.descent = Descent(init_critic(shapes, rng), longest)
        self.known = 0.0
        """Share of the mean and spread below that is known: 0 before the first returns, then towards 1."""
        self.first, self.second = 0.0, 0.0
        self._pack()

    @property
    def mean(self) -> float:
        """Of the returns seen."""
        return self.first / self.known if self.known else 0.0

    @property
    def unit(self) -> float:
        """Their deviation; 1 while nothing is known."""
        spread = self.second / self.known - self.mean**2 if self.known else 1.0
        return float(np.sqrt(max(spread, 1e-12)))

    def __call__(self, seen: BatchObservation) -> Floats:
        """[B] values, in the rewards' units."""
        return self.mean + self.unit * self._values(seen).astype(np.float64)

    def learn(self, seen: BatchObservation, returns: Floats, rate: float) -> float:
        """One step towards the returns [B] of what was seen; returns the loss."""
        self.known = MEMORY * self.known + 1 - MEMORY
        self.first = MEMORY * self.first + (1 - MEMORY) * float(returns.mean())
        self.second = MEMORY * self.second + (1 - MEMORY) * float((returns**2).mean())
        target = ((returns - self.mean) / self.unit).astype(np.float32)
        _, loss, gradients = value_gradient(self._values, seen, target)
        self.descent.add(gradients)
        self.descent.step(rate)
        self._pack()
        return loss

    def _pack(self) -> None:
        self._values = EntityValues(self.descent.parameters())

    def get_state(self) -> dict[str, NDArray[Any]]:
        """Arrays to go on from."""
        return {**self.descent.get_state(), "returns": np.array([self.known, self.first, self.second])}

    def set_state(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Go on from what `get_state` returned."""
        self.descent.set_state(arrays)
        self.known, self.first, self.second = arrays["returns"].tolist()
        self._pack()
