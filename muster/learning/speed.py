"""The speed of updates, measured before a run begins, and the sizes of updates chosen by it.

A throw-away learner makes one update, and larger ones as long as they are too short to be timed. The chosen sizes are
written to the run's configuration, so that its repetition does not depend on the machine's speed.
"""

from __future__ import annotations

import dataclasses
import math
import time
from dataclasses import dataclass

from muster.learning.learner import checked_update
from muster.learning.learners import make_learner
from muster.learning.settings import CUSTOM_ENVS, TrainSettings

DEFAULT_MINUTES = 5.0
WANTED, WANTED_LINEAR = 60, 200
"""Updates that a run should have: where it would have fewer, they become smaller. A linear model has few weights, for
which few candidates an update are enough."""
FEW = 20
"""Fewer updates than this are worth a warning."""
ROW_SECONDS, ROWS = 5.0, 20
"""Seconds between two rows of the log, and the least number of rows."""
TIMED = 0.25
"""CPU seconds of an update that are long enough to be timed."""

Sizes = dict[str, int]
LADDERS: dict[str, tuple[Sizes, ...]] = {
    "ppo": tuple({"num_envs": envs} for envs in (64, 32, 16, 8)),
    "srl": tuple({"num_envs": envs} for envs in (32, 16, 8)),
    "es": tuple(
        {"pairs": pairs, "episodes": episodes}
        for pairs, episodes in ((32, 16), (32, 8), (32, 4), (16, 4), (16, 2), (16, 1), (8, 1))
    ),
}
"""By learner, the usual update and smaller ones, the largest first."""
PROBES: dict[str, tuple[Sizes, ...]] = {
    "ppo": tuple({"num_envs": envs, "rollout_length": length} for envs, length in ((8, 4), (16, 16), (64, 32))),
    "a2c": tuple({"num_envs": envs} for envs in (8, 64, 256)),
    "srl": tuple({"num_envs": envs} for envs in (2, 8, 32)),
    "es": tuple({"pairs": pairs, "episodes": episodes} for pairs, episodes in ((2, 1), (8, 2), (32, 4))),
    "imitation": tuple({"num_envs": envs} for envs in (8, 32, 128)),
}
"""By learner, sizes of the updates to time, the smallest first."""


@dataclass(frozen=True)
class Speed:
    """Time and size of one update of a throw-away learner."""

    seconds: float
    """CPU time."""
    steps: int
    episodes: float
    """Episodes that ended."""
    size: int
    """Size of the update as of `size_of`."""

    @property
    def steps_per_second(self) -> float:
        """Environment steps, learning included."""
        return self.steps / self.seconds

    def updates(self, settings: TrainSettings) -> float:
        """Expected number of updates in a run of these settings."""
        share = self.size / size_of(settings)
        if settings.steps is not None:
            return settings.steps / self.steps * share
        return run_seconds(settings) / self.seconds * share

    def describe(self, settings: TrainSettings) -> str:
        """One line on the expected speed and number of updates."""
        speed = ""
        if settings.steps is None:
            speed = f"about {_rounded(self.steps_per_second):,} environment steps per second, "
        length = (
            f"{run_seconds(settings) / 60:g} CPU minutes" if settings.steps is None else f"{settings.steps:,} steps"
        )
        whole_episodes = settings.learner == "es" and self.episodes
        lasting = f"episodes of about {self.steps / self.episodes:.0f} steps, " if whole_episodes else ""
        updates = _counted(_rounded(self.updates(settings)))
        return f"{speed}{lasting}{updates} of {_update_in_words(settings)} to expect in {length}"

    def warning(self, settings: TrainSettings) -> str | None:
        """Advice where there will be too few updates to learn much, else None."""
        updates = self.updates(settings)
        if updates >= FEW:
            return None
        option = "--steps" if settings.steps is not None else "--minutes"
        smaller = ", smaller --es.pairs or --es.episodes" if settings.learner == "es" else ", smaller --num-envs"
        smaller += " or --ppo.rollout-length" if settings.learner == "ppo" else ""
        return (
            f"only about {_counted(round(updates))} in a run of this length, too few to learn much ({FEW} at least, "
            f"{WANTED} or more are better): give more {option}{smaller}, a smaller environment or a faster one"
        )


