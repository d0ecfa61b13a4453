"""The inner loops of search and rescue: plain arrays in, modified in place.

Cells are (row, column); B slots, N ambulances, M victims. A step touches nothing but its
slot, so shares of the slots may be stepped on any number of threads.
"""

from __future__ import annotations

import numpy as np

from muster.compile import entry, kernel, leaf, lean_entry
from muster.data import Bools, Floats, Floats32, Ints
from muster.rng import Seeds, below

UNITS_PER_CELL = 1 / 8
"""Coordinates are seen in units of 8 cells: a 16x16 grid spans about -1 to 1, and a distance means the same on any."""

DISTINCT, DISTINCT_WITHIN_TYPE, INDEPENDENT = range(3)
ROW, COLUMN = range(2)
AGENT_FEATURES, TASK_FEATURES, PAIR_FEATURES = 2, 3, 5
X, Y, SOLVED = range(TASK_FEATURES)
DX, DY, ABS_DX, ABS_DY, KING_MOVES = range(PAIR_FEATURES)
VICTIM_HERE, AMBULANCE_HERE, X_HERE, Y_HERE = range(4)
PLANES = 4
STEP_REWARD = -0.01


@kernel
def draw_cells(rng: Seeds, slot: int, cells: Ints, deck: Ints, taken: int, distinct: bool, width: int) -> None:
    """Draw a cell for each row of `cells`; if distinct, avoid the first `taken` cards of `deck` (a permutation)."""
    for k in range(cells.shape[0]):
        if distinct:
            swap = taken + k + below(rng, slot, deck.shape[0] - taken - k)
            deck[taken + k], deck[swap] = deck[swap], deck[taken + k]
            cell = deck[taken + k]
        else:
            cell = below(rng, slot, deck.shape[0])
        cells[k, ROW] = cell // width
        cells[k, COLUMN] = cell % width


@leaf
def pick_up(agents: Ints, victims: Ints, waiting: Bools) -> int:
    """Pick up every victim whose cell holds an ambulance; how many still wait."""
    left = 0
    for j in range(victims.shape[0]):
        if waiting[j]:
            row, column = victims[j, ROW], victims[j, COLUMN]
            for i in range(agents.shape[0]):
                if agents[i, ROW] == row and agents[i, COLUMN] == column:
                    waiting[j] = False
                    break
            if waiting[j]:
                left += 1
    return left


@entry
def start_slots(
    slots: Ints,
    seeds: Seeds,
    placement: int,
    height: int,
    width: int,
    rng: Seeds,
    agents: Ints,
    victims: Ints,
    waiting: Bools,
    steps: Ints,
    running: Bools,
    assigned: Ints,
) -> None:
    """Begin the episode of `seeds[k]` in `slots[k]`: the state arrays are overwritten there."""
    deck = np.empty(height * width, np.int64)
    for k in range(slots.shape[0]):
        slot = slots[k]
        rng[slot] = seeds[k]
        for cell in range(deck.shape[0]):
            deck[cell] = cell
        taken = agents.shape[1] if placement == DISTINCT else 0
        draw_cells(rng, slot, agents[slot], deck, 0, placement != INDEPENDENT, width)
        draw_cells(rng, slot, victims[slot], deck, taken, placement != INDEPENDENT, width)
        waiting[slot] = True
        # Only where start cells may coincide is anyone picked up before the first step.
        pick_up(agents[slot], victims[slot], waiting[slot])
        steps[slot] = 0
        running[slot] = True
        assigned[slot] = -1


@entry
def first_bad_task(assignment: Ints, n_tasks: int) -> int:
    """Flat index of the first entry outside -1..M-1, or -1."""
    flat = assignment.reshape(-1)
    for k in range(flat.shape[0]):
        if flat[k] < -1 or flat[k] >= n_tasks:
            return k
    return -1


@leaf
def sign(x: int) -> int:
    """-1, 0 or 1."""
    return int(x > 0) - int(x < 0)


