"""The likelihood of the choices that were made, with the noise of the decision itself integrated out.

Scores are played as h + history + e: history is the noise of earlier decisions, e this decision's. Were e Gumbel noise
of scale tau, an agent alone would take task j with probability softmax(u / tau) over

    u_j = h_ij + history_ij + g_jj + sum over the other agents' tasks l of (g_jl + g_lj)

among the tasks with room beside the others', and idling, worth 0, where that is allowed. The product over agents, each
given what the others took, is the pseudo-likelihood of an assignment. Earlier noise chose the present tasks, so taking
all of it for this decision's draw, as the likelihood of played scores does, pushes agents off them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from muster.compile import entry, kernel
from muster.data import Bools, Floats, Floats32, Ints
from muster.inference.instance import fits


class Decisions(NamedTuple):
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


class Work(NamedTuple):
    """Scratch for one state."""

    load: Floats
    """[M]"""
    crowd: Floats
    """[M]"""
    join: Floats
    """[M] (g + g') crowd + diag g: what one more agent on a task adds to the task-task term."""
    utility: Floats
    """[M + 1] of the agent's options, idling last; -inf where there is none."""
    chance: Floats
    """[M + 1]"""


@entry
def choice_likelihood(decisions: Decisions, h: Floats32, g: Floats32, tau: float, likelihood: Floats) -> None:
    """Fill likelihood [S, N] with each agent's log-probability of its choice; 0 for one that had none to make.

    g is [S, M, M], or [0, 0, 0] for none.
    """
    states, n, m = h.shape
    work = Work(np.zeros(m), np.zeros(m), np.zeros(m), np.zeros(m + 1), np.zeros(m + 1))
    for s in range(states):
        gather(decisions, g, s, work)
        for i in range(n):
            likelihood[s, i] = 0.0
            if decisions.agent_alive[s, i] and weigh_options(decisions, h, g, s, i, tau, work):
                chosen = decisions.assignment[s, i]
                likelihood[s, i] = np.log(max(work.chance[chosen if chosen >= 0 else m], 1e-300))


@entry
def choice_slopes(
    decisions: Decisions,
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
    work = Work(np.zeros(m), np.zeros(m), np.zeros(m), np.zeros(m + 1), np.zeros(m + 1))
    total, count = 0.0, 0
    for s in range(states):
        gather(decisions, g, s, work)
        for i in range(n):
            if not decisions.agent_alive[s, i] or not weigh_options(decisions, h, g, s, i, tau, work):
                continue
            entropy = 0.0
            for j in range(m + 1):
                if work.chance[j] > 0.0:
                    entropy -= work.chance[j] * np.log(work.chance[j])
            total += entropy
            count += 1
            chosen = decisions.assignment[s, i]
            for j in range(m):
                p = work.chance[j]
                if work.utility[j] == -np.inf:
                    continue
                slope = gain[s, i] * ((1.0 if j == chosen else 0.0) - p)
                if p > 0.0:
                    slope -= entropy_gain * p * (np.log(p) + entropy)
                slope /= tau
                slope_h[s, i, j] += slope
                if g.shape[0] > 0:
                    spread_to_pairs(decisions, s, i, j, slope, work, slope_g)
    return total / max(count, 1)


@kernel
def gather(decisions: Decisions, g: Floats32, s: int, work: Work) -> None:
    """Loads, crowds and what joining each task is worth, all agents placed."""
    m = work.load.shape[0]
    for j in range(m):
        work.load[j], work.crowd[j] = 0.0, 0.0
    for i in range(decisions.assignment.shape[1]):
        j = decisions.assignment[s, i]
        if j >= 0 and decisions.agent_alive[s, i]:
            work.load[j] += decisions.contributions[s, i, j]
            work.crowd[j] += 1.0
    if g.shape[0] > 0:
        for j in range(m):
            work.join[j] = g[s, j, j]
            for k in range(m):
                work.join[j] += (g[s, j, k] + g[s, k, j]) * work.crowd[k]


@kernel
def weigh_options(decisions: Decisions, h: Floats32, g: Floats32, s: int, i: int, tau: float, work: Work) -> bool:
    """Utilities and chances of agent i's options beside the others' choices; False where it had at most one."""
    m = work.load.shape[0]
    own = decisions.assignment[s, i]
    options, best = 0, -np.inf
    for j in range(m):
        work.utility[j] = -np.inf
        load = work.load[j] - (decisions.contributions[s, i, j] if j == own else 0.0)
        free = decisions.open[s, i, j] and fits(load, decisions.contributions[s, i, j], decisions.capacities[s, j])
        if free or j == own:
            u = float(h[s, i, j]) + decisions.history[s, i, j]
            if g.shape[0] > 0:
                u += work.join[j]
                if own >= 0:
                    u -= g[s, j, own] + g[s, own, j]
            work.utility[j] = u
            options += 1
            best = max(best, u)
    work.utility[m] = -np.inf
    if decisions.idling or own < 0:
        work.utility[m] = 0.0
        options += 1
        best = max(best, 0.0)
    if options < 2 or (own < 0 and not decisions.idling):
        return False
    total = 0.0
    for j in range(m + 1):
        work.chance[j] = np.exp((work.utility[j] - best) / tau) if work.utility[j] > -np.inf else 0.0
        total += work.chance[j]
    for j in range(m + 1):
        work.chance[j] /= total
    return True


@kernel
def spread_to_pairs(decisions: Decisions, s: int, i: int, j: int, slope: float, work: Work, slope_g: Floats) -> None:
    """The utility of option j contains g_jj and (g_jl + g_lj) for each other agent's task l."""
    own = decisions.assignment[s, i]
    slope_g[s, j, j] += slope
    for k in range(work.crowd.shape[0]):
        others = work.crowd[k] - (1.0 if k == own else 0.0)
        if others > 0.0:
            slope_g[s, j, k] += slope * others
            slope_g[s, k, j] += slope * others