def choose_sizes(settings: TrainSettings) -> tuple[TrainSettings, Speed | None]:
    """The settings with open sizes chosen by measured speed; and that speed, None where it was not needed."""
    ladder = LADDERS.get(str(settings.learner), ({},))
    if settings.steps is not None and (ladder == ({},) or all(settings.update_sizes.values())):
        return settings.filled(), None
    speed = measure(settings)
    filled = (settings.filled(**sizes) for sizes in ladder)
    wanted = WANTED_LINEAR if settings.learner == "es" and settings.model == "linear" else WANTED
    chosen = next((one for one in filled if speed.updates(one) >= wanted), settings.filled(**ladder[-1]))
    between = min(ROW_SECONDS, run_seconds(settings) / ROWS)
    log_every = 2 ** max(0, round(math.log2(max(1.0, speed.steps_per_second * between))))
    return dataclasses.replace(chosen, log_every=settings.filled(log_every).log_every), speed


def measure(settings: TrainSettings) -> Speed:
    """The speed of a throw-away learner with the run's own first policy, on training episodes."""
    speed = None
    for sizes in PROBES.get(str(settings.learner), ({"num_envs": CUSTOM_ENVS},)):
        probe = _probe(settings, sizes)
        learner = make_learner(probe)
        began = time.process_time()
        metrics = checked_update(learner, 0.0)
        seconds = max(time.process_time() - began, 1e-6)
        speed = Speed(seconds, learner.steps, metrics["episodes"], size_of(probe))
        # The sizes of a run whose length is given in steps must not depend on the machine.
        if seconds > TIMED or settings.steps is not None:
            break
    assert speed is not None
    return speed


def _probe(settings: TrainSettings, sizes: Sizes) -> TrainSettings:
    """The settings with updates of these sizes, or of smaller ones where the settings give them."""
    sizes_set = settings.update_sizes
    if "rollout_length" in sizes:
        length = min(sizes["rollout_length"], settings.ppo.rollout_length)
        settings = dataclasses.replace(settings, ppo=dataclasses.replace(settings.ppo, rollout_length=length))
    return settings.with_sizes(**{name: min(sizes[name], size or sizes[name]) for name, size in sizes_set.items()})


def run_seconds(settings: TrainSettings) -> float:
    """CPU seconds of a run whose length is not given in steps."""
    return 60 * (settings.minutes or DEFAULT_MINUTES)


def size_of(settings: TrainSettings) -> int:
    """Work of an update, to which its time is proportional: episodes, decisions or states."""
    if settings.learner == "es":
        return 2 * settings.es.pairs * settings.es.episodes
    return settings.num_envs * _decisions(settings)


def _decisions(settings: TrainSettings) -> int:
    return {"ppo": settings.ppo.rollout_length, "a2c": settings.a2c.rollout_length}.get(str(settings.learner), 1)


def _update_in_words(settings: TrainSettings) -> str:
    if settings.learner == "es":
        return f"{settings.es.pairs} pairs x {settings.es.episodes} episodes"
    if settings.learner in ("ppo", "a2c"):
        return f"{settings.num_envs} environments x {_decisions(settings)} decisions"
    return f"{settings.num_envs} states"


def _counted(updates: int) -> str:
    return f"{updates:,} update{'' if updates == 1 else 's'}"


def _rounded(number: float) -> int:
    """The number to two significant digits."""
    digits = max(0, math.floor(math.log10(max(number, 1.0))) - 1)
    return round(number / 10**digits) * 10**digits
