"""The entity critic without torch: values of states, and the slope of their loss, by hand.

A network reads every living object; what a head reads of a state is the mean and the maximum over its agents, the share
of them that live, the same of its tasks, and the features of the env itself. The loss is Huber's, averaged over the
states. Parameters have the names and shapes of `muster.models.networks.EntityCritic`. Kernels work on tiles of LANES
states: each lane takes its state's first object, then its second, and so on.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from muster.compile import fast_entry, fast_kernel, maker
from muster.data import BatchObservation, Bools, Floats, Floats32
from muster.models.direct import Parameters
from muster.models.tiles import (
    LANES,
    STEP,
    STRIDE,
    ZERO,
    add_products,
    add_rows,
    dense,
    dense_rectified,
    gate,
    padded,
    weigh,
)

NETS = ("agent", "task", "head")
ONE = np.float32(1.0)


class Net(NamedTuple):
    """Two layers; rows are inputs, padded with zeros."""

    weight1: Floats32
    bias1: Floats32
    weight2: Floats32
    bias2: Floats32


class Slopes(NamedTuple):
    """Of the loss in a net's parameters, added up in double precision."""

    weight1: Floats
    bias1: Floats
    weight2: Floats
    bias2: Floats


class Side(NamedTuple):
    """The agents, or the tasks, of every state."""

    features: Floats32
    """[B, N, D]"""
    alive: Bools
    """[B, N]"""


class Space(NamedTuple):
    """Tiles to work in."""

    inputs: Floats32
    """What the head reads."""
    wanted: Floats32
    """Slope of the loss in what the head reads."""
    winners: NDArray[np.int32]
    """[2, K, STRIDE] which object gave each maximum, agents and tasks; -1: none lives."""
    share: Floats32
    """[2, STRIDE] 1 / number of living agents and tasks."""
    here: Floats32
    """[STRIDE] 1 where the state's object lives."""
    objects: Floats32
    x: Floats32
    y: Floats32
    z: Floats32
    values: Floats32
    """[STRIDE]"""


class EntityValues:
    """The critic's values; packed once for as long as its parameters are constant."""

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = parameters
        self.nets = tuple(_net(parameters, name) for name in NETS)

    def __call__(self, seen: BatchObservation) -> Floats32:
        """[B]"""
        agent, task, head = self.nets
        values = np.empty(len(seen.agent_alive), np.float32)
        value_states(agent, task, head, *_sides(seen), values)
        return values


def value_gradient(
    critic: EntityValues, seen: BatchObservation, target: Floats32
) -> tuple[Floats32, float, Parameters]:
    """Values [B], their loss, and its slope for every parameter."""
    agent, task, head = nets = critic.nets
    slopes = [Slopes(*(np.zeros(array.shape) for array in net)) for net in nets]
    values = np.empty_like(target)
    loss = descend_states(agent, task, head, *_sides(seen), target, values, slopes[0], slopes[1], slopes[2])
    gradients: dict[str, Floats] = {}
    for name, slope in zip(NETS, slopes, strict=True):
        inputs = critic.parameters[f"{name}.0.weight"].shape[1]
        gradients |= {
            f"{name}.0.weight": slope.weight1[:inputs].T,
            f"{name}.0.bias": slope.bias1,
            f"{name}.2.weight": slope.weight2.T,
            f"{name}.2.bias": slope.bias2,
        }
    return values, loss, {name: np.ascontiguousarray(array, np.float32) for name, array in gradients.items()}


def _sides(seen: BatchObservation) -> tuple[Side, Side, Floats32]:
    shared = np.zeros((len(seen.agent_alive), 0), np.float32) if seen.global_features is None else seen.global_features
    return (
        Side(np.ascontiguousarray(seen.agent_features), seen.agent_alive),
        Side(np.ascontiguousarray(seen.task_features), seen.task_alive),
        np.ascontiguousarray(shared),
    )


