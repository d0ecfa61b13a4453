"""Starting from a trained policy (--from): its parameters in a new model, whose new inputs and scores start at 0.

Before the first update the new policy has the scores of the old one.
"""

from __future__ import annotations

import numpy as np

from muster.custom import is_custom
from muster.data import Floats32
from muster.envs.registry import kind_of
from muster.envs.vector import BatchEnv
from muster.errors import InputError
from muster.models.context import context_shapes
from muster.models.spec import ModelSpec, Parameters
from muster.policy.learned import LearnedPolicy

MAY_BE_NEW = ("pair_width", "task_pair_width", "global_width", "planes")
"""Inputs that the new model may have and the policy may lack."""
FORM = ("blind", "distances", "distance_unit", "distance_prior")
SIZES = {
    "agent_width": "features of an agent",
    "task_width": "features of a task",
    "pair_width": "features of a pair",
    "task_pair_width": "features of two tasks",
    "global_width": "features of the environment",
    "hidden": "hidden units",
    "planes": "planes",
    "embedding": "values of a cell",
    "channels": "channels",
    "blocks": "blocks",
    "context": "values of a token",
    "heads": "heads",
    "rounds": "rounds",
}


def check_fit(policy: LearnedPolicy, spec: ModelSpec, method: str, env: BatchEnv) -> None:
    """Raise InputError unless a run's model can start from the policy."""
    old, name, fades = policy.spec, policy.name, spec.pair_scale == "fade"
    trained_on = str(policy.header.get("env", env.name))
    if kind_of(trained_on) != kind_of(env.name):
        raise InputError(f"{name} was trained on {trained_on}: a run on {env.name} cannot go on from it")
    if (policy.inference.method == "routes") != (method == "routes"):
        raise InputError(
            f"{name} learned its scores for {policy.inference.method}: costs of routes are no scores of assignments, "
            f"so a run with --inference {method} cannot go on from it"
        )
    if old.kind != spec.kind and (is_custom(old.kind) or is_custom(spec.kind)):
        raise InputError(f"{name} is a model {old.kind}, this run's is {spec.kind}: it cannot go on from it")
    if (old.kind == "linear") != (spec.kind == "linear") or old.kind not in ("dm", "linear", spec.kind):
        kind = {"dm": "direct", "pem": "positional", "context": "context", "linear": "linear"}[old.kind]
        raise InputError(f"{name} is a {kind} model, which no other can go on from; use --model {old.kind}")
    if old.centred != spec.centred:
        where, advice = ("from the middle", "add") if old.centred else ("on the map", "leave out")
        raise InputError(f"{name} reads positions {where}, this run's model does not; {advice} --form centred")
    for limit in old.learned:
        if limit not in spec.learned:
            raise InputError(f"{name} learned {limit}, which this run takes from the environment; add --learn {limit}")
    if old.kind == "linear" and old.task_scores != spec.task_scores:
        method = "quad" if old.task_scores else "lp"
        raise InputError(f"{name} is a linear model for {method}, which a run goes on from with --inference {method}")
    for size, noun in SIZES.items():
        had, has = getattr(old, size), getattr(spec, size)
        if had != has and not (size in MAY_BE_NEW and had == 0):
            raise InputError(f"{name} has {had} {noun}, this run's model {has}: it cannot go on from it")
    # A context model knows distances in any form.
    form = ("blind", "distance_prior") if spec.kind == "context" and not old.distances else FORM
    if any(getattr(old, part) != getattr(spec, part) for part in form) or (old.pair_scale == "fade") != fades:
        local = bool(old.blind) or old.distance_prior
        advice = f"use --form {'local' if local else 'plain'}"
        if old.pair_scale == "fade":
            advice += " and --learner es"
        raise InputError(f"{name} was made with another --form than this run's model; {advice}, as in its training")
    if (old.prior and not spec.prior) or (spec.task_scores and old.task_prior and not spec.task_prior):
        raise InputError(f"{name} corrects a prior, which this run does not read; it needs one (prior = true)")
    if old.kind == spec.kind == "context" and context_shapes(old) != context_shapes(spec):
        raise InputError(
            f"{name} knows other things of two objects than this run's model (features of pairs, positions, a prior): "
            "it cannot go on from it"
        )


def carried_over(policy: LearnedPolicy, spec: ModelSpec, fresh: Parameters) -> Parameters:
    """The policy's parameters fitted to a new model, and the `fresh` ones where the policy has none."""
    old, parameters = policy.spec, dict(fresh)
    if is_custom(old.kind):
        return parameters | policy.parameters
    for name, array in policy.parameters.items():
        if name not in fresh:  # g, under an inference without
            continue
        net, _, part = name.partition(".")
        if part == "left":
            had = {"g": old.task_width, "capacity": 0}.get(net, old.agent_width)
            parameters[name] = _placed(array, (had, old.extra, old.global_width), (had, spec.extra, spec.global_width))
        elif part == "right":
            parameters[name] = _placed(array, (old.task_width, old.extra), (old.task_width, spec.extra))
        elif part == "pair":
            parameters[name] = _placed(array, (len(array),), (len(fresh[name]),))
        else:
            parameters[name] = array.copy()
    if old.pair_scale == "size" and spec.trained_agents:
        # g at the size of the policy's training, with the diagonal, which is not scaled by itself, to match.
        factor = np.float32(old.pair_share(np.array(spec.trained_agents)))
        for name in ("g.weight", "g.weight3", "g.bias3"):
            if name in parameters:
                parameters[name] = parameters[name] * factor
        if old.task_prior and "g.scale" in parameters:
            parameters["g.scale"] = 1 + factor * (parameters["g.scale"] - 1)
    for net, prior in (("h", old.prior), ("g", old.task_prior)):
        if f"{net}.scale" in parameters and not prior and f"{net}.bias1" in policy.parameters:
            parameters[f"{net}.scale"] = np.zeros_like(fresh[f"{net}.scale"])
    if spec.task_scores and not old.task_scores:
        # Scores of pairs of tasks start at 0.
        for part in ("weight3", "bias3", "scale"):
            if f"g.{part}" in fresh:
                parameters[f"g.{part}"] = np.zeros_like(fresh[f"g.{part}"])
    return parameters


def _placed(array: Floats32, had: tuple[int, ...], has: tuple[int, ...]) -> Floats32:
    """An input layer with more inputs: in each block of rows the old ones first, then zeros."""
    rows, begin = [], 0
    for old, new in zip(had, has, strict=True):
        rows += [array[begin : begin + old], np.zeros((new - old, array.shape[1]), np.float32)]
        begin += old
    return np.concatenate(rows)
