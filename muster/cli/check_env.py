from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Annotated

from tyro.conf import Positional, arg

EPISODE = re.compile(r" at step \d+ of the episode with seed \d+ \(slot \d+ of \d+\)")
"""Where something failed, as an environment that raises is told of."""


@dataclass(frozen=True)
class CheckEnv:
    """Run the environment checks, on a built-in environment or on your own."""

    env: Annotated[str, Positional, arg(metavar="ENV")]
    """rescue:2x4, battle:w15v17, or package.module:Class for your own."""
    json: bool = False
    """Print one JSON object."""

    def run(self) -> None:
        """Print a line a check; leave with status 1 if one failed."""
        from muster.policy.checks import check_env

        findings = check_env(self.env)
        failed = [finding for finding in findings if finding.status == "failed"]
        if self.json:
            checks = [{"check": found.check, "status": found.status, "detail": found.detail} for found in findings]
            print(json.dumps({"env": self.env, "ok": not failed, "checks": checks}))
        else:
            seen: set[str] = set()
            for found in findings:
                # One mistake fails many checks, each in an episode of its own.
                kind = EPISODE.sub("", found.detail)
                detail = "the same" if kind in seen else found.detail
                seen |= {kind} if found.status == "failed" else set()
                print(f"{found.status:10}{found.check}" + (f": {detail}" if detail else ""))
        if failed:
            raise SystemExit(1)
