"""The direct model without torch: two small networks over pairs of objects.

    h(i, j) = scale·prior_ij + w3·relu(W2 relu(Wa x_i + Wt s_j + Wp f_ij + b1) + b2) + b3

and g(j, l) likewise from the two tasks; the env's own features stand beside x_i, and where it shows no prior there is
no scale. Parameters are a dict of arrays; with a leading axis P they are P models, each for its own share of the batch
(as evolution needs them). Only living and allowed pairs are scored, a tile of them at a time (see tiles.py): nothing is
kept that does not fit in the cache. Objects that nothing tells apart, such as free vehicles at one place, are scored
once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from muster.compile import fast_kernel, fast_leaf, kernel, lean_entry
from muster.data import BatchObservation, Floats, Floats32, Ints
from muster.models.context import context_shapes, init_context
from muster.models.heads import START, Limits, start_of, with_limits
from muster.models.pairs import Pairs, copy_to_twins, is_forbidden, list_living, pairs_of, set_keys, twin_of
from muster.models.spec import ModelSpec
from muster.models.tiles import LANES, STEP, STRIDE, Offsets, dense_rectified, gather, padded, weigh

Parameters = dict[str, Floats32]
Scores = tuple[Floats32, Floats32 | None]
"""h [B, N, M], and g [B, M, M] if the model has one."""


def parameter_shapes(spec: ModelSpec) -> dict[str, tuple[int, ...]]:
    """Name and shape of every array of the model but a CNN's, in their fixed order."""
    k = spec.hidden
    agent, task, env = spec.agent_width + spec.extra, spec.task_width + spec.extra, spec.global_width
    shapes: dict[str, tuple[int, ...]] = {}
    nets = [("h", agent, task, spec.pair_width, spec.prior)]
    if spec.task_scores:
        nets.append(("g", task, task, spec.task_pair_width, spec.task_prior))
    # Learned limits: a capacity is between the environment and a task, a contribution between agent and task.
    if "capacities" in spec.learned:
        nets.append(("capacity", 0, task, 0, False))
    if "contributions" in spec.learned:
        nets.append(("contribution", agent, task, spec.pair_width, False))
    for net, left, right, pair, prior in nets:
        shapes |= {
            f"{net}.left": (left + env, k),
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
    """Uniform within 1/sqrt(inputs) of each layer, as torch's linear layers begin.

    A model that corrects a prior begins as the prior itself: its last layers are 0, its scales 1. The last layers of
    heads are 0 too: every task has the same capacity, and all agents contribute alike.
    """
    shapes = parameter_shapes(spec)
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


class DirectModel:
    """h and g of a direct model, or of P; packed once for as long as its parameters are constant."""

    def __init__(self, parameters: Parameters, task_scores: bool) -> None:
        self.parameters = parameters
        self.h = pack(parameters, "h")
        self.g = pack(parameters, "g") if task_scores else None
        self.heads = {net: pack(parameters, net) for net in START if f"{net}.bias1" in parameters}

    def __call__(self, seen: BatchObservation) -> Scores:
        """h [B, N, M] and, if the model has one, g [B, M, M]."""
        h = pair_scores(self.h, self.pairs(seen, "h"))
        return h, None if self.g is None else pair_scores(self.g, self.pairs(seen, "g"))

    def limits(self, seen: BatchObservation) -> Limits:
        """z of the capacities [B, 1, M] and of the contributions [B, N, M], of those that the model has heads for."""
        return {net: pair_scores(packed, self.pairs(seen, net)) for net, packed in self.heads.items()}

    def limit(self, seen: BatchObservation) -> BatchObservation:
        """What is seen, with the capacities and contributions that the model has learned."""
        return with_limits(seen, self.limits(seen)) if self.heads else seen

    def pairs(self, seen: BatchObservation, net: str) -> Pairs:
        """What the network `net` reads."""
        return pairs_of(seen, net, f"{net}.scale" in self.parameters)


class Packed(NamedTuple):
    """Parameters of P models of one network as the kernels read them: widths padded with zeros."""

    weight1: Floats32
    """[P, D, K]: the rows of the left object's features, the right one's, the pair's."""
    bias1: Floats32
    weight2: Floats32
    bias2: Floats32
    weight3: Floats32
    """[P, K]"""
    bias3: Floats32
    """[P]"""
    scale: Floats32
    """[P] of the prior; nothing if the model has none."""


def pack(parameters: Parameters, net: str) -> Packed:
    """The network `net` of one model, or of P with a leading axis."""

    def part(name: str, width: int) -> Floats32:
        array = parameters[f"{net}.{name}"]
        return array if array.ndim > width else array[None]

    first = np.concatenate([part(name, 2) for name in ("left", "right", "pair")], axis=1)
    models, inputs, hidden = first.shape
    d, k = padded(inputs), padded(hidden)
    packed = Packed(
        np.zeros((models, d, k), np.float32),
        np.zeros((models, k), np.float32),
        np.zeros((models, k, k), np.float32),
        np.zeros((models, k), np.float32),
        np.zeros((models, k), np.float32),
        np.ascontiguousarray(part("bias3", 1)[:, 0]),
        np.ascontiguousarray(part("scale", 1)[:, 0]) if f"{net}.scale" in parameters else np.zeros(0, np.float32),
    )
    packed.weight1[:, :inputs, :hidden] = first
    packed.bias1[:, :hidden] = part("bias1", 1)
    packed.weight2[:, :hidden, :hidden] = part("weight2", 2)
    packed.bias2[:, :hidden] = part("bias2", 1)
    packed.weight3[:, :hidden] = part("weight3", 2)[:, :, 0]
    return packed


class Tile(NamedTuple):
    """Scratch for LANES pairs at a time."""

    inputs: Floats32
    """[D, STRIDE]"""
    x: Floats32
    """[K, STRIDE] the hidden layers."""
    y: Floats32
    scores: Floats32
    """[LANES]"""
    where: Offsets
    """[LANES] the pair of each lane, as an index of all scores."""
    left: Offsets
    """[LANES] its left object, as an index of all."""
    right: Offsets
    slot: Offsets
    """[LANES] its state."""
    living: Ints
    """[M] the right objects of a state that live."""
    firsts: Ints
    """[N] the left objects of a state that are scored."""
    keys: Floats
    """[N] for each left object a number that those which read alike have in common."""


class Flat(NamedTuple):
    """The features and the prior of `Pairs`, object after object, pair after pair and state after state."""

    left: Floats32
    right: Floats32
    pair: Floats32
    prior: Floats
    shared: Floats32


def pair_scores(packed: Packed, pairs: Pairs) -> Floats32:
    """One network over all pairs: [B, N, M]; 0 for the dead and for what is not allowed."""
    scores = np.zeros((*pairs.left_alive.shape, pairs.right_alive.shape[1]), np.float32)
    _, inputs, hidden = packed.weight1.shape
    tile = Tile(
        np.zeros((inputs, STRIDE), np.float32),
        np.zeros((hidden, STRIDE), np.float32),
        np.zeros((hidden, STRIDE), np.float32),
        np.zeros(LANES, np.float32),
        np.zeros(LANES, np.uint64),
        np.zeros(LANES, np.uint64),
        np.zeros(LANES, np.uint64),
        np.zeros(LANES, np.uint64),
        np.zeros(scores.shape[2], np.int64),
        np.zeros(scores.shape[1], np.int64),
        np.zeros(scores.shape[1]),
    )
    flat = Flat(
        pairs.left.reshape(-1),
        pairs.right.reshape(-1),
        pairs.pair.reshape(-1),
        pairs.prior.reshape(-1),
        pairs.shared.reshape(-1),
    )
    twins = np.empty(pairs.left_alive.shape, np.int64)
    score_pairs(packed, pairs, flat, tile, twins, scores.reshape(-1))
    return scores


@lean_entry
def score_pairs(packed: Packed, pairs: Pairs, flat: Flat, tile: Tile, twins: Ints, scores: Floats32) -> None:
    """Score every living pair that is allowed; a model's pairs share its tiles. `scores` lie flat.

    `twins` [B, N] is room for whose scores each left object has.
    """
    batch, n, m = pairs.left_alive.shape[0], pairs.left_alive.shape[1], pairs.right_alive.shape[1]
    models = packed.bias1.shape[0]
    each = batch // models
    for p in range(models):
        filled = 0
        for slot in range(p * each, (p + 1) * each):
            count, others = list_living(pairs.right_alive, slot, tile.living), 0
            set_keys(pairs, slot, tile.living, count, tile.keys)
            for i in range(n):
                twins[slot, i] = i
                if not pairs.left_alive[slot, i]:
                    continue
                twins[slot, i] = twin_of(pairs, slot, i, tile.living, count, tile.keys, tile.firsts, others)
                if twins[slot, i] != i:
                    continue
                others += 1
                for c in range(count):
                    j = tile.living[c]
                    if is_forbidden(pairs.allowed, slot, i, j):
                        continue
                    tile.where[filled] = (slot * n + i) * m + j
                    tile.left[filled] = slot * n + i
                    tile.right[filled] = slot * m + j
                    tile.slot[filled] = slot
                    filled += 1
                    if filled == LANES:
                        score_lanes(packed, p, pairs, flat, tile, scores, filled)
                        filled = 0
        if filled:
            score_lanes(packed, p, pairs, flat, tile, scores, filled)
    copy_to_twins(pairs, twins, tile.living, scores)


@kernel
def score_lanes(packed: Packed, p: int, pairs: Pairs, flat: Flat, tile: Tile, scores: Floats32, filled: int) -> None:
    """Fill the tile with the features of its pairs, feature by feature, and write their scores to where they belong."""
    row = 0
    gather(flat.left, tile.left, pairs.left.shape[2], tile.inputs, row, filled)
    row += pairs.left.shape[2]
    gather(flat.shared, tile.slot, pairs.shared.shape[1], tile.inputs, row, filled)
    row += pairs.shared.shape[1]
    gather(flat.right, tile.right, pairs.right.shape[2], tile.inputs, row, filled)
    row += pairs.right.shape[2]
    gather(flat.pair, tile.where, pairs.pair.shape[3], tile.inputs, row, filled)
    score_tile(packed, p, tile.inputs, tile.x, tile.y, tile.scores, filled)
    spread(tile, packed.scale, p, flat.prior, scores, filled)


@fast_leaf
def lanes_of(filled: int) -> int:
    """Whole steps of lanes that hold so many pairs."""
    return (filled + STEP - 1) // STEP * STEP


@fast_kernel
def score_tile(
    packed: Packed, p: int, inputs: Floats32, x: Floats32, y: Floats32, scores: Floats32, filled: int
) -> int:
    """The three layers of model p on a tile, keeping the hidden ones in x and y; returns the lanes used."""
    lanes = lanes_of(filled)
    dense_rectified(packed.weight1[p], packed.bias1[p], inputs, x, lanes)
    dense_rectified(packed.weight2[p], packed.bias2[p], x, y, lanes)
    weigh(packed.weight3[p], packed.bias3[p], y, scores, lanes)
    return lanes


@fast_leaf
def spread(tile: Tile, scale: Floats32, p: int, prior: Floats, scores: Floats32, filled: int) -> None:
    """Write the scores of a tile to where they belong, with scale·prior added if there is one."""
    for t in range(filled):
        at = tile.where[t]
        scores[at] = tile.scores[t] + scale[p] * np.float32(prior[at]) if len(prior) else tile.scores[t]
