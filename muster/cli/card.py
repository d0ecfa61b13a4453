"""`muster card`: how a policy was trained and how well it does."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated

from tyro.conf import Positional, arg

from muster.errors import InputError


@dataclass(frozen=True)
class Card:
    """A policy's card: how it was trained, what it reads, how well it does by size, and where it stops winning."""

    policy: Annotated[str, Positional, arg(metavar="POLICY")]
    """A shipped policy by name, or the path to a run or model file."""
    envs: tuple[str, ...] = ()
    """Measure it on these envs as well, beside their baselines on the same episodes, with its time a decision."""
    latency: bool = True
    """Measure the milliseconds of a decision on this machine, in the environments on record."""
    episodes: int | None = None
    """Episodes in each of --envs (100)."""
    seed: int | None = None
    """Which set of episodes in each of --envs (0)."""
    json: bool = False
    """Print one JSON object instead of Markdown."""

    def run(self) -> None:
        """Print the card as Markdown or JSON."""
        for name in ("episodes", "seed"):
            if getattr(self, name) is not None and not self.envs:
                raise InputError(f"--{name} says how --envs are measured; name some, such as --envs rescue:2x4")
        episodes, seed = 100 if self.episodes is None else self.episodes, self.seed or 0
        if episodes < 1:
            raise InputError(f"episodes must be at least 1, got {episodes}")
        from muster.evaluation.card import measure, measure_latency, read_card, with_results
        from muster.evaluation.card_markdown import as_markdown

        card = read_card(self.policy)
        measured = {env: measure(self.policy, env, episodes, seed) for env in self.envs}
        latency_ms = measure_latency(card) if self.latency else {}
        latency_ms |= {env: ms for env, (_, ms) in measured.items()}
        card = with_results(card, [result for result, _ in measured.values()], latency_ms)
        print(json.dumps(card, allow_nan=False) if self.json else as_markdown(card))
