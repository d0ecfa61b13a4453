"""Means and standard stds of a linear model's features, measured before the first update and then constant."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from muster.assign.settings import InferenceSettings
from muster.assign.solver import Solver
from muster.data import BatchObservation, Bools, Floats, Floats32, Ints
from muster.envs.vector import BatchEnv
from muster.learning.learner import STATISTICS, stream, training_seeds
from muster.models.context_features import available
from muster.models.linear import Block, g_blocks, h_blocks
from muster.models.spec import ModelSpec, Scores, Statistics
from muster.policy.decision import decide
from muster.rollout import rollout

EPISODES, STEPS = 8, 200
"""Episodes in each environment, and the largest number of decisions of each."""
EVERY = 3
"""Every third decision is sampled."""
MOST_PAIRS = 512
"""Pairs sampled of one decision."""
MOST_PRODUCTS = 32
"""Largest number of products with global features in a model."""


def with_statistics(spec: ModelSpec, envs: Sequence[BatchEnv], inference: InferenceSettings, seed: int) -> ModelSpec:
    """The linear model with its context features, and the statistics of all its features.

    They are measured in training episodes of the prior policy, or of random scores where there is no prior.
    """
    observations = [one for k, env in enumerate(envs) for one in _run_prior(spec, env, inference, seed, k)]
    bare = [spec.read(one) for one in observations]
    unit, task_unit = 1.0, 0.0
    if spec.prior:
        unit = _std(np.concatenate([read.prior[read.pairs] for read in bare if read.prior is not None])) or 1.0
    if spec.task_prior:
        priors = [read.task_prior[read.task_pairs] for read in bare if read.task_prior is not None]
        task_unit = _std(np.concatenate(priors))
    spec = dataclasses.replace(
        spec,
        context_features=available(bare[0], spec.prior),
        prior_unit=unit,
    )
    local = spec.h_columns - spec.global_width
    spec = dataclasses.replace(spec, products=0 < local * spec.global_width <= MOST_PRODUCTS)
    read = [spec.read(one) for one in observations]
    h = _statistics(unit, read, lambda one: h_blocks(spec, one), lambda one: one.pairs)
    if not spec.task_scores:
        return dataclasses.replace(spec, h_statistics=h)
    task_unit = task_unit or unit / max(env.n_agents for env in envs)
    g = _statistics(task_unit, read, lambda one: g_blocks(spec, one), lambda one: one.task_pairs)
    return dataclasses.replace(spec, h_statistics=h, g_statistics=g)


def _run_prior(
    spec: ModelSpec, env: BatchEnv, inference: InferenceSettings, seed: int, index: int
) -> list[BatchObservation]:
    """Observations sampled from episodes of the prior policy in an environment with EPISODES slots."""
    rng, solver = stream(seed, STATISTICS), Solver.of(inference, threads=1)
    env.reset(np.arange(env.n_envs), training_seeds(seed, index, np.arange(env.n_envs)))

    def score(read: BatchObservation) -> Scores:
        h = rng.standard_normal(read.pairs.shape, np.float32) if read.prior is None else read.prior
        g = np.zeros(read.task_pairs.shape) if read.task_prior is None else read.task_prior
        return h.astype(np.float32), g.astype(np.float32) if spec.task_scores else None

    def act(observation: BatchObservation) -> Ints:
        return decide(observation, spec, score, solver).actions(env.reads_reasons)

    observations = []
    for step, transition in enumerate(rollout(env, act, np.ones(env.n_envs, np.bool_))):
        if step % EVERY == 0:
            observations.append(transition.observation)
        if step == STEPS:
            break
    return observations


def _statistics(
    unit: float,
    read: Sequence[BatchObservation],
    blocks: Callable[[BatchObservation], list[Block]],
    pairs: Callable[[BatchObservation], Bools],
) -> Statistics:
    rows = np.concatenate([_rows(blocks(one), pairs(one)) for one in read])
    if not len(rows):
        return Statistics(unit, (0.0,) * rows.shape[1], (0.0,) * rows.shape[1])
    means, stds = rows.mean(axis=0), rows.std(axis=0)
    # Global features are of a decision, not of a pair: decisions without a pair count too.
    for k, (begin, axes, _) in enumerate(blocks(read[0])):
        if axes == "b":
            values = np.concatenate([blocks(one)[k].values for one in read])
            columns = slice(begin, begin + values.shape[1])
            means[columns], stds[columns] = values.mean(axis=0), values.std(axis=0)
    # A standard deviation within rounding errors is 0.
    stds[stds <= 1e-6 * np.abs(means)] = 0.0
    return Statistics(unit, tuple(means.tolist()), tuple(stds.tolist()))


def _rows(blocks: list[Block], pairs: Bools) -> Floats:
    """[K, F] features of at most MOST_PAIRS pairs, evenly spaced among all."""
    every = np.argwhere(pairs)
    chosen = every[:: -(-len(every) // MOST_PAIRS)] if len(every) else every
    at = dict(zip("bnm", chosen.T, strict=True))
    width = max(block.begin + block.values.shape[-1] for block in blocks)
    rows = np.zeros((len(chosen), width))
    for begin, axes, values in blocks:
        rows[:, begin : begin + values.shape[-1]] += values[tuple(at[axis] for axis in axes)]
    return rows


def _std(values: Floats | Floats32) -> float:
    return float(np.std(values, dtype=np.float64)) if values.size else 0.0
