"""The direct model without torch: two small networks over pairs of objects.

    h(i, j) = w3·relu(W2 relu(Wa x_i + Wt s_j + Wp f_ij + b1) + b2) + b3

and g(j, l) likewise from the two tasks. The first layer is kept in its agent, task and pair parts, so the first two are
computed once per object instead of once per pair. Parameters are a dict of arrays; with a leading axis P they are P
models at once, each for its own share of the batch (as evolution needs them).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from muster.data import Bools, Floats32, Observation
from muster.scoring.spec import ModelSpec

Parameters = dict[str, Floats32]


def parameter_shapes(spec: ModelSpec) -> dict[str, tuple[int, ...]]:
    """Name and shape of every array of the model's pair networks, in their fixed order."""
    k = spec.hidden
    agent, task = spec.agent_width + spec.extra, spec.task_width + spec.extra
    shapes: dict[str, tuple[int, ...]] = {}
    nets = [("h", agent, task, spec.pair_width)]
    if spec.task_scores:
        nets.append(("g", task, task, spec.task_pair_width))
    for net, left, right, pair in nets:
        shapes |= {
            f"{net}.left": (left, k),
            f"{net}.right": (right, k),
            f"{net}.pair": (pair, k),
            f"{net}.bias1": (k,),
            f"{net}.weight2": (k, k),
            f"{net}.bias2": (k,),
            f"{net}.weight3": (k, 1),
            f"{net}.bias3": (1,),
        }
    return shapes


def init_parameters(spec: ModelSpec, rng: np.random.Generator) -> Parameters:
    """Uniform within 1/sqrt(inputs) of each layer, as torch's linear layers begin."""
    shapes = parameter_shapes(spec)
    parameters: Parameters = {}
    for name, shape in shapes.items():
        net, part = name.split(".")
        first = part in ("left", "right", "pair", "bias1")
        inputs = sum(shapes[f"{net}.{p}"][0] for p in ("left", "right", "pair")) if first else spec.hidden
        bound = 1.0 / np.sqrt(inputs)
        parameters[name] = rng.uniform(-bound, bound, shape).astype(np.float32)
    return parameters


def direct_scores(
    parameters: Parameters, observation: Observation, task_scores: bool
) -> tuple[Floats32, Floats32 | None]:
    """H [B, N, M] and, if asked, g [B, M, M]."""
    agents, tasks = observation.agent_features, observation.task_features
    alive = observation.task_alive
    h = pair_scores(parameters, "h", agents, tasks, observation.pair_features, observation.agent_alive, alive)
    if not task_scores:
        return h, None
    return h, pair_scores(parameters, "g", tasks, tasks, observation.task_pair_features, alive, alive)


def pair_scores(
    parameters: Parameters,
    net: str,
    left: Floats32,
    right: Floats32,
    pair: Floats32,
    left_alive: Bools,
    right_alive: Bools,
) -> Floats32:
    """One network over all pairs: left [B, N, D], right [B, M, E], pair [B, N, M, F] -> [B, N, M]; 0 for the dead."""

    def part(name: str) -> Floats32:
        array = parameters[f"{net}.{name}"]
        wanted = 1 if name.startswith("bias") else 2
        return np.ascontiguousarray(array if array.ndim > wanted else array[None])

    scores = np.zeros((left.shape[0], left.shape[1], right.shape[1]), np.float32)
    score_pairs(
        np.ascontiguousarray(left),
        np.ascontiguousarray(right),
        np.ascontiguousarray(pair),
        left_alive,
        right_alive,
        part("left"),
        part("right"),
        part("pair"),
        part("bias1"),
        part("weight2"),
        part("bias2"),
        np.ascontiguousarray(part("weight3")[:, :, 0]),
        part("bias3"),
        scores,
    )
    return scores


@njit(cache=True, nogil=True, fastmath=True, error_model="numpy")
def score_pairs(
    left: Floats32,
    right: Floats32,
    pair: Floats32,
    left_alive: Bools,
    right_alive: Bools,
    left_weight: Floats32,
    right_weight: Floats32,
    pair_weight: Floats32,
    bias1: Floats32,
    weight2: Floats32,
    bias2: Floats32,
    weight3: Floats32,
    bias3: Floats32,
    scores: Floats32,
) -> None:
    """The three layers for every living pair, one after the other: nothing is kept that does not fit in the cache."""
    batch, n, m = scores.shape
    models, width = bias1.shape
    each = batch // models
    a, b = np.empty((n, width), np.float32), np.empty((m, width), np.float32)
    x, y = np.empty(width, np.float32), np.empty(width, np.float32)
    for slot in range(batch):
        p = slot // each
        for i in range(n):
            for k in range(width):
                a[i, k] = 0.0
            for d in range(left.shape[2]):
                for k in range(width):
                    a[i, k] += left[slot, i, d] * left_weight[p, d, k]
        for j in range(m):
            for k in range(width):
                b[j, k] = bias1[p, k]
            for d in range(right.shape[2]):
                for k in range(width):
                    b[j, k] += right[slot, j, d] * right_weight[p, d, k]
        for i in range(n):
            if not left_alive[slot, i]:
                continue
            for j in range(m):
                if not right_alive[slot, j]:
                    continue
                for k in range(width):
                    x[k] = a[i, k] + b[j, k]
                    y[k] = bias2[p, k]
                for d in range(pair.shape[3]):
                    for k in range(width):
                        x[k] += pair[slot, i, j, d] * pair_weight[p, d, k]
                for hidden in range(width):
                    # About half of the first layer is silent: its rows are skipped.
                    if x[hidden] > 0.0:
                        for k in range(width):
                            y[k] += x[hidden] * weight2[p, hidden, k]
                total = bias3[p, 0]
                for k in range(width):
                    total += max(y[k], np.float32(0.0)) * weight3[p, k]
                scores[slot, i, j] = total
