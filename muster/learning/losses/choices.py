"""The likelihood of the choices that were made, with the noise of the decision itself integrated out.

Scores are played as h + history + e: history is the noise of earlier decisions, e this decision's. Were e Gumbel noise
of scale tau, an agent alone would take task j with probability softmax(u / tau) over

    u_j = h_ij + history_ij + g_jj + sum over the other agents' tasks l of (g_jl + g_lj)

among the tasks with room beside the others', and idling, worth 0, where that is allowed. Agents also compete for room,
and a task that is full is none of those options: so an agent may have exchanged places with any other, on a task or
left out (but see ppo.exchanges_count). That leaves as many agents on every task as there were, so g has no say: with
o the place of an agent and k the other,

    u = u_own + h_i,o(k) + h_k,o(i) - h_i,o(i) - h_k,o(k)        (h with its history; 0 for no task)

whose noise has twice the variance of a move's: its temperature is sqrt(2)·tau. Without exchanges nothing would say who
is to have a place that two want, and battles, in which few targets are filled, are learned worse
(docs/results/battle.md). The product over agents, each given what the others took, is the pseudo-likelihood of an
assignment. Earlier noise chose the present tasks, so taking all of it for this decision's draw, as the likelihood of
played scores does, pushes agents off them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from muster.compile import entry, kernel, leaf, maker
from muster.data import Bools, Floats, Floats32, Ints

EXCHANGE = math.sqrt(2.0)
"""Temperature of an exchange by that of a move."""


@leaf
def fits(load: float, use: float, capacity: float) -> bool:
    """Whether a contribution `use` can join a load within the capacity, as in the core."""
    return use == 0.0 or load + use <= capacity * (1.0 + 1e-11)


class Choices(NamedTuple):
    """S assignments and what they were chosen under."""

    assignment: Ints
    """[S, N] -1 for none."""
    history: Floats32
    """[S, N, M] noise of earlier decisions on h."""
    contributions: Floats
    """[S, N, M]"""
    capacities: Floats
    """[S, M]"""
    agent_alive: Bools
    """[S, N]"""
    open: Bools
    """[S, N, M] living tasks that the agent may take."""
    idling: bool
    """Whether an agent could have chosen no task although some had room."""
    exchanging: bool
    """Whether agents compete for room; without capacities each chooses by itself."""


class Work(NamedTuple):
    """Scratch for one state."""

    load: Floats
    """[M]"""
    crowd: Floats
    """[M]"""
    join: Floats
    """[M] (g + g') crowd + diag g: what one more agent on a task adds to the task-task term."""
    utility: Floats
    """[M + 1 + N] by tau, of the agent's options: tasks, idling, places of others; -inf where there is none."""
    chance: Floats
    """[M + 1 + N]"""


@entry
def choice_likelihood(choices: Choices, h: Floats32, g: Floats32, tau: float, likelihood: Floats) -> None:
    """Fill likelihood [S, N] with each agent's log-probability of its choice; 0 for one that had none to make.

    g is [S, M, M], or [0, 0, 0] for none.
    """
    states, n, m = h.shape
    work = make_work(n, m)
    for s in range(states):
        gather(choices, g, s, work)
        for i in range(n):
            likelihood[s, i] = 0.0
            if choices.agent_alive[s, i] and weigh_options(choices, h, g, s, i, tau, work):
                chosen = choices.assignment[s, i]
                likelihood[s, i] = np.log(max(work.chance[chosen if chosen >= 0 else m], 1e-300))


@entry
def share_with_moves(choices: Choices) -> float:
    """Share of the living agents that had a choice of their own, given the others' tasks."""
    states, n = choices.assignment.shape
    m = choices.capacities.shape[1]
    work = make_work(n, m)
    able = living = 0
    for s in range(states):
        gather(choices, np.zeros((0, 0, 0), np.float32), s, work)
        for i in range(n):
            if not choices.agent_alive[s, i]:
                continue
            own = choices.assignment[s, i]
            options = 1 if choices.idling or own < 0 else 0
            for j in range(m):
                load = work.load[j] - (choices.contributions[s, i, j] if j == own else 0.0)
                if j == own or has_room(choices, s, i, j, load):
                    options += 1
            living += 1
            able += options > 1
    return able / max(living, 1)


@entry
def choice_slopes(
    choices: Choices,
    h: Floats32,
    g: Floats32,
    tau: float,
    gain: Floats,
    entropy_gain: float,
    slope_h: Floats,
    slope_g: Floats,
) -> float:
    """Add to slope_h and slope_g the slopes of sum gain·log p + entropy_gain·entropy; returns the mean entropy.

    slope_h is [S, N, M] and slope_g [S, M, M] (or [0, 0, 0]); gain is [S, N].
    """
    states, n, m = h.shape
    work = make_work(n, m)
    total, count = 0.0, 0
    for s in range(states):
        gather(choices, g, s, work)
        for i in range(n):
            if not choices.agent_alive[s, i] or not weigh_options(choices, h, g, s, i, tau, work):
                continue
            entropy = 0.0
            for j in range(len(work.chance)):
                if work.chance[j] > 0.0:
                    entropy -= work.chance[j] * np.log(work.chance[j])
            total += entropy
            count += 1
            own = choices.assignment[s, i]
            stay = 0.0
            for j in range(len(work.chance)):
                p = work.chance[j]
                if work.utility[j] == -np.inf or j == m:
                    continue
                slope = gain[s, i] * ((1.0 if j == own else 0.0) - p)
                if p > 0.0:
                    slope -= entropy_gain * p * (np.log(p) + entropy)
                slope /= tau
                if j > m:
                    stay += slope
                    spread_to_places(choices, s, i, j - m - 1, slope / EXCHANGE, slope_h)
                else:
                    slope_h[s, i, j] += slope
                    if g.shape[0] > 0:
                        spread_to_pairs(choices, s, i, j, slope, work, slope_g)
            if own >= 0 and stay != 0.0:
                # Exchanges are valued from the agent's own option up.
                slope_h[s, i, own] += stay
                if g.shape[0] > 0:
                    spread_to_pairs(choices, s, i, own, stay, work, slope_g)
    return total / max(count, 1)


@maker
def make_work(n: int, m: int) -> Work:
    """Room for one state."""
    return Work(np.zeros(m), np.zeros(m), np.zeros(m), np.zeros(m + 1 + n), np.zeros(m + 1 + n))


@kernel
def gather(choices: Choices, g: Floats32, s: int, work: Work) -> None:
    """Loads, crowds and what joining each task is worth, all agents placed."""
    m = work.load.shape[0]
    for j in range(m):
        work.load[j], work.crowd[j] = 0.0, 0.0
    for i in range(choices.assignment.shape[1]):
        j = choices.assignment[s, i]
        if j >= 0 and choices.agent_alive[s, i]:
            work.load[j] += choices.contributions[s, i, j]
            work.crowd[j] += 1.0
    if g.shape[0] > 0:
        for j in range(m):
            work.join[j] = g[s, j, j]
            for k in range(m):
                work.join[j] += (g[s, j, k] + g[s, k, j]) * work.crowd[k]


@kernel
def weigh_options(choices: Choices, h: Floats32, g: Floats32, s: int, i: int, tau: float, work: Work) -> bool:
    """Utilities and chances of agent i's options beside the others' choices; False where it had but one."""
    m = work.load.shape[0]
    own = choices.assignment[s, i]
    options, best = 0, -np.inf
    for j in range(m):
        work.utility[j] = -np.inf
        load = work.load[j] - (choices.contributions[s, i, j] if j == own else 0.0)
        if j == own or has_room(choices, s, i, j, load):
            u = float(h[s, i, j]) + choices.history[s, i, j]
            if g.shape[0] > 0:
                u += work.join[j]
                if own >= 0:
                    u -= g[s, j, own] + g[s, own, j]
            work.utility[j] = u / tau
            options += 1
            best = max(best, u / tau)
    work.utility[m] = -np.inf
    if choices.idling or own < 0:
        work.utility[m] = 0.0
        options += 1
        best = max(best, 0.0)
    for k in range(choices.assignment.shape[1]):
        u = -np.inf
        if choices.exchanging and k != i and choices.agent_alive[s, k] and may_exchange(choices, s, i, k, work):
            here = work.utility[own if own >= 0 else m]
            u = here + worth_of_exchange(choices, h, s, i, k) / (EXCHANGE * tau)
            options += 1
            best = max(best, u)
        work.utility[m + 1 + k] = u
    if options < 2:
        return False
    total = 0.0
    for j in range(len(work.chance)):
        work.chance[j] = np.exp(work.utility[j] - best) if work.utility[j] > -np.inf else 0.0
        total += work.chance[j]
    for j in range(len(work.chance)):
        work.chance[j] /= total
    return True


@kernel
def has_room(choices: Choices, s: int, i: int, j: int, load: float) -> bool:
    """Whether agent i may join the load of task j."""
    return choices.open[s, i, j] and fits(load, choices.contributions[s, i, j], choices.capacities[s, j])


@kernel
def may_exchange(choices: Choices, s: int, i: int, k: int, work: Work) -> bool:
    """Whether agents i and k could each take the other's place."""
    mine, theirs = choices.assignment[s, i], choices.assignment[s, k]
    if mine == theirs:
        return False
    if theirs >= 0:
        left = work.load[theirs] - choices.contributions[s, k, theirs]
        if not has_room(choices, s, i, theirs, left):
            return False
    if mine >= 0:
        left = work.load[mine] - choices.contributions[s, i, mine]
        return has_room(choices, s, k, mine, left)
    return True


@kernel
def worth_of_exchange(choices: Choices, h: Floats32, s: int, i: int, k: int) -> float:
    """What h gains when agents i and k exchange places."""
    mine, theirs = choices.assignment[s, i], choices.assignment[s, k]
    gain = 0.0
    if mine >= 0:
        gain += float(h[s, k, mine]) + choices.history[s, k, mine]
        gain -= float(h[s, i, mine]) + choices.history[s, i, mine]
    if theirs >= 0:
        gain += float(h[s, i, theirs]) + choices.history[s, i, theirs]
        gain -= float(h[s, k, theirs]) + choices.history[s, k, theirs]
    return gain


@kernel
def spread_to_places(choices: Choices, s: int, i: int, k: int, slope: float, slope_h: Floats) -> None:
    """Add the slope of `worth_of_exchange`."""
    mine, theirs = choices.assignment[s, i], choices.assignment[s, k]
    if mine >= 0:
        slope_h[s, k, mine] += slope
        slope_h[s, i, mine] -= slope
    if theirs >= 0:
        slope_h[s, i, theirs] += slope
        slope_h[s, k, theirs] -= slope


@kernel
def spread_to_pairs(choices: Choices, s: int, i: int, j: int, slope: float, work: Work, slope_g: Floats) -> None:
    """The utility of option j contains g_jj and (g_jl + g_lj) for each other agent's task l."""
    own = choices.assignment[s, i]
    slope_g[s, j, j] += slope
    for k in range(work.crowd.shape[0]):
        others = work.crowd[k] - (1.0 if k == own else 0.0)
        if others > 0.0:
            slope_g[s, j, k] += slope * others
            slope_g[s, k, j] += slope * others
