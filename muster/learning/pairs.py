"""What the actor-critic does otherwise with g than with h when it learns from choices.

Its noise is on h alone, and an agent's choice weighs one h against what g adds on joining all the others. So with many
agents a random g decides everything before anything was tried, and a step of g's network moves choices some N/2 times
as far as one of h's. Therefore g begins at 0, and its network takes steps that are so much smaller. And where agents
are many, g waits until h is learned: a step of g's moves all of them at once, and of the runs on w15v17 whose g began
to learn with h some learned next to nothing (docs/results/battle.md).
"""

from __future__ import annotations

from typing import Any

from torch import nn

from muster.models.direct import Parameters

LAST_LAYER = ("g.weight3", "g.bias3")
NETWORK = "pairs.g_"
"""How the names of g's parameters begin in the torch model."""
FEW = 2
"""Agents of whom one may take whole steps."""
SOME = 5
"""Agents up to whom g is learned from the start, and from moves alone."""
LATER = 0.5
"""Share of a run after which it is with more."""


def begin_without_pairs(parameters: Parameters) -> None:
    """Make g 0, in place."""
    for name in LAST_LAYER:
        if name in parameters:
            parameters[name][...] = 0.0


def without_pairs(parameters: Parameters) -> bool:
    """Whether there is a g, and it is 0 whatever is seen: no last layer, and no prior that it would correct."""
    last = [parameters[name] for name in LAST_LAYER if name in parameters]
    return bool(last) and "g.scale" not in parameters and not any(array.any() for array in last)


def rate_groups(model: nn.Module, n_agents: int) -> list[dict[str, Any]]:
    """Groups of parameters for an optimiser; `share` is the part of the learning rate that each is to have."""
    named = list(model.named_parameters())
    of_pairs = [parameter for name, parameter in named if name.startswith(NETWORK)]
    if not of_pairs or n_agents <= FEW:
        return [{"params": [parameter for _, parameter in named], "share": 1.0}]
    others = [parameter for name, parameter in named if not name.startswith(NETWORK)]
    return [{"params": of_pairs, "share": FEW / n_agents}, {"params": others, "share": 1.0}]


def when_to_pair(n_agents: int) -> float:
    """Share of a run after which g is learned."""
    return LATER if n_agents > SOME else 0.0


def exchanges_count(task_scores: bool, n_agents: int) -> bool:
    """Whether exchanges of places are among the choices that are learned from, wherever there are any.

    They move h and not g, which is left behind where it is learned from the start: on rescue:5x10 with QUAD (1.5 CPU
    minutes, seeds 0 and 1, validation episodes) 9.53 and 9.52 steps with them, 9.50 and 9.41 without.
    """
    return not task_scores or n_agents > SOME
