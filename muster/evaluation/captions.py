"""Captions of the viewers: titles of environments, labels of policies, the verdict on an episode."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from muster.envs.registry import kind_of
from muster.envs.vector import Metric
from muster.evaluation.replay import Replay
from muster.evaluation.statistics import MEANINGS
from muster.policy.learned import PRIOR
from muster.policy.names import shipped


@dataclass(frozen=True, slots=True)
class Caption:
    """Title and description of an environment."""

    title: str
    about: str
    """One sentence: what the agents do, and which outcome is better."""
    left: str = ""
    """Label of the number of tasks left, such as "victims waiting"; empty if it does not measure progress."""
    unit: str = "reward"
    """Name of the reward."""


CAPTIONS = {
    "rescue": Caption(
        "Search and rescue", "Ambulances pick up victims on a grid; the fewer steps to the last one, the better.",
        "victims waiting",
    ),
    "battle": Caption(
        "Battle", "Our units (blue) choose which enemy (red) to attack; the side with units left at the end wins.",
        "enemies left",
    ),
    "pursuit": Caption(
        "Pursuit", "Pursuers catch an evader by surrounding it; the fewer steps to the last one, the better.",
        "evaders free",
    ),
    "fleet": Caption(
        "Fleet", "Vehicles take the requests of each minute; the more profit (fares less driving costs), the better.",
        unit="profit",
    ),
}  # fmt: skip
BASELINES = {
    "rescue": {
        "closest": "nearest first",
        "closest-manhattan": "nearest first, by rows and columns",
        "lp-distance": "least total distance",
        "routes-distance": "planned routes",
        "routes-known": "planned routes, mud known",
        "topline": "the optimum",
    },
    "battle": {
        "c": "closest enemy first",
        "wc": "weakest enemy first",
        "wcnok": "weakest first, no over-kill",
        "wcnoknc": "weakest first, no over-kill, no change",
        "wcnoks": "weakest first, no over-kill, few changes",
        "wcnok-fixed": "weakest first, no over-kill (corrected)",
        "wcnoknc-fixed": "weakest first, no over-kill, no change (corrected)",
        "wcnoks-fixed": "weakest first, no over-kill, few changes (corrected)",
        "rand-nc": "random targets, kept",
        "attack-move": "the opponent's own behaviour",
    },
    "pursuit": {
        "closest": "nearest first",
        "closest-pairs": "groups that gather soonest",
        "lp-distance": "least total distance",
    },
    "fleet": {
        "greedy": "nearest vehicle first",
        "match": "most profit now",
        "worth": "most profit now and later",
        "hindsight": "the best in hindsight",
    },
}
_LOOK_AHEAD = re.compile(r"(.+), (\d+) rollouts")


@dataclass(frozen=True, slots=True)
class Verdict:
    """Which policy did better on an episode."""

    winner: int | None
    """Index of the better replay; None for a draw or a single replay."""
    title: str
    detail: str


def caption(env: str) -> Caption:
    """The caption of an environment."""
    kind = kind_of(env)
    return CAPTIONS.get(kind, Caption(kind.rpartition(":")[2], "A custom environment; the more reward, the better."))


def label(policy: str, env: str) -> str:
    """A policy's label for a viewer, such as "nearest first" or "learned on 2x4"."""
    ahead = _LOOK_AHEAD.fullmatch(policy)
    if ahead:
        return f"{label(ahead[1], env)}, looking ahead"
    kind = kind_of(env)
    known = BASELINES.get(kind, {})
    if policy in known:
        return known[policy]
    if policy in shipped():
        size = policy.removeprefix(f"{kind}-").split("-")[0]
        return f"learned on {'several small sizes' if size == 'small' else size}{' vehicles' * (kind == 'fleet')}"
    if policy == PRIOR:
        return "the prior, nothing learned"
    return f"run {Path(policy).name}" if known else policy


def verdict(replays: Sequence[Replay], endings: Sequence[str]) -> Verdict:
    """The better replay and by how much; `endings` describe how each ended."""
    result = _verdict(replays, endings)
    return replace(result, title=result.title[:1].upper() + result.title[1:])


def _verdict(replays: Sequence[Replay], endings: Sequence[str]) -> Verdict:
    names = [label(replay.policy, replay.env) for replay in replays]
    if len(replays) == 1:
        return Verdict(None, f"{names[0]}: {endings[0]}", "")
    first = replays[0]
    meaning = MEANINGS[cast(Metric, first.metric)]
    worths = [meaning.better * replay.outcome for replay in replays]
    if first.metric == "steps":
        # An episode that hit the step limit is worse than any that was finished.
        worths = [float("-inf") if replay.truncated else worth for replay, worth in zip(replays, worths, strict=True)]
    if worths[0] == worths[1]:
        return Verdict(None, f"{names[0]} and {names[1]} draw", _draw(first, names, endings))
    winner = int(worths[1] > worths[0])
    loser = 1 - winner
    title = f"{names[winner]} wins"
    better, worse = replays[winner].outcome, replays[loser].outcome
    if first.metric == "win_rate" or (first.metric == "steps" and replays[loser].truncated):
        return Verdict(winner, title, f"It {endings[winner]}; {names[loser]} {endings[loser]}.")
    by = abs(better - worse)
    more = "more" if meaning.better > 0 else "fewer"
    share = f", {100 * by / abs(worse):.0f} % {more}" if worse else ""
    if first.metric == "steps":
        unit = "step" if by == 1 else "steps"
        return Verdict(winner, f"{title} by {by:g} {unit}", f"{better:g} steps against {worse:g}{share}.")
    return Verdict(
        winner,
        f"{title} by {by:.4g}",
        f"{caption(first.env).unit.capitalize()} {better:.4g} against {worse:.4g}{share}.",
    )


def _draw(replay: Replay, names: Sequence[str], endings: Sequence[str]) -> str:
    if replay.metric == "win_rate":
        return f"{names[0]} {endings[0]}, {names[1]} {endings[1]}."
    return f"Both: {endings[0]}."
