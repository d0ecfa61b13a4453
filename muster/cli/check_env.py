"""`muster check-env`: the environment checks, on a built-in or custom environment."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Annotated

from tyro.conf import Positional, arg

EPISODE = re.compile(r" at step \d+ of the episode with seed \d+ \(slot \d+ of \d+\)")
"""Step, seed and slot in the message of an environment that raised: they differ between checks."""


@dataclass(frozen=True)
class CheckEnv:
    """Run the environment checks, on a built-in environment or on your own."""

    env: Annotated[str, Positional, arg(metavar="ENV")]
    """rescue:2x4, battle:w15v17, or package.module:Class for your own."""
    json: bool = False
    """Print one JSON object."""

    def run(self) -> None:
        """Print one line for each check; exit with status 1 if one failed."""
        from muster.policy.checks import check_env

        findings = check_env(self.env)
        failed = [finding for finding in findings if finding.status == "failed"]
        if self.json:
            checks = [{"check": each.check, "status": each.status, "detail": each.detail} for each in findings]
            print(json.dumps({"env": self.env, "ok": not failed, "checks": checks}))
        else:
            seen: set[str] = set()
            for finding in findings:
                # One mistake fails many checks, each in a different episode.
                kind = EPISODE.sub("", finding.detail)
                detail = "the same" if kind in seen else finding.detail
                seen |= {kind} if finding.status == "failed" else set()
                print(f"{finding.status:10}{finding.check}" + (f": {detail}" if detail else ""))
        if failed:
            raise SystemExit(1)