def _net(parameters: Parameters, name: str) -> Net:
    weight1, weight2 = parameters[f"{name}.0.weight"].T, parameters[f"{name}.2.weight"].T
    first = np.zeros((padded(weight1.shape[0]), weight1.shape[1]), np.float32)
    first[: weight1.shape[0]] = weight1
    return Net(first, parameters[f"{name}.0.bias"], np.ascontiguousarray(weight2), parameters[f"{name}.2.bias"])


@maker
def make_space(agent: Net, task: Net, head: Net) -> Space:
    """Room for one tile."""
    rows, width = head.weight1.shape
    most = max(agent.weight1.shape[0], task.weight1.shape[0])
    return Space(
        np.zeros((rows, STRIDE), np.float32),
        np.zeros((rows, STRIDE), np.float32),
        np.zeros((2, width, STRIDE), np.int32),
        np.zeros((2, STRIDE), np.float32),
        np.zeros(STRIDE, np.float32),
        np.zeros((most, STRIDE), np.float32),
        np.zeros((width, STRIDE), np.float32),
        np.zeros((width, STRIDE), np.float32),
        np.zeros((width, STRIDE), np.float32),
        np.zeros(STRIDE, np.float32),
    )


@fast_kernel
def read_object(side: Side, i: int, begin: int, filled: int, space: Space) -> bool:
    """Bring object i of each of the tile's states into its lane; False if it is dead in all of them."""
    found = False
    for t in range(filled):
        alive = side.alive[begin + t, i]
        space.here[t] = ONE if alive else ZERO
        found |= alive
    if found:
        for t in range(filled):
            for k in range(side.features.shape[2]):
                space.objects[k, t] = side.features[begin + t, i, k]
    return found


@fast_kernel
def pool(net: Net, side: Side, which: int, begin: int, filled: int, lanes: int, space: Space) -> None:
    """Mean, maximum and share of one side's living objects, into the head's inputs."""
    width = net.bias2.shape[0]
    first = which * (2 * width + 1)
    mean, top = space.inputs[first : first + width], space.inputs[first + width : first + 2 * width]
    winners, share, count = space.winners[which], space.share[which], space.inputs[first + 2 * width]
    mean[:], top[:], winners[:], count[:] = ZERO, ZERO, -1, ZERO
    space.here[filled:] = ZERO
    objects, x, z, here = space.objects[: net.weight1.shape[0]], space.x, space.z, space.here
    n = side.alive.shape[1]
    for i in range(n):
        if not read_object(side, i, begin, filled, space):
            continue
        dense_rectified(net.weight1, net.bias1, objects, x, lanes)
        dense(net.weight2, net.bias2, x, z, lanes)
        for t in range(lanes):
            count[t] += here[t]
        for k in range(width):
            for t in range(lanes):
                value = z[k, t]
                mean[k, t] += here[t] * value
                higher = (here[t] > ZERO) & ((winners[k, t] < 0) | (value > top[k, t]))
                top[k, t] = value if higher else top[k, t]
                winners[k, t] = i if higher else winners[k, t]
    for t in range(lanes):
        share[t] = ONE / max(count[t], ONE)
        count[t] /= np.float32(n)
    for k in range(width):
        for t in range(lanes):
            mean[k, t] *= share[t]


@fast_kernel
def descend_pool(
    net: Net, transposed: Floats32, side: Side, which: int, begin: int, filled: int, lanes: int, space: Space,
    slopes: Slopes,
) -> None:  # fmt: skip
    """Add up the slopes of one side's network, given the slopes in the head's inputs."""
    width = net.bias2.shape[0]
    first = which * (2 * width + 1)
    mean, top = space.wanted[first : first + width], space.wanted[first + width : first + 2 * width]
    winners, share, nothing = space.winners[which], space.share[which], np.zeros(width, np.float32)
    space.here[filled:] = ZERO
    objects, x, slope, back = space.objects[: net.weight1.shape[0]], space.x, space.y, space.z
    here = space.here
    for i in range(side.alive.shape[1]):
        if not read_object(side, i, begin, filled, space):
            continue
        dense_rectified(net.weight1, net.bias1, objects, x, lanes)
        for k in range(width):
            for t in range(lanes):
                slope[k, t] = here[t] * share[t] * mean[k, t] + (top[k, t] if winners[k, t] == i else ZERO)
        add_rows(slope, slopes.bias2, lanes)
        add_products(x, slope, slopes.weight2, lanes)
        dense(transposed, nothing, slope, back, lanes)
        gate(x, back, lanes)
        add_rows(back, slopes.bias1, lanes)
        add_products(objects, back, slopes.weight1, lanes)


