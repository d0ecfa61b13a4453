"""Who is in which place: where places of agents and tasks are used again, ids say who is there now."""

from __future__ import annotations

import numpy as np

from muster.data import Ints


def follow(last: Ints, before: Ints, now: Ints) -> Ints:
    """[B, N] what `last` says of those who are in each place now, given who was there before; -1 for newcomers."""
    if np.array_equal(before, now):
        return last
    at = places(now, before, np.broadcast_to(np.arange(now.shape[1]), now.shape))
    return np.where(at >= 0, np.take_along_axis(last, np.maximum(at, 0), axis=1), -1)


def places(wanted: Ints, ids: Ints, guess: Ints) -> Ints:
    """[B, K] where in each row of `ids` [B, M] the wanted ids are, -1 for none; `guess` is tried first."""
    found = np.where((wanted >= 0) & (np.take_along_axis(ids, guess, axis=1) == wanted), guess, -1)
    rows, columns = np.nonzero((wanted >= 0) & (found < 0))
    if len(rows):
        same = ids[rows] == wanted[rows, columns][:, None]
        found[rows, columns] = np.where(same.any(axis=1), same.argmax(axis=1), -1)
    return found
