"""The inner loops of pursuit: plain arrays in, modified in place.

Cells are (row, column); B slots, N pursuers, M evaders; distances are king's moves. Every function of one slot touches
that slot only, so the loop over slots may run on any number of threads. Nothing depends on how pursuers or evaders are
numbered: what could tie is decided by place or by the evader's own random stream.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from muster.compile import entry, kernel, leaf, lean_entry
from muster.data import Bools, Floats, Ints
from muster.rng import Seeds, below, next_u64, uniform

FAR = np.iinfo(np.int64).max
STEP_COST = 0.01


class Rules(NamedTuple):
    """What does not change while an episode is played."""

    height: int
    width: int
    walls: bool
    needed: int
    sight: int
    speed: float
    max_steps: int


class World(NamedTuple):
    """The state of B episodes."""

    pursuers: Ints
    """[B, N, 2] row and column."""
    evaders: Ints
    """[B, M, 2] row and column; of one that is caught, where it was."""
    free: Bools
    """[B, M] not caught."""
    moves: Ints
    """[B, M, 2] each evader's last move."""
    targets: Ints
    """[B, N] the evader that each pursuer went for last; -1 for none."""
    luck: Seeds
    """[B, M] a random stream for each evader."""
    steps: Ints
    """[B]"""
    running: Bools
    """[B]"""

    def part(self, slots: slice) -> World:
        """Some slots only, sharing their memory."""
        arrays: tuple[Any, ...] = self
        return World(*(array[slots] for array in arrays))


@leaf
def ahead(here: int, there: int, size: int, walls: bool) -> int:
    """Steps from `here` to `there` along one axis, with a sign; without walls the shorter way round."""
    way = there - here
    if not walls:
        # Exactly half way round both ways are as long, and the sign follows from the places alone.
        if 2 * way > size:
            way -= size
        elif 2 * way < -size:
            way += size
    return way


@leaf
def apart(row: int, column: int, cell: Ints, rules: Rules) -> int:
    """King's moves from (row, column) to `cell`."""
    rows = abs(ahead(row, cell[0], rules.height, rules.walls))
    return max(rows, abs(ahead(column, cell[1], rules.width, rules.walls)))


@leaf
def distance(a: Ints, b: Ints, rules: Rules) -> int:
    """King's moves from cell a to cell b."""
    return apart(a[0], a[1], b, rules)


@entry
def start_slots(slots: Ints, seeds: Seeds, rules: Rules, env: World) -> None:
    """Begin the episode of `seeds[k]` in `slots[k]`: everyone on a cell of their own, uniformly at random."""
    stream = np.zeros(1, np.uint64)
    n, m = env.pursuers.shape[1], env.evaders.shape[1]
    cells = np.empty(n + m, np.int64)
    for k in range(slots.shape[0]):
        slot = slots[k]
        stream[0] = seeds[k]
        for one in range(n + m):
            taken = True
            while taken:
                cells[one] = below(stream, 0, rules.height * rules.width)
                taken = False
                for other in range(one):
                    taken = taken or cells[other] == cells[one]
        for i in range(n):
            env.pursuers[slot, i, 0], env.pursuers[slot, i, 1] = cells[i] // rules.width, cells[i] % rules.width
            env.targets[slot, i] = -1
        for j in range(m):
            cell = cells[n + j]
            env.evaders[slot, j, 0], env.evaders[slot, j, 1] = cell // rules.width, cell % rules.width
            env.free[slot, j] = True
            env.moves[slot, j] = 0
            env.luck[slot, j] = next_u64(stream, 0)
        env.steps[slot] = 0
        env.running[slot] = True


@entry
def first_bad_task(assignment: Ints, n_tasks: int) -> int:
    """Flat index of the first entry outside -1..M-1, or -1."""
    flat = assignment.reshape(-1)
    for k in range(flat.shape[0]):
        if flat[k] < -1 or flat[k] >= n_tasks:
            return k
    return -1


@kernel
def take_targets(assignment: Ints, rules: Rules, pursuers: Ints, evaders: Ints, free: Bools, targets: Ints) -> None:
    """Whom each pursuer of a slot goes for, into `targets`.

    Who is given no free evader stays, if there is still room for them somewhere; if every free evader has all that it
    needs, they help with the nearest (of several the uppermost, then the leftmost).
    """
    room = 0
    for j in range(evaders.shape[0]):
        if free[j]:
            count = 0
            for i in range(assignment.shape[0]):
                count += assignment[i] == j
            room += max(0, rules.needed - count)
    for i in range(assignment.shape[0]):
        task = assignment[i]
        targets[i] = task if task >= 0 and free[task] else -1
        if targets[i] >= 0 or room > 0:
            continue
        nearest = FAR
        for j in range(evaders.shape[0]):
            if not free[j]:
                continue
            way = distance(pursuers[i], evaders[j], rules)
            if way < nearest or (way == nearest and comes_first(evaders[j], evaders[targets[i]])):
                nearest = way
                targets[i] = j