@fast_kernel
def value_tile(
    agent: Net, task: Net, head: Net, agents: Side, tasks: Side, shared: Floats32, begin: int, filled: int, space: Space
) -> int:
    """Values of a tile's states, into `space.values`; returns the lanes worked on, whole vectors."""
    lanes = -(-filled // STEP) * STEP
    pool(agent, agents, 0, begin, filled, lanes, space)
    pool(task, tasks, 1, begin, filled, lanes, space)
    first = 2 * (agent.bias2.shape[0] + task.bias2.shape[0] + 1)
    for t in range(filled):
        for k in range(shared.shape[1]):
            space.inputs[first + k, t] = shared[begin + t, k]
    dense_rectified(head.weight1, head.bias1, space.inputs, space.x, lanes)
    weigh(head.weight2[:, 0], head.bias2[0], space.x, space.values, lanes)
    return lanes


@fast_entry
def value_states(
    agent: Net, task: Net, head: Net, agents: Side, tasks: Side, shared: Floats32, values: Floats32
) -> None:
    """Values of all states."""
    space = make_space(agent, task, head)
    for begin in range(0, len(values), LANES):
        filled = min(LANES, len(values) - begin)
        value_tile(agent, task, head, agents, tasks, shared, begin, filled, space)
        values[begin : begin + filled] = space.values[:filled]


@fast_entry
def descend_states(
    agent: Net, task: Net, head: Net, agents: Side, tasks: Side, shared: Floats32, target: Floats32, values: Floats32,
    agent_slopes: Slopes, task_slopes: Slopes, head_slopes: Slopes,
) -> float:  # fmt: skip
    """Values and loss; adds up the slopes."""
    space = make_space(agent, task, head)
    rows, states = head.weight1.shape[0], len(target)
    agent_back, task_back = np.ascontiguousarray(agent.weight2.T), np.ascontiguousarray(task.weight2.T)
    head_back, nothing = np.ascontiguousarray(head.weight1.T), np.zeros(rows, np.float32)
    slope, x = space.values, space.x
    loss = 0.0
    for begin in range(0, states, LANES):
        filled = min(LANES, states - begin)
        lanes = value_tile(agent, task, head, agents, tasks, shared, begin, filled, space)
        # From here on `values` of the space holds the slope of the loss in each state's value.
        for t in range(lanes):
            if t >= filled:
                slope[t] = ZERO
                continue
            values[begin + t] = slope[t]
            error = slope[t] - target[begin + t]
            size = abs(error)
            loss += 0.5 * error * error if size < 1.0 else size - 0.5
            slope[t] = min(max(error, -ONE), ONE) / np.float32(states)
        total = ZERO
        for t in range(lanes):
            total += slope[t]
        head_slopes.bias2[0] += total
        # x becomes the slope of the hidden layer's sums.
        for k in range(x.shape[0]):
            w, total = head.weight2[k, 0], ZERO
            for t in range(lanes):
                total += x[k, t] * slope[t]
                x[k, t] = w * slope[t] if x[k, t] > ZERO else ZERO
            head_slopes.weight2[k, 0] += total
        add_rows(x, head_slopes.bias1, lanes)
        add_products(space.inputs, x, head_slopes.weight1, lanes)
        dense(head_back, nothing, x, space.wanted, lanes)
        descend_pool(agent, agent_back, agents, 0, begin, filled, lanes, space, agent_slopes)
        descend_pool(task, task_back, tasks, 1, begin, filled, lanes, space, task_slopes)
    return loss / states
