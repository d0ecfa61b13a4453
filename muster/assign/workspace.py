"""Scratch arrays that the kernels work in, allocated once for many instances."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from muster.compile import maker
from muster.data import Floats, Ints


class Tree(NamedTuple):
    """A rooted forest over agents, tasks and a root: the basis of a network simplex."""

    parent: Ints
    first: Ints
    """First child, -1 for none."""
    next: Ints
    """Next and previous sibling, -1 for none."""
    previous: Ints
    flow: Floats
    """On the arc between a node and its parent."""
    dual: Floats
    mark: Ints


@maker
def make_tree(n: int, m: int) -> Tree:
    """Room for n agents, m tasks and a root."""
    size = n + m + 1
    return Tree(
        np.empty(size, np.int64),
        np.empty(size, np.int64),
        np.empty(size, np.int64),
        np.empty(size, np.int64),
        np.zeros(size),
        np.zeros(size),
        np.zeros(size, np.int64),
    )
