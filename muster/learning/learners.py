"""Makes the learner and the worker pool of a run's settings."""

from __future__ import annotations

import dataclasses

from muster.custom import construct, find, is_custom, split
from muster.envs.registry import make
from muster.errors import InputError
from muster.learning import imitation
from muster.learning.a2c import A2C
from muster.learning.cluster import Cluster
from muster.learning.envs import prepare
from muster.learning.es import ES, assign_candidates
from muster.learning.imitation import Imitation
from muster.learning.learner import Learner, checked_parameters
from muster.learning.parallel_rollouts import assign_blocks
from muster.learning.ppo import PPO
from muster.learning.settings import TrainSettings
from muster.learning.srl import SRL
from muster.learning.workers import Executor, Processes, WorkerPool
from muster.models.custom import needs_torch
from muster.policy.names import resolve

PARALLEL = ("ppo", "a2c", "es")
"""Learners whose environments can run in several workers."""


def make_learner(settings: TrainSettings, pool: WorkerPool | None = None) -> Learner:
    """The learner of the settings with its environments and model; a pool's workers run the environments."""
    settings = settings.filled()
    if settings.learner == "es":
        # Without workers the episodes of all candidates run in one batch.
        setup = prepare(settings, 1 if pool else 2 * settings.es.pairs)
        if pool:
            assign_candidates(pool, settings, setup.spec, setup.inference, [env.n_envs for env in setup.envs])
        return ES(setup, settings.es, pool)
    if settings.learner == "srl":
        return SRL(prepare(settings))
    if settings.learner == "imitation":
        return _make_imitation(settings)
    if is_custom(str(settings.learner)):
        return _make_custom(settings)
    setup = prepare(settings)
    if pool:
        assign_blocks(pool, settings, setup.spec, setup.inference, [env.n_envs for env in setup.envs])
    if settings.learner == "a2c":
        return A2C(setup, settings.a2c, pool)
    return PPO(setup, settings.ppo, pool)


def _make_custom(settings: TrainSettings) -> Learner:
    module, name, _ = split("learner", str(settings.learner))
    kind = find("learner", module, name)
    if not isinstance(kind, type) or not issubclass(kind, Learner):
        raise InputError(f"{module}:{name} must be a subclass of muster.Learner")
    learner: Learner = construct("learner", str(settings.learner), {"setup": prepare(settings)})
    if not hasattr(learner, "steps"):
        raise InputError(f"the constructor of {module}:{name} must call super().__init__(setup)")
    checked_parameters(learner)  # refuses others than the model's
    return learner


def _make_imitation(settings: TrainSettings) -> Learner:
    setup = prepare(_on_log(settings) if settings.from_log else settings)
    teachers = []
    for env in setup.envs:
        teachers.append(resolve(settings.teacher or "taken", env))
        # The teacher may have changed what the environment shows; the student needs its own inputs as well.
        env.show(**setup.spec.shown)
    source = {"teacher": settings.teacher} if settings.teacher else {"log": settings.from_log}
    # A policy learned from a log is for the environment of the settings, if they name one.
    env_name = {} if settings.only_log else {"env": settings.envs[0]}
    setup = setup._replace(header=setup.header | env_name | source)
    student = setup.make_actor(
        batch_statistics=True, max_grad_norm=imitation.MAX_GRAD_NORM, weight_decay=imitation.WEIGHT_DECAY
    )
    return Imitation(setup, settings.imitation, teachers, student)


def _on_log(settings: TrainSettings) -> TrainSettings:
    """The settings with the log as environment, and with assign_all of the environment that they name."""
    if settings.only_log:
        return dataclasses.replace(settings, env=f"log:{settings.from_log},set=training")
    assign_all = not make(settings.envs[0]).idling if settings.assign_all is None else settings.assign_all
    return dataclasses.replace(settings, env=f"log:{settings.from_log}", assign_all=assign_all)


def make_pool(settings: TrainSettings) -> WorkerPool | None:
    """The worker pool of the settings; None for a run in one process."""
    if settings.cluster is None and settings.workers in (None, 1):
        return None
    if settings.learner not in PARALLEL:
        raise InputError(f"the learner {settings.learner} runs in one process; leave out --workers and --cluster")
    if needs_torch(str(settings.model)):
        # Scores computed by torch depend on the batch in their last bits.
        raise InputError("models of torch run in one process; leave out --workers, or use --model dm")
    if settings.learn and settings.learner != "es":
        raise InputError(f"ppo learns {settings.learn} in one process: leave out --workers, or use --learner es")
    most, unit = _divisible(settings.filled())
    size = settings.workers if isinstance(settings.workers, int) else None
    if size is not None and size > most:
        raise InputError(f"there are {most} {unit} to divide, too few for {size} workers; use at most {most}")
    executor: Executor = Processes() if settings.cluster is None else Cluster(settings.cluster, size)
    return WorkerPool(executor, min(executor.capacity(), most) if size is None else size)


def _divisible(settings: TrainSettings) -> tuple[int, str]:
    """Largest number of parts into which an update can be divided, and the unit of a part."""
    if settings.learner == "es":
        return 2 * settings.es.pairs, "candidates (twice es.pairs)"
    unit = "slots (num_envs)"
    return settings.shared // len(settings.envs), unit if len(settings.envs) == 1 else f"{unit} of an environment"
