"""Agents and tasks matched by their ids, as their indices may change from step to step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from muster.data import Ints


def follow(last: Ints, before: Ints, now: Ints) -> Ints:
    """[B, N] the entries of `last`, from the agents with ids `before` to those with ids `now`; -1 for new agents."""
    if np.array_equal(before, now):
        return last
    at = find_ids(now, before, np.broadcast_to(np.arange(now.shape[1]), now.shape))
    return np.where(at >= 0, np.take_along_axis(last, np.maximum(at, 0), axis=1), -1)


class Ids(NamedTuple):
    """Ids of agents [B, N] and tasks [B, M]; None if an index always means the same one."""

    agents: Ints | None
    tasks: Ints | None


def tasks_now(last: Ints, before: Ids, now: Ids) -> Ints:
    """[B, N] the task of each present agent in the assignment `last`, by its present index; -1 for none."""
    if before.agents is not None and now.agents is not None:
        last = follow(last, before.agents, now.agents)
    if before.tasks is not None and now.tasks is not None:
        at = np.maximum(last, 0)
        wanted = np.where(last >= 0, np.take_along_axis(before.tasks, at, axis=1), -1)
        last = find_ids(wanted, now.tasks, at)
    return last


def find_ids(wanted: Ints, ids: Ints, guess: Ints) -> Ints:
    """[B, K] index in each row of `ids` [B, M] of the wanted ids, -1 if missing; `guess` is tried first."""
    index = np.where((wanted >= 0) & (np.take_along_axis(ids, guess, axis=1) == wanted), guess, -1)
    rows, columns = np.nonzero((wanted >= 0) & (index < 0))
    if len(rows):
        same = ids[rows] == wanted[rows, columns][:, None]
        index[rows, columns] = np.where(same.any(axis=1), same.argmax(axis=1), -1)
    return index
