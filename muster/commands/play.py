from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tyro.conf import Positional

if TYPE_CHECKING:
    from muster.envs.base import BatchEnv
    from muster.evaluation.replay import Replay


@dataclass(frozen=True)
class Play:
    """Play one episode and write it down: .gif to look at, .html to step through, .json as data."""

    policy: Positional[str]
    """A baseline of the environment, a shipped policy, or a path to a run or model file."""
    env: Positional[str]
    """rescue:2x4, battle:w15v17, or package.module:Class for your own."""
    out: Path = Path("replay.gif")
    """The file to write."""
    seed: int = 0
    """Which set of episodes; its first one is played."""
    noise: bool = False
    """Leave a learned policy's exploration noise on."""

    def run(self) -> None:
        """Play, write, and say how it ended."""
        from muster.envs.registry import make
        from muster.evaluation.replay import record, writer
        from muster.policy.names import resolve

        write = writer(self.out)
        env = make(self.env)
        policy = resolve(self.policy, env, self.noise)
        replay = record(policy, env, self.seed, pictures=self.out.suffix != ".json")
        write(replay, self.out)
        print(f"{self.policy} on {env.name}: {_ending(replay, env)}; written to {self.out}")


def _ending(replay: Replay, env: BatchEnv) -> str:
    """How the episode ended, and what else the world says of it."""
    steps = len(replay.assignments)
    if replay.metric == "return":
        ending = f"return {replay.outcome:.2f} after {steps} decisions"
    elif replay.truncated:
        ending = f"hit the step limit of {env.max_steps}"
    elif replay.metric == "win_rate":
        ending = f"{'won' if replay.outcome else 'lost'} after {steps} decisions"
    else:
        ending = f"done in {steps} steps"
    figures = (f"{name.replace('_', ' ')} {values[0]:.4g}" for name, values in env.figures().items())
    return ", ".join([ending, *figures])
