"""`muster evaluate`: a policy's metrics over a fixed set of episodes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from muster.cli.policy_flags import PolicyFlags


@dataclass(frozen=True)
class Evaluate(PolicyFlags):
    """Run a fixed set of episodes and print the metrics, with 95 % intervals."""

    policy: Annotated[str, Positional, arg(metavar="POLICY")]
    """A baseline of the environment, a shipped policy, or a path to a run or model file."""
    env: Annotated[str, Positional, arg(metavar="ENV")]
    """rescue:2x4, battle:w15v17, or package.module:Class for your own."""
    episodes: int | Literal["all"] = 1000
    """Number of episodes of the set; all: every episode of an environment with finitely many."""
    seed: int | Literal["sealed"] = 0
    """Which set of episodes, the same for every policy; sealed: the set for final evaluations, which training and
    search cannot draw from."""
    noise: bool = False
    """Leave a learned policy's exploration noise on, as the paper does."""
    log: Path | None = None
    """File for every observation and decision: JSON Lines that `muster train --from-log` learns from."""
    json: bool = False
    """Print one JSON object."""

    def run(self) -> None:
        """Evaluate the policy and print its metrics."""
        from muster.cli.console import progress_bar
        from muster.evaluation.evaluate import evaluate

        with progress_bar(self.policy, self.episodes, quiet=self.json) as advance:
            policy = self.policy_of(self.policy, self.env)
            evaluation = evaluate(
                policy, self.env, self.episodes, self.seed, self.noise, progress=advance, log=self.log
            )
        if self.json:
            print(json.dumps(evaluation.as_dict()))
        else:
            print(evaluation)
