"""The direct model without torch: two small networks over pairs of objects.

    h(i, j) = w3·relu(W2 relu(Wa x_i + Wt s_j + Wp f_ij + b1) + b2) + b3

and g(j, l) likewise from the two tasks. The first layer is kept in its agent, task and pair parts, so the first two are
computed once per object instead of once per pair. Parameters are a dict of arrays; with a leading axis P they are P
models at once, each for its own share of the batch (as evolution needs them).
"""

from __future__ import annotations

import numpy as np

from muster.data import Floats32, Observation
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
    h = pair_scores(parameters, "h", observation.agent_features, observation.task_features, observation.pair_features)
    if not task_scores:
        return h, None
    tasks = observation.task_features
    return h, pair_scores(parameters, "g", tasks, tasks, observation.task_pair_features)


def pair_scores(parameters: Parameters, net: str, left: Floats32, right: Floats32, pair: Floats32) -> Floats32:
    """One network over all pairs: left [B, N, D], right [B, M, E], pair [B, N, M, F] -> [B, N, M]."""

    def part(name: str) -> Floats32:
        array = parameters[f"{net}.{name}"]
        wanted = 1 if name.startswith("bias") else 2
        return array if array.ndim > wanted else array[None]

    batch, n, m = left.shape[0], left.shape[1], right.shape[1]
    models = part("left").shape[0]
    each, k = batch // models, part("left").shape[2]
    a = (left.reshape(models, each * n, -1) @ part("left")).reshape(models, each, n, 1, k)
    b = (right.reshape(models, each * m, -1) @ part("right") + part("bias1")[:, None]).reshape(models, each, 1, m, k)
    x = a + b
    if pair.shape[-1]:
        x += (pair.reshape(models, each * n * m, -1) @ part("pair")).reshape(x.shape)
    x = x.reshape(models, each * n * m, k)
    np.maximum(x, 0.0, out=x)
    x = x @ part("weight2")
    x += part("bias2")[:, None]
    np.maximum(x, 0.0, out=x)
    return (x @ part("weight3") + part("bias3")[:, None]).reshape(batch, n, m)
