"""Mud: cells that hold up whoever enters them, and that can only be guessed from afar.

How a cell looks is drawn first, and whether it is muddy given that; so what nobody has seen yet can be drawn again.
Paths are the ambulances' own: diagonally first, then straight.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from muster.compile import entry, kernel, leaf, lean_entry
from muster.data import Bools, Floats, Floats32, Ints
from muster.envs.rescue.kernels import COLUMN, ROW, STEP_REWARD, pick_up, sign
from muster.rng import Seeds, uniform

HELD_UP = 2
"""Steps that an ambulance spends in a muddy cell before it can move on."""
TRUTHFUL = 0.95
"""Share of cells that look as they are."""
LOOKS_MUDDY, KNOWN = 1, 2
MUD_STREAM = np.uint64(0x3C6EF372FE94F82B)
"""An episode's ground is drawn from its seed xor this, and its places from the seed itself."""

Bytes = NDArray[np.uint8]


class Ground(NamedTuple):
    """The ground of B environments, and who is stuck in it."""

    muddy: Bools
    """[B, H, W]"""
    look: Bytes
    """[B, H, W] LOOKS_MUDDY if it does, plus KNOWN where an ambulance has been: it looks as it is there."""
    held: Ints
    """[B, N] steps for which an ambulance still cannot move."""


def make_ground(n_envs: int, n_agents: int, height: int, width: int) -> Ground:
    """Dry ground."""
    return Ground(
        np.zeros((n_envs, height, width), np.bool_),
        np.zeros((n_envs, height, width), np.uint8),
        np.zeros((n_envs, n_agents), np.int64),
    )


def part_of(ground: Ground, part: slice) -> Ground:
    """The same arrays, some of the environments."""
    return Ground(ground.muddy[part], ground.look[part], ground.held[part])


@leaf
def draw_mud(rng: Seeds, slot: int, looks_muddy: bool, share: float) -> bool:
    """Whether a cell is muddy, given how it looks."""
    looking = share * TRUTHFUL + (1.0 - share) * (1.0 - TRUTHFUL)
    chance = share * TRUTHFUL / looking if looks_muddy else share * (1.0 - TRUTHFUL) / max(1.0 - looking, 1e-300)
    return uniform(rng, slot) < chance


@leaf
def enter(ground: Ground, agents: Ints, slot: int, i: int) -> None:
    """Ambulance i has come to its cell: it learns what the ground is like, and may be held up."""
    row, column = agents[slot, i, ROW], agents[slot, i, COLUMN]
    muddy = ground.muddy[slot, row, column]
    ground.look[slot, row, column] = KNOWN + LOOKS_MUDDY if muddy else KNOWN
    ground.held[slot, i] = HELD_UP if muddy else 0


@entry
def lay_ground(slots: Ints, rng: Seeds, share: float, agents: Ints, ground: Ground) -> None:
    """New ground for the episodes that begin in `slots`; ambulances know the cells that they start on."""
    looking = share * TRUTHFUL + (1.0 - share) * (1.0 - TRUTHFUL)
    for k in range(slots.shape[0]):
        slot = slots[k]
        for row in range(ground.look.shape[1]):
            for column in range(ground.look.shape[2]):
                looks = uniform(rng, k) < looking
                ground.look[slot, row, column] = LOOKS_MUDDY if looks else 0
                ground.muddy[slot, row, column] = draw_mud(rng, k, looks, share)
        for i in range(agents.shape[1]):
            enter(ground, agents, slot, i)


@entry
def lay_anew(rng: Seeds, share: float, ground: Ground) -> None:
    """Other mud under the cells where no ambulance has been, as likely as the first: they look as before."""
    for slot in range(ground.look.shape[0]):
        for row in range(ground.look.shape[1]):
            for column in range(ground.look.shape[2]):
                look = ground.look[slot, row, column]
                if look < KNOWN:
                    ground.muddy[slot, row, column] = draw_mud(rng, slot, look == LOOKS_MUDDY, share)