@kernel
def move_randomly(rng: Seeds, slot: int, cell: Ints, target: Ints, height: int, width: int) -> None:
    """Take one of the king moves that bring `cell` nearer to `target` (Chebyshev), each as likely."""
    distance = max(abs(target[ROW] - cell[ROW]), abs(target[COLUMN] - cell[COLUMN]))
    count = 0
    best_row, best_column = cell[ROW], cell[COLUMN]
    for row in range(max(cell[ROW] - 1, 0), min(cell[ROW] + 2, height)):
        for column in range(max(cell[COLUMN] - 1, 0), min(cell[COLUMN] + 2, width)):
            if max(abs(target[ROW] - row), abs(target[COLUMN] - column)) < distance:
                count += 1
                if below(rng, slot, count) == 0:
                    best_row, best_column = row, column
    cell[ROW], cell[COLUMN] = best_row, best_column


@leaf
def move(
    slot: int, assignment: Ints, random_moves: bool, solved_assignable: bool, height: int, width: int, rng: Seeds,
    agents: Ints, victims: Ints, waiting: Bools, assigned: Ints,
) -> None:  # fmt: skip
    """Move each ambulance of a slot one cell towards its victim; `assigned` is what was carried out."""
    for i in range(agents.shape[1]):
        task = assignment[slot, i]
        if task >= 0 and not (waiting[slot, task] or solved_assignable):
            task = -1
        assigned[slot, i] = task
        if task < 0:
            continue
        if random_moves:
            move_randomly(rng, slot, agents[slot, i], victims[slot, task], height, width)
        else:
            agents[slot, i, ROW] += sign(victims[slot, task, ROW] - agents[slot, i, ROW])
            agents[slot, i, COLUMN] += sign(victims[slot, task, COLUMN] - agents[slot, i, COLUMN])


@lean_entry
def step_all(
    assignment: Ints, random_moves: bool, solved_assignable: bool, max_steps: int, height: int, width: int, rng: Seeds,
    agents: Ints, victims: Ints, waiting: Bools, steps: Ints, running: Bools, assigned: Ints,
    reward: Floats, terminated: Bools, truncated: Bools,
) -> None:  # fmt: skip
    """In every slot that goes on: move, then pick up whoever is reached."""
    for slot in range(assignment.shape[0]):
        reward[slot] = 0.0
        terminated[slot] = False
        truncated[slot] = False
        if not running[slot]:
            continue
        move(
            slot, assignment, random_moves, solved_assignable, height, width, rng, agents, victims, waiting, assigned
        )  # fmt: skip
        steps[slot] += 1
        reward[slot] = STEP_REWARD
        if pick_up(agents[slot], victims[slot], waiting[slot]) == 0:
            terminated[slot] = True
            running[slot] = False
        elif steps[slot] >= max_steps:
            truncated[slot] = True
            running[slot] = False


@entry
def see_objects(agents: Ints, victims: Ints, waiting: Bools, height: int, width: int) -> tuple[Floats32, Floats32]:
    """Agent features [B, N, 2] = x, y; task features [B, M, 3] = x, y, solved; centred, in units of 8 cells."""
    n_envs, n_agents, n_tasks = agents.shape[0], agents.shape[1], victims.shape[1]
    middle_row, middle_column = (height - 1) / 2.0, (width - 1) / 2.0
    agent_features = np.empty((n_envs, n_agents, AGENT_FEATURES), np.float32)
    task_features = np.empty((n_envs, n_tasks, TASK_FEATURES), np.float32)
    for b in range(n_envs):
        for i in range(n_agents):
            agent_features[b, i, X] = (agents[b, i, COLUMN] - middle_column) * UNITS_PER_CELL
            agent_features[b, i, Y] = (agents[b, i, ROW] - middle_row) * UNITS_PER_CELL
        for j in range(n_tasks):
            task_features[b, j, X] = (victims[b, j, COLUMN] - middle_column) * UNITS_PER_CELL
            task_features[b, j, Y] = (victims[b, j, ROW] - middle_row) * UNITS_PER_CELL
            task_features[b, j, SOLVED] = 0.0 if waiting[b, j] else 1.0
    return agent_features, task_features


