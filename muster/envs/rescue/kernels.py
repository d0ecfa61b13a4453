"""The inner loops of search and rescue: plain arrays in, modified in place.

Cells are (row, column); B slots, N ambulances, M victims. Every function named `*_slot` touches its slot only, so
the loop over slots may run on any number of threads.
"""

from __future__ import annotations

import numpy as np

from muster.compile import entry, kernel, leaf, lean_entry
from muster.data import Bools, Floats, Floats32, Ints
from muster.rng import Seeds, below

UNITS_PER_CELL = 1 / 8
"""Coordinates are seen in units of 8 cells: a 16x16 grid spans about -1 to 1, and a distance means the same on any."""

DISTINCT, DISTINCT_WITHIN_TYPE, INDEPENDENT = 0, 1, 2


@kernel
def place(rng: Seeds, slot: int, cells: Ints, deck: Ints, taken: int, distinct: bool, width: int) -> None:
    """Draw a cell for each row of `cells`; if distinct, avoid the first `taken` cards of `deck` (a permutation)."""
    for k in range(cells.shape[0]):
        if distinct:
            swap = taken + k + below(rng, slot, deck.shape[0] - taken - k)
            deck[taken + k], deck[swap] = deck[swap], deck[taken + k]
            cell = deck[taken + k]
        else:
            cell = below(rng, slot, deck.shape[0])
        cells[k, 0] = cell // width
        cells[k, 1] = cell % width


@leaf
def pick_up(agents: Ints, victims: Ints, waiting: Bools) -> int:
    """Pick up every victim whose cell holds an ambulance; how many still wait."""
    left = 0
    for j in range(victims.shape[0]):
        if waiting[j]:
            row, column = victims[j, 0], victims[j, 1]
            for i in range(agents.shape[0]):
                if agents[i, 0] == row and agents[i, 1] == column:
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
        place(rng, slot, agents[slot], deck, 0, placement != INDEPENDENT, width)
        place(rng, slot, victims[slot], deck, taken, placement != INDEPENDENT, width)
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
    distance = max(abs(target[0] - cell[0]), abs(target[1] - cell[1]))
    count = 0
    best_row, best_column = cell[0], cell[1]
    for row in range(max(cell[0] - 1, 0), min(cell[0] + 2, height)):
        for column in range(max(cell[1] - 1, 0), min(cell[1] + 2, width)):
            if max(abs(target[0] - row), abs(target[1] - column)) < distance:
                count += 1
                if below(rng, slot, count) == 0:
                    best_row, best_column = row, column
    cell[0], cell[1] = best_row, best_column


# Passing a dozen arrays costs more than the step itself, hence into the loop's body.
@leaf
def step_slot(
    slot: int,
    assignment: Ints,
    random_moves: bool,
    solved_assignable: bool,
    max_steps: int,
    height: int,
    width: int,
    rng: Seeds,
    agents: Ints,
    victims: Ints,
    waiting: Bools,
    steps: Ints,
    running: Bools,
    assigned: Ints,
    reward: Floats,
    terminated: Bools,
    truncated: Bools,
) -> None:
    """Move each ambulance one cell towards its victim, then pick up whoever is reached."""
    reward[slot] = 0.0
    terminated[slot] = False
    truncated[slot] = False
    if not running[slot]:
        return
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
            agents[slot, i, 0] += sign(victims[slot, task, 0] - agents[slot, i, 0])
            agents[slot, i, 1] += sign(victims[slot, task, 1] - agents[slot, i, 1])
    steps[slot] += 1
    reward[slot] = -0.01
    if pick_up(agents[slot], victims[slot], waiting[slot]) == 0:
        terminated[slot] = True
        running[slot] = False
    elif steps[slot] >= max_steps:
        truncated[slot] = True
        running[slot] = False


