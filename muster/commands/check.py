from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated

from tyro.conf import Positional, arg


@dataclass(frozen=True)
class Check:
    """Check the laws that every environment obeys, on a built-in environment or on your own."""

    env: Annotated[str, Positional, arg(metavar="ENV")]
    """rescue:2x4, battle:w15v17, or package.module:Class for your own."""
    json: bool = False
    """Print one JSON object."""

    def run(self) -> None:
        """Print a line a law; leave with status 1 if one is broken."""
        from muster.envs.checker import check

        findings = check(self.env)
        broken = [finding for finding in findings if finding.status == "broken"]
        if self.json:
            laws = [{"law": found.law, "status": found.status, "detail": found.detail} for found in findings]
            print(json.dumps({"env": self.env, "ok": not broken, "laws": laws}))
        else:
            for found in findings:
                print(f"{found.status:10}{found.law}" + (f": {found.detail}" if found.detail else ""))
        if broken:
            raise SystemExit(1)
