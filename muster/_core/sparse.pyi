"""Kernels for few allowed pairs among many. Called by `muster.assign.sparse`."""

from muster.data import Floats, Ints

class Pairs:
    def __init__(self, first: Ints, task: Ints, score: Floats, use: Floats, capacity: Floats, idle: float) -> None: ...

def solve_by_augmenting_paths(pairs: Pairs, chosen: Ints, price: Floats, stop: Ints, seconds: float) -> bool:
    """Best pair of each agent where every agent takes one slot, and prices that prove it; False if stopped."""

def search_assignment(pairs: Pairs, start: Ints, chosen: Ints, price: Floats, stop: Ints, seconds: float) -> None:
    """Good pair of each agent for any contributions, and prices that bound the value of every assignment."""
