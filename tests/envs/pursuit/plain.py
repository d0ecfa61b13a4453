"""The dynamics of pursuit once more, for one episode, in plain Python: what the kernels are compared with."""

from __future__ import annotations

from fractions import Fraction

Cell = tuple[int, int]


class Plain:
    """Geometry and choices; every random choice is a set of what may happen."""

    def __init__(self, height: int, width: int, walls: bool, needed: int, sight: int) -> None:
        self.size, self.walls, self.needed, self.sight = (height, width), walls, needed, sight

    def gap(self, a: int, b: int, axis: int) -> int:
        """Steps along one axis."""
        rounds = (0,) if self.walls else (-1, 0, 1)
        return min(abs(a - b + k * self.size[axis]) for k in rounds)

    def distance(self, a: Cell, b: Cell) -> int:
        """King's moves."""
        return max(self.gap(a[0], b[0], 0), self.gap(a[1], b[1], 1))

    def neighbours(self, cell: Cell) -> list[Cell]:
        """The cell itself and where a king could go, in the order of the nine offsets."""
        found = []
        for rows in (-1, 0, 1):
            for columns in (-1, 0, 1):
                row, column = cell[0] + rows, cell[1] + columns
                inside = 0 <= row < self.size[0] and 0 <= column < self.size[1]
                if inside or not self.walls:
                    found.append((row % self.size[0], column % self.size[1]))
        return found

    def targets(self, assignment: list[int], pursuers: list[Cell], evaders: list[Cell], free: list[bool]) -> list[int]:
        """Whom everyone goes for."""
        wanted = [j if j >= 0 and free[j] else -1 for j in assignment]
        if any(free[j] and wanted.count(j) < self.needed for j in range(len(evaders))):
            return wanted
        open_tasks = [j for j in range(len(evaders)) if free[j]]
        return [
            j if j >= 0 else min(open_tasks, key=lambda k: (self.distance(here, evaders[k]), evaders[k]))
            for j, here in zip(wanted, pursuers, strict=True)
        ]

    def moves(self, pursuer: Cell, evader: Cell) -> set[Cell]:
        """Where a pursuer of this evader may be after its move: nearer on every axis on which it can be."""
        if self.distance(pursuer, evader) <= 1:
            return {pursuer}

        def nearer(axis: int) -> set[int]:
            here, there = pursuer[axis], evader[axis]
            steps = {(here + d) % self.size[axis] for d in (-1, 1)}
            return {p for p in steps if self.gap(p, there, axis) < self.gap(here, there, axis)} or {here}

        return {(row, column) for row in nearer(0) for column in nearer(1)}

    def is_caught(self, pursuers: list[Cell], evader: Cell) -> bool:
        """Enough pursuers beside it."""
        return sum(self.distance(p, evader) <= 1 for p in pursuers) >= self.needed

    def safest(self, pursuers: list[Cell], evader: Cell) -> set[Cell]:
        """Where an evader that moves may go."""

        def danger(cell: Cell) -> Fraction:
            ways = [self.distance(cell, p) for p in pursuers]
            return sum((Fraction(1, 4**way) for way in ways if way <= self.sight), Fraction(0))

        cells = self.neighbours(evader)
        least = min(map(danger, cells))
        return {cell for cell in cells if danger(cell) == least}
