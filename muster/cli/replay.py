"""`muster replay`: one recorded episode as a page, a GIF or data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from muster.cli.policy_flags import PolicyFlags


@dataclass(frozen=True)
class Replay(PolicyFlags):
    """Record one episode: .html to watch and step through, .gif to show, .json as data."""

    policy: Annotated[str, Positional, arg(metavar="POLICY")]
    """A baseline of the environment, a shipped policy, or a path to a run or model file."""
    env: Annotated[str, Positional, arg(metavar="ENV")]
    """rescue:2x4, battle:w15v17, or package.module:Class for your own."""
    out: Path = Path("replay.html")
    """The file to write; a .gif needs an environment that draws itself (extra `plot`)."""
    beside: str | None = None
    """A second policy on the same episode, shown beside the first (.html)."""
    seed: int = 0
    """Which set of episodes; its first one is recorded."""
    noise: bool = False
    """Leave a learned policy's exploration noise on."""

    def run(self) -> None:
        """Record and write the episode, and print how it ended."""
        from muster.envs.registry import make
        from muster.evaluation.replay import ending, record
        from muster.evaluation.writers import writer
        from muster.policy.names import resolve

        names = [self.policy] if self.beside is None else [self.policy, self.beside]
        write = writer(self.out, len(names))
        env = make(self.env)
        replays, endings = [], []
        for name, policy in zip(names, self.policies_of(names, self.env), strict=True):
            replays.append(record(resolve(policy, env, self.noise), env, self.seed))
            endings.append(f"{name} on {env.name}: {ending(replays[-1], env)}")
        write(replays, env, self.out)
        print(f"{'; '.join(endings)}; written to {self.out}")