@lean_entry
def step_in_mud(
    assignment: Ints, solved_assignable: bool, max_steps: int, agents: Ints, victims: Ints, waiting: Bools, steps: Ints,
    running: Bools, assigned: Ints, ground: Ground, reward: Floats, terminated: Bools, truncated: Bools,
) -> None:  # fmt: skip
    """As `kernels.step_all`, but whoever is held up does not move."""
    for slot in range(assignment.shape[0]):
        reward[slot] = 0.0
        terminated[slot] = False
        truncated[slot] = False
        if not running[slot]:
            continue
        for i in range(agents.shape[1]):
            task = assignment[slot, i]
            if task >= 0 and not (waiting[slot, task] or solved_assignable):
                task = -1
            assigned[slot, i] = task
            if ground.held[slot, i] > 0:
                ground.held[slot, i] -= 1
            elif task >= 0:
                down = sign(victims[slot, task, ROW] - agents[slot, i, ROW])
                right = sign(victims[slot, task, COLUMN] - agents[slot, i, COLUMN])
                if down != 0 or right != 0:
                    agents[slot, i, ROW] += down
                    agents[slot, i, COLUMN] += right
                    enter(ground, agents, slot, i)
        steps[slot] += 1
        reward[slot] = STEP_REWARD
        if pick_up(agents[slot], victims[slot], waiting[slot]) == 0:
            terminated[slot] = True
            running[slot] = False
        elif steps[slot] >= max_steps:
            truncated[slot] = True
            running[slot] = False


@kernel
def muddy_between(row: int, column: int, to_row: int, to_column: int, slot: int, muddy: Bools) -> int:
    """Muddy cells on the way, neither the first nor the last."""
    count = 0
    while True:
        row += sign(to_row - row)
        column += sign(to_column - column)
        if row == to_row and column == to_column:
            return count
        if muddy[slot, row, column]:
            count += 1


@entry
def mud_on_the_way(sources: Ints, targets: Ints, first: Floats, muddy: Bools) -> Floats:
    """[B, S, T] muddy cells to be left on the way from each source to each target, `first` [B, S] of them at once."""
    count = np.empty((sources.shape[0], sources.shape[1], targets.shape[1]))
    for b in range(sources.shape[0]):
        for i in range(sources.shape[1]):
            row, column = sources[b, i, ROW], sources[b, i, COLUMN]
            for j in range(targets.shape[1]):
                to_row, to_column = targets[b, j, ROW], targets[b, j, COLUMN]
                count[b, i, j] = first[b, i]
                if row == to_row and column == to_column:
                    count[b, i, j] = 0.0
                else:
                    count[b, i, j] += muddy_between(row, column, to_row, to_column, b, muddy)
    return count


def mud_to_cross(agents: Ints, victims: Ints, held: Ints, muddy: Bools) -> tuple[Floats, Floats]:
    """Muddy cells to be left from ambulance to victim [B, N, M] and from victim to victim [B, M, M].

    A cell that an ambulance is already stuck in counts for the part that is left.
    """
    slots = np.arange(len(victims))[:, None]
    first = muddy[slots, victims[..., ROW], victims[..., COLUMN]].astype(np.float64)
    return (
        mud_on_the_way(agents, victims, held / HELD_UP, muddy),
        mud_on_the_way(victims, victims, first, muddy),
    )


def as_it_looks(ground: Ground) -> Ground:
    """The ground as far as anybody can tell: a copy with mud where it looks muddy."""
    return Ground((ground.look & LOOKS_MUDDY).astype(np.bool_), ground.look.copy(), ground.held.copy())


def see_mud(agents: Ints, victims: Ints, ground: Ground) -> tuple[Floats32, Floats32]:
    """[B, N, M, 1] and [B, M, M, 1] the cells on the way that look muddy."""
    pairs, task_pairs = mud_to_cross(agents, victims, ground.held, ground.muddy)
    return pairs.astype(np.float32)[..., None], task_pairs.astype(np.float32)[..., None]
