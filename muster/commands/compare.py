from __future__ import annotations

import json
from dataclasses import dataclass

from tyro.conf import Positional

from muster.errors import InputError


@dataclass(frozen=True)
class Compare:
    """Play the same episodes with several policies: figures of each, and paired differences from the first."""

    names: Positional[tuple[str, ...]]
    """Two or more policies, then the environment: POLICY POLICY… ENV."""
    episodes: int = 1000
    """How many episodes of the set to play."""
    seed: int = 0
    """Which set of episodes."""
    noise: bool = False
    """Leave learned policies' exploration noise on (fixed rules have none)."""
    json: bool = False
    """Print one JSON object."""

    def run(self) -> None:
        """Evaluate each and print."""
        from muster.commands.progress import progress_bar
        from muster.commands.report import difference_line, with_interval
        from muster.envs.registry import make
        from muster.evaluation.evaluate import differences, evaluate

        if len(self.names) < 3:
            raise InputError(f"compare takes two or more policies and then the environment, got {' '.join(self.names)}")
        *policies, env = self.names
        fixed = make(env).baselines()
        found = []
        for policy in policies:
            with progress_bar(policy, self.episodes, quiet=self.json) as advance:
                noise = self.noise and policy not in fixed
                found.append(evaluate(policy, env, self.episodes, self.seed, noise, progress=advance))
        paired = differences(found)
        if self.json:
            print(json.dumps({"policies": [f.as_dict() for f in found], "differences": [d.as_dict() for d in paired]}))
            return
        from rich.console import Console
        from rich.table import Table

        metric = found[0].metric
        table = Table(title=f"{found[0].env}: {self.episodes:,} episodes of seed {self.seed}", title_justify="left")
        for column in ("policy", "win rate" if metric == "win_rate" else "steps T", "hit the limit", "ms a decision"):
            table.add_column(column)
        for one in found:
            figure = "-"
            if one.mean is not None and one.ci95 is not None:
                figure = with_interval(one.mean, one.ci95, 3 if metric == "win_rate" else 2)
            table.add_row(one.policy, figure, str(one.failed), f"{one.ms_per_decision:.4g}")
        Console().print(table)
        for pair in paired:
            print(difference_line(pair, metric))
