"""From settings to the workers of a run."""

from __future__ import annotations

from muster.errors import InputError
from muster.learning.cluster import Cluster
from muster.learning.crew import Crew, Place
from muster.learning.learners import SPREAD
from muster.learning.processes import Processes
from muster.learning.settings import TrainSettings


def hire(settings: TrainSettings) -> Crew | None:
    """Workers as the settings want them, who begin when they are first needed; None where the run plays itself."""
    if settings.cluster is None and settings.workers in (None, 1):
        return None
    if settings.learner not in SPREAD:
        raise InputError(f"the learner {settings.learner} plays in one process; leave out --workers and --cluster")
    if settings.learner == "a2c" and (settings.model != "dm" or settings.a2c.critic != "entity"):
        # What torch gives for a state depends on the batch it is in.
        raise InputError(
            "networks of torch play in one process; leave out --workers, or use --model dm and --a2c.critic entity"
        )
    most, what = work_to_share(settings)
    size = settings.workers if isinstance(settings.workers, int) else None
    if size is not None and size > most:
        raise InputError(f"there are {most} {what} to share out, too few for {size} workers; use at most {most}")
    place: Place = Processes() if settings.cluster is None else Cluster(settings.cluster, size)
    return Crew(place, min(place.capacity(), most) if size is None else size)


def work_to_share(settings: TrainSettings) -> tuple[int, str]:
    """How many parts an update has at most, and what they are."""
    if settings.learner == "es":
        return 2 * settings.es.pairs, "candidates (twice es.pairs)"
    envs = settings.a2c.recipe.envs // len(settings.envs)
    return envs, "environments (a2c.envs) of an environment" if len(settings.envs) > 1 else "environments (a2c.envs)"
