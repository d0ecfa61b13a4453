"""What one network of the direct model reads, and which objects nothing tells apart: those are scored once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from muster.compile import leaf
from muster.data import BatchObservation, Bools, Floats, Floats32, Ints


class Pairs(NamedTuple):
    """What one network reads: features of the objects on its two sides and of their pairs, and who lives."""

    left: Floats32
    """[B, N, D]"""
    right: Floats32
    """[B, M, E]"""
    pair: Floats32
    """[B, N, M, F]"""
    left_alive: Bools
    right_alive: Bools
    allowed: Bools
    """[B, N, M], or nothing: then all are."""
    prior: Floats
    """[B, N, M], or nothing; rounded where it is read."""
    shared: Floats32
    """[B, F] of the environment itself, read behind the left object's, or nothing."""


KEY_SHIFT = 0.734375
"""Weighs features apart from one another."""
NO_PRIOR = np.zeros((0, 0, 0))
ALL_ALLOWED = np.zeros((0, 0, 0), np.bool_)
NOT_SHARED = np.zeros((0, 0), np.float32)


def pairs_of(seen: BatchObservation, net: str, with_prior: bool) -> Pairs:
    """Agents and tasks for h and contributions, tasks twice for g, the environment itself and tasks for capacities."""
    left, alive, pair, prior = seen.agent_features, seen.agent_alive, seen.pair_features, seen.prior
    if net == "g":
        left, alive, pair, prior = seen.task_features, seen.task_alive, seen.task_pair_features, seen.task_prior
    if net == "capacity":
        batch, m = seen.task_alive.shape
        left, alive = np.zeros((batch, 1, 0), np.float32), np.ones((batch, 1), np.bool_)
        pair = np.zeros((batch, 1, m, 0), np.float32)
    left, right, pair = (np.ascontiguousarray(array) for array in (left, seen.task_features, pair))
    allowed = ALL_ALLOWED if net in ("g", "capacity") or seen.allowed is None else np.ascontiguousarray(seen.allowed)
    given = NO_PRIOR if prior is None or not with_prior else np.ascontiguousarray(prior, np.float64)
    shared = NOT_SHARED if seen.global_features is None else np.array(seen.global_features, np.float32, order="C")
    return Pairs(left, right, pair, alive, seen.task_alive, allowed, given, shared)


def beside(features: Floats32, shared: Floats32 | None) -> Floats32:
    """[B, N, D + F] features of objects [B, N, D], followed by those [B, F] of their environment."""
    if shared is None or not shared.shape[-1]:
        return features
    batch, n, _ = features.shape
    return np.concatenate([features, np.broadcast_to(shared[:, None], (batch, n, shared.shape[-1]))], axis=2)


@leaf
def copy_to_twins(pairs: Pairs, twins: Ints, living: Ints, scores: Floats32) -> None:
    """Give left objects that are scored by another one's name its scores."""
    n, m = twins.shape[1], pairs.right_alive.shape[1]
    for slot in range(twins.shape[0]):
        count = -1
        for i in range(n):
            if twins[slot, i] != i:
                if count < 0:
                    count = list_living(pairs.right_alive, slot, living)
                row, twin = (slot * n + i) * m, (slot * n + twins[slot, i]) * m
                for c in range(count):
                    scores[row + living[c]] = scores[twin + living[c]]


@leaf
def set_keys(pairs: Pairs, slot: int, living: Ints, count: int, keys: Floats) -> None:
    """Give each left object of a state its key, from some of what is read of it.

    Nothing is decided in between, so that what is not in the cache yet comes all at once.
    """
    first = pairs.pair.shape[3] > 0
    for i in range(pairs.left.shape[1]):
        key = 0.0
        for k in range(pairs.left.shape[2]):
            key += (k + KEY_SHIFT) * pairs.left[slot, i, k]
        for c in range(count):
            if first:
                key += (c + KEY_SHIFT) * pairs.pair[slot, i, living[c], 0]
            if len(pairs.prior) > 0:
                key += pairs.prior[slot, i, living[c]]
        keys[i] = key


@leaf
def twin_of(pairs: Pairs, slot: int, i: int, living: Ints, count: int, keys: Floats, firsts: Ints, others: int) -> int:
    """The first left object that reads as object i does with each of the living right ones: itself if no other.

    It is looked for among the `firsts` that are scored, `others` so far; i itself is added to them if there is none.
    """
    for c in range(others):
        # Most differ here already.
        if keys[firsts[c]] == keys[i] and are_alike(pairs, slot, i, firsts[c], living, count):
            return firsts[c]
    firsts[others] = i
    return i


@leaf
def are_alike(pairs: Pairs, slot: int, i: int, other: int, living: Ints, count: int) -> bool:
    """Whether nothing tells two left objects apart."""
    for k in range(pairs.left.shape[2]):
        if pairs.left[slot, i, k] != pairs.left[slot, other, k]:
            return False
    for c in range(count):
        j = living[c]
        forbidden = is_forbidden(pairs.allowed, slot, i, j)
        if forbidden != is_forbidden(pairs.allowed, slot, other, j):
            return False
        if forbidden:
            continue
        if len(pairs.prior) > 0 and pairs.prior[slot, i, j] != pairs.prior[slot, other, j]:
            return False
        for k in range(pairs.pair.shape[3]):
            if pairs.pair[slot, i, j, k] != pairs.pair[slot, other, j, k]:
                return False
    return True


@leaf
def list_living(alive: Bools, slot: int, living: Ints) -> int:
    """Write who lives in a state to the front of `living`; returns how many do."""
    count = 0
    for j in range(alive.shape[1]):
        if alive[slot, j]:
            living[count] = j
            count += 1
    return count


@leaf
def is_forbidden(allowed: Bools, slot: int, i: int, j: int) -> bool:
    """Whether a pair is not allowed, where `allowed` says something."""
    return len(allowed) > 0 and not allowed[slot, i, j]
