"""What the context model is made of, without torch: the arrays that turn agents and tasks into tokens that see others.

Every agent and every task is a token of C values, made of its own features. In each round it listens to the agents and
to the tasks: with the words of listener x, speaker y and their relation r,

    u_xy = relu(S y + T x + R r + b)                 what is said
    w_xy = exp(L u_xy - d_xy / (reach·s)) / (1 + sum over the speakers)       how much it counts, for each head
    x   <- x + W2 relu(W1 [x, sum of w u over agents, sum of w u over tasks] + b1) + b2

where d is their distance and s how far agents have to go for their nearest task (muster.models.reach), so that a token
has about as many neighbours that matter in a large env as in a small one as dense. The 1 stands for silence: far from
everybody a token hears next to nothing, and how much it hears tells how many are near. Where an env names neither
distances nor positions, this is attention by what is said alone.

The tokens of the last round stand beside the features that the pair networks read (muster.models.direct).
"""

from __future__ import annotations

import numpy as np

from muster.data import Floats32
from muster.models.spec import ModelSpec

AGENT, TASK = "agent", "task"
LISTENING = ((AGENT, AGENT), (AGENT, TASK), (TASK, AGENT), (TASK, TASK))
"""Listener and speaker."""
APART = 4
"""Of two positions: their differences in both directions, with and without sign."""
NEARNESS = 2
"""Of a distance: in units of s, and exp of minus that."""
FIRST_REACH, LAST_REACH = 0.5, 2.0
"""Of the heads, in s, when nothing is learned yet."""


def measured(spec: ModelSpec, listener: str, speaker: str) -> bool:
    """Whether there is a distance between the two."""
    return bool(spec.places) or (bool(spec.distances) and declared(spec, listener, speaker) > 0)


def declared(spec: ModelSpec, listener: str, speaker: str) -> int:
    """Width of the features that the environment itself has of two objects."""
    if listener == speaker:
        return spec.task_pair_width if listener == TASK else 0
    return spec.pair_width


def relation_width(spec: ModelSpec, listener: str, speaker: str) -> int:
    """What a listener knows of itself and a speaker together."""
    width = declared(spec, listener, speaker)
    # An environment that says which of its features are distances says with them where others are.
    width += APART if spec.places and not (width and spec.distances) else 0
    width += NEARNESS if measured(spec, listener, speaker) else 0
    if listener != speaker:
        width += spec.reads_prior
    elif listener == TASK:
        width += spec.task_prior
    return width


def context_shapes(spec: ModelSpec) -> dict[str, tuple[int, ...]]:
    """Name and shape of every array that makes the tokens, in their fixed order."""
    c = spec.context
    shapes: dict[str, tuple[int, ...]] = {}
    for who, width in ((AGENT, spec.agent_width), (TASK, spec.task_width)):
        shapes |= {f"token.{who}_weight": (width + spec.global_width, c), f"token.{who}_bias": (c,)}
    for number in range(spec.rounds):
        for listener, speaker in LISTENING:
            edge = f"round{number}.{listener}_{speaker}"
            shapes |= {
                f"{edge}_listener": (c, c),
                f"{edge}_speaker": (c, c),
                f"{edge}_relation": (relation_width(spec, listener, speaker), c),
                f"{edge}_bias": (c,),
                f"{edge}_logit": (c, spec.heads),
            }
            if measured(spec, listener, speaker):
                shapes[f"{edge}_reach"] = (spec.heads,)
        for who in (AGENT, TASK):
            mix = f"round{number}.{who}_mix"
            shapes |= {f"{mix}1": (3 * c, c), f"{mix}1_bias": (c,), f"{mix}2": (c, c), f"{mix}2_bias": (c,)}
    return shapes


def init_context(spec: ModelSpec, rng: np.random.Generator) -> dict[str, Floats32]:
    """Uniform within 1/sqrt(inputs) of each layer; heads that reach from near to far."""
    found: dict[str, Floats32] = {}
    inputs = 1
    for name, shape in context_shapes(spec).items():
        if name.endswith("_reach"):
            found[name] = np.log(np.geomspace(FIRST_REACH, LAST_REACH, spec.heads)).astype(np.float32)
            continue
        if name.endswith("_listener"):
            relation = name.replace("_listener", "_relation")
            inputs = 2 * spec.context + context_shapes(spec)[relation][0]
        elif name.endswith("_logit") or "_mix" in name or name.startswith("token"):
            inputs = shape[0] if len(shape) == 2 else inputs
        bound = 1.0 / np.sqrt(max(inputs, 1))
        found[name] = rng.uniform(-bound, bound, shape).astype(np.float32)
    return found
