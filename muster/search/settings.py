"""What a study is: kept in study.toml; processes that join it must agree with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from muster.errors import InputError
from muster.learning.settings import LARGEST_SEED, TrainSettings
from muster.search.space import LENGTH_AND_LOG, Space, read_space
from muster.settings import AtLeast, Between, Positive, build, check_fields, overlaid

Sampler = Literal["random", "tpe"]
Pruner = Literal["none", "median", "hyperband"]
Judge = Literal["reward", "validation"]

MINUTES = 1.0
LOG_EVERY = 50_000
TOKEN_EPISODES = 20
"""Held-out episodes at the end of a run whose outcome is not used."""
JUDGED_BY = {
    "reward": "training reward, exploration included: the best row of a trial's log; but for ppo and a2c, the last",
    "validation": "mean outcome on held-out validation episodes, without exploration, at the end of a trial",
}


@dataclass(frozen=True)
class StudySettings:
    """What is searched, how, and what a trial costs."""

    env: tuple[str, ...]
    """The environment, or environments, of every trial."""
    space_name: str
    """ppo, paper, es, or the file that the space was read from."""
    space: dict[str, Any]
    """What is sampled; `muster.search.space` says how it reads."""
    run: dict[str, Any] = field(default_factory=dict)
    """Settings of `muster train` that every trial shares."""
    trials: Annotated[int, AtLeast(1)] = 128
    """Trials altogether, over all processes. The only thing that may change later."""
    minutes: Annotated[float | None, Positive()] = None
    """Minutes of CPU time of a trial (1 if neither this nor steps is given)."""
    steps: Annotated[int | None, AtLeast(1)] = None
    """Environment steps of a trial."""
    sampler: Sampler = "random"
    """random: as in the paper; tpe: near those that did well."""
    pruner: Pruner = "none"
    """Ends trials early that fall behind in training reward: below the median of the others, or by Hyperband."""
    judge: Judge = "reward"
    """What trials are compared by: training reward, as in the paper, or held-out validation episodes."""
    seed: Annotated[int, Between(0, LARGEST_SEED)] = 0
    """Of the trials, and of every run: all begin with the same parameters and episodes."""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.minutes is not None and self.steps is not None:
            raise InputError("give the length of a trial as minutes or as steps, not both")
        if self.minutes is None and self.steps is None:
            object.__setattr__(self, "minutes", MINUTES)
        for table in self.parsed.corners():
            self.of_trial(table)

    @property
    def parsed(self) -> Space:
        """The space."""
        return read_space(self.space, self.space_name)

    def of_trial(self, table: dict[str, Any]) -> TrainSettings:
        """Settings of the run with these sampled settings; InputError where they do not go together."""
        own = {"minutes": self.minutes, "steps": self.steps, "seed": self.seed, "env": self.env}
        shared: dict[str, Any] = {"log_every": LOG_EVERY}
        shared |= {"evaluate_episodes": TOKEN_EPISODES} if self.judge == "reward" else {}
        made = build(TrainSettings, overlaid(overlaid(shared | own, self.run), table), "this trial")
        # Trials that are compared have updates of one size, whatever the machine does meanwhile.
        return made.filled()

    def portable(self, table: dict[str, Any]) -> dict[str, Any]:
        """Settings for `muster train --config`: env, what trials share and what this one sampled; not its length."""
        kept = {name: value for name, value in self.run.items() if name not in LENGTH_AND_LOG}
        env = self.env[0] if len(self.env) == 1 else list(self.env)
        return overlaid({"env": env, **kept}, table)
