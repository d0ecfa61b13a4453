"""`muster compare`: several policies, or groups of runs, on the same episodes."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from tyro.conf import Positional

from muster.cli.policy_flags import PolicyFlags
from muster.errors import InputError


@dataclass(frozen=True)
class Compare(PolicyFlags):
    """Run the same episodes with several policies: metrics of each, paired differences from the first and last one."""

    names: Positional[tuple[str, ...]]
    """Two or more policies, then the environment: POLICY POLICY… ENV. A pattern such as 'runs/ppo-s*' is a
    group of runs with different training seeds, compared by interquartile mean and probability of improvement."""
    episodes: int | Literal["all"] = 1000
    """Number of episodes of the set; all: every episode of an environment with finitely many."""
    seed: int | Literal["sealed"] = 0
    """Which set of episodes, the same for every policy; sealed: the set for final evaluations, which training and
    search cannot draw from."""
    noise: bool = False
    """Leave learned policies' exploration noise on (baselines have none)."""
    json: bool = False
    """Print one JSON object."""

    def run(self) -> None:
        """Evaluate the policies and print metrics and paired differences."""
        from muster.cli.console import progress_bar
        from muster.evaluation.compare import compare
        from muster.evaluation.groups import runs_of
        from muster.evaluation.text import evaluation_table

        if len(self.names) < 3:
            got = " ".join(self.names) or "nothing"
            raise InputError(f"compare takes two or more policies and then the environment, got {got}")
        *policies, env = self.names
        groups = [runs_of(name) for name in policies]
        flat = iter(self.policies_of([name for group in groups for name in group], env))
        comparison = compare(
            [list(islice(flat, len(group))) for group in groups],
            env,
            self.episodes,
            self.seed,
            self.noise,
            watch=lambda policy: progress_bar(policy, self.episodes, quiet=self.json),
        )
        if self.json:
            print(json.dumps(comparison.as_dict()))
            return
        from rich.console import Console
        from rich.table import Table

        head, rows = evaluation_table(comparison.evaluations)
        table = Table(*head, title=comparison.title, title_justify="left")
        for row in rows:
            table.add_row(*row)
        # A file or pipe has no width, so names are not cut there.
        Console(width=None if sys.stdout.isatty() else 1000).print(table)
        print("\n".join(comparison.remarks()))
