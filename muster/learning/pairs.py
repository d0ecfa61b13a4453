"""What the actor-critic does otherwise with g than with h when it learns from choices.

Its noise is on h alone, and an agent's choice weighs one h against what g adds on joining all the others. So with many
agents a random g decides everything before anything was tried, and a step of g's network moves choices some N/2 times
as far as one of h's, and those of all agents at once. Therefore g begins at 0, and its network takes smaller steps
(w15v17 with QUAD, seed 1: 0.92 of the battles of seed 777 after two CPU minutes with a share of (2/N)², 0.63 with
10/N², and with 2/N next to nothing was won after 4.5).
"""

from __future__ import annotations

from typing import Any

from torch import nn

from muster.scoring.direct import Parameters

LAST_LAYER = ("g.weight3", "g.bias3")
NETWORK = "pairs.g_"
"""How the names of g's parameters begin in the torch model."""
FEW = 2
"""Agents of whom one may take whole steps."""
SOME = 5
"""Agents from whom on steps shrink with the cube of their number: a step of g's moves all of them at once."""


def begin_without_pairs(parameters: Parameters) -> None:
    """Make g 0, in place."""
    for name in LAST_LAYER:
        if name in parameters:
            parameters[name][...] = 0.0


def rate_groups(model: nn.Module, n_agents: int) -> list[dict[str, Any]]:
    """Groups of parameters for an optimiser; `share` is the part of the learning rate that each is to have."""
    named = list(model.named_parameters())
    of_pairs = [parameter for name, parameter in named if name.startswith(NETWORK)]
    if not of_pairs or n_agents <= FEW:
        return [{"params": [parameter for _, parameter in named], "share": 1.0}]
    others = [parameter for name, parameter in named if not name.startswith(NETWORK)]
    share = FEW / n_agents * min(1.0, SOME / n_agents) ** 2
    return [{"params": of_pairs, "share": share}, {"params": others, "share": 1.0}]