@lean_entry
def step_all(
    assignment: Ints,
    random_moves: bool,
    solved_assignable: bool,
    max_steps: int,
    height: int,
    width: int,
    rng: Seeds,
    agents: Ints,
    victims: Ints,
    waiting: Bools,
    steps: Ints,
    running: Bools,
    assigned: Ints,
    reward: Floats,
    terminated: Bools,
    truncated: Bools,
) -> None:
    """`step_slot` for every slot."""
    for slot in range(assignment.shape[0]):
        step_slot(
            slot,
            assignment,
            random_moves,
            solved_assignable,
            max_steps,
            height,
            width,
            rng,
            agents,
            victims,
            waiting,
            steps,
            running,
            assigned,
            reward,
            terminated,
            truncated,
        )


@entry
def see_objects(agents: Ints, victims: Ints, waiting: Bools, height: int, width: int) -> tuple[Floats32, Floats32]:
    """Agent features [B, N, 2] = x, y; task features [B, M, 3] = x, y, solved; centred, in units of 8 cells."""
    n_envs, n_agents, n_tasks = agents.shape[0], agents.shape[1], victims.shape[1]
    middle_row, middle_column = (height - 1) / 2.0, (width - 1) / 2.0
    agent_features = np.empty((n_envs, n_agents, 2), np.float32)
    task_features = np.empty((n_envs, n_tasks, 3), np.float32)
    for b in range(n_envs):
        for i in range(n_agents):
            agent_features[b, i, 0] = (agents[b, i, 1] - middle_column) * UNITS_PER_CELL
            agent_features[b, i, 1] = (agents[b, i, 0] - middle_row) * UNITS_PER_CELL
        for j in range(n_tasks):
            task_features[b, j, 0] = (victims[b, j, 1] - middle_column) * UNITS_PER_CELL
            task_features[b, j, 1] = (victims[b, j, 0] - middle_row) * UNITS_PER_CELL
            task_features[b, j, 2] = 0.0 if waiting[b, j] else 1.0
    return agent_features, task_features


@entry
def see_pairs(sources: Ints, targets: Ints) -> Floats32:
    """[B, S, T, 5] = dx, dy, |dx|, |dy| and Chebyshev distance from each source to each target, in units of 8 cells."""
    features = np.empty((sources.shape[0], sources.shape[1], targets.shape[1], 5), np.float32)
    for b in range(sources.shape[0]):
        for i in range(sources.shape[1]):
            for j in range(targets.shape[1]):
                dx = (targets[b, j, 1] - sources[b, i, 1]) * UNITS_PER_CELL
                dy = (targets[b, j, 0] - sources[b, i, 0]) * UNITS_PER_CELL
                features[b, i, j, 0] = dx
                features[b, i, j, 1] = dy
                features[b, i, j, 2] = abs(dx)
                features[b, i, j, 3] = abs(dy)
                features[b, i, j, 4] = max(abs(dx), abs(dy))
    return features


@entry
def draw_planes(agents: Ints, victims: Ints, waiting: Bools, height: int, width: int) -> Floats32:
    """[B, 4, H, W]: victim here, ambulance here, and the x and y of whatever is here; picked-up victims are gone."""
    planes = np.zeros((agents.shape[0], 4, height, width), np.float32)
    middle_row, middle_column = (height - 1) / 2.0, (width - 1) / 2.0
    for b in range(agents.shape[0]):
        for j in range(victims.shape[1]):
            if waiting[b, j]:
                row, column = victims[b, j, 0], victims[b, j, 1]
                planes[b, 0, row, column] = 1.0
                planes[b, 2, row, column] = (column - middle_column) * UNITS_PER_CELL
                planes[b, 3, row, column] = (row - middle_row) * UNITS_PER_CELL
        for i in range(agents.shape[1]):
            row, column = agents[b, i, 0], agents[b, i, 1]
            planes[b, 1, row, column] = 1.0
            planes[b, 2, row, column] = (column - middle_column) * UNITS_PER_CELL
            planes[b, 3, row, column] = (row - middle_row) * UNITS_PER_CELL
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
                rows, columns = abs(victims[b, j, 0] - agents[b, i, 0]), abs(victims[b, j, 1] - agents[b, i, 1])
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