@leaf
def comes_first(a: Ints, b: Ints) -> bool:
    """Whether cell a lies above b, or left of it in the same row."""
    return a[0] < b[0] or (a[0] == b[0] and a[1] < b[1])


@leaf
def approach(pursuer: Ints, evader: Ints, rules: Rules) -> None:
    """One king's move towards the evader, diagonally first; whoever is beside it stays."""
    if distance(pursuer, evader, rules) <= 1:
        return
    rows = ahead(pursuer[0], evader[0], rules.height, rules.walls)
    columns = ahead(pursuer[1], evader[1], rules.width, rules.walls)
    pursuer[0] = (pursuer[0] + np.sign(rows)) % rules.height
    pursuer[1] = (pursuer[1] + np.sign(columns)) % rules.width


@leaf
def count_beside(pursuers: Ints, evader: Ints, rules: Rules) -> int:
    """Pursuers within a king's move of the evader."""
    count = 0
    for i in range(pursuers.shape[0]):
        count += distance(pursuers[i], evader, rules) <= 1
    return count


@kernel
def danger(row: int, column: int, pursuers: Ints, rules: Rules) -> int:
    """Sum of 4^(sight - distance) over the pursuers in sight of a cell: whole numbers, so no order of summing matters.

    The nearest pursuer counts for more than any three that are a cell farther away.
    """
    total = 0
    for i in range(pursuers.shape[0]):
        way = apart(row, column, pursuers[i], rules)
        if way <= rules.sight:
            total += 1 << (2 * (rules.sight - way))
    return total


@kernel
def flee(evader: Ints, move: Ints, pursuers: Ints, rules: Rules, luck: Seeds, j: int) -> None:
    """To the least dangerous of the evader's own cell and its neighbours on the grid; ties at random.

    With nobody in sight all are equal, and it wanders.
    """
    least = FAR
    ties = 0
    move[:] = 0
    for rows in range(-1, 2):
        for columns in range(-1, 2):
            row, column = evader[0] + rows, evader[1] + columns
            if rules.walls and not (0 <= row < rules.height and 0 <= column < rules.width):
                continue
            here = danger(row % rules.height, column % rules.width, pursuers, rules)
            if here < least:
                least = here
                ties = 0
            if here == least:
                ties += 1
                if ties == 1 or below(luck, j, ties) == 0:
                    move[0], move[1] = rows, columns
    evader[0] = (evader[0] + move[0]) % rules.height
    evader[1] = (evader[1] + move[1]) % rules.width


@lean_entry
def step_all(assignment: Ints, rules: Rules, env: World, reward: Floats, terminated: Bools, truncated: Bools) -> None:
    """One step of every slot: pursuers move, whom enough of them stand beside is caught, and the others may flee."""
    for slot in range(assignment.shape[0]):
        reward[slot] = 0.0
        terminated[slot] = False
        truncated[slot] = False
        if not env.running[slot]:
            continue
        pursuers, evaders, free = env.pursuers[slot], env.evaders[slot], env.free[slot]
        take_targets(assignment[slot], rules, pursuers, evaders, free, env.targets[slot])
        for i in range(pursuers.shape[0]):
            if env.targets[slot, i] >= 0:
                approach(pursuers[i], evaders[env.targets[slot, i]], rules)
        caught, left = 0, 0
        for j in range(evaders.shape[0]):
            if not free[j]:
                continue
            if count_beside(pursuers, evaders[j], rules) >= rules.needed:
                free[j] = False
                env.moves[slot, j] = 0
                caught += 1
            else:
                left += 1
                env.moves[slot, j] = 0
                if uniform(env.luck[slot], j) < rules.speed:
                    flee(evaders[j], env.moves[slot, j], pursuers, rules, env.luck[slot], j)
        env.steps[slot] += 1
        reward[slot] = caught / evaders.shape[0] - STEP_COST
        if left == 0:
            terminated[slot] = True
            env.running[slot] = False
        elif env.steps[slot] >= rules.max_steps:
            truncated[slot] = True
            env.running[slot] = False