@entry
def see_pairs(sources: Ints, targets: Ints) -> Floats32:
    """[B, S, T, 5] = dx, dy, |dx|, |dy| and Chebyshev distance from each source to each target, in units of 8 cells."""
    features = np.empty((sources.shape[0], sources.shape[1], targets.shape[1], PAIR_FEATURES), np.float32)
    for b in range(sources.shape[0]):
        for i in range(sources.shape[1]):
            for j in range(targets.shape[1]):
                dx = (targets[b, j, COLUMN] - sources[b, i, COLUMN]) * UNITS_PER_CELL
                dy = (targets[b, j, ROW] - sources[b, i, ROW]) * UNITS_PER_CELL
                features[b, i, j, DX] = dx
                features[b, i, j, DY] = dy
                features[b, i, j, ABS_DX] = abs(dx)
                features[b, i, j, ABS_DY] = abs(dy)
                features[b, i, j, KING_MOVES] = max(abs(dx), abs(dy))
    return features


@entry
def draw_planes(agents: Ints, victims: Ints, waiting: Bools, height: int, width: int) -> Floats32:
    """[B, 4, H, W]: victim here, ambulance here, and the x and y of whatever is here; picked-up victims are gone."""
    planes = np.zeros((agents.shape[0], PLANES, height, width), np.float32)
    middle_row, middle_column = (height - 1) / 2.0, (width - 1) / 2.0
    for b in range(agents.shape[0]):
        for j in range(victims.shape[1]):
            if waiting[b, j]:
                row, column = victims[b, j, ROW], victims[b, j, COLUMN]
                planes[b, VICTIM_HERE, row, column] = 1.0
                planes[b, X_HERE, row, column] = (column - middle_column) * UNITS_PER_CELL
                planes[b, Y_HERE, row, column] = (row - middle_row) * UNITS_PER_CELL
        for i in range(agents.shape[1]):
            row, column = agents[b, i, ROW], agents[b, i, COLUMN]
            planes[b, AMBULANCE_HERE, row, column] = 1.0
            planes[b, X_HERE, row, column] = (column - middle_column) * UNITS_PER_CELL
            planes[b, Y_HERE, row, column] = (row - middle_row) * UNITS_PER_CELL
    return planes


@entry
def send_to_closest(agents: Ints, victims: Ints, open_tasks: Bools, manhattan: bool, rng: Seeds) -> Ints:
    """[B, N] the nearest open victim of each ambulance; ties at random, from the slot's own generator."""
    assignment = np.full((agents.shape[0], agents.shape[1]), -1, np.int64)
    for b in range(agents.shape[0]):
        for i in range(agents.shape[1]):
            nearest = np.iinfo(np.int64).max
            ties = 0
            for j in range(victims.shape[1]):
                if not open_tasks[b, j]:
                    continue
                rows = abs(victims[b, j, ROW] - agents[b, i, ROW])
                columns = abs(victims[b, j, COLUMN] - agents[b, i, COLUMN])
                distance = rows + columns if manhattan else max(rows, columns)
                if distance < nearest:
                    nearest = distance
                    ties = 0
                if distance == nearest:
                    ties += 1
                    if ties == 1 or below(rng, b, ties) == 0:
                        assignment[b, i] = j
    return assignment


@entry
def follow_routes(routes: Ints, waiting: Bools) -> Ints:
    """[B, N] the first victim on each route [B, N, M] who still waits; -1 ends a route."""
    assignment = np.full((routes.shape[0], routes.shape[1]), -1, np.int64)
    for b in range(routes.shape[0]):
        for i in range(routes.shape[1]):
            for k in range(routes.shape[2]):
                task = routes[b, i, k]
                if task < 0:
                    break
                if waiting[b, task]:
                    assignment[b, i] = task
                    break
    return assignment
