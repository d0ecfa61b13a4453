"""From settings to a learner: the environments, the model that reads all of them, and who learns."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from muster.assign.settings import InferenceSettings
from muster.data import PartialObservation
from muster.envs.registry import kind_of, make
from muster.envs.vector import BatchEnv
from muster.errors import InputError, MissingExtraError
from muster.learning.base import Learner
from muster.learning.blocks import spread_worlds
from muster.learning.candidates import spread_candidates
from muster.learning.crew import Crew
from muster.learning.evolution import Evolution
from muster.learning.form import choose_pair_scale, parts_of
from muster.learning.settings import LearnerKind, TrainSettings
from muster.learning.students import DirectStudent, Student
from muster.learning.worlds import prepare_env
from muster.models.spec import ModelSpec
from muster.policy.names import resolve
from muster.settings import differences

VALIDATION_EPISODES = 500
VALIDATION_EPISODES_LARGE = 20
LARGE_GRID = 1000
"""Cells above which a positional model plays but tens of states a second on one core."""


def usual_episodes(settings: TrainSettings, name: str) -> int:
    """Held-out episodes where the settings say none: few where each state is a CNN's pass over a large grid."""
    if settings.model != "pem":
        return VALIDATION_EPISODES
    planes = prepare_env(settings, name, 1).observe().planes
    large = planes is not None and planes[0, 0].size > LARGE_GRID
    return VALIDATION_EPISODES_LARGE if large else VALIDATION_EPISODES


def make_learner(settings: TrainSettings, crew: Crew | None = None) -> Learner:
    """Environments, model and learner of the settings; with a crew its workers play."""
    assert settings.learner is not None
    return MAKERS[settings.learner](settings) if crew is None else SPREAD[settings.learner](settings, crew)


class Parts(NamedTuple):
    """What every learner is made of."""

    envs: list[BatchEnv]
    spec: ModelSpec
    inference: InferenceSettings
    header: dict[str, Any]
    """Of the policies' files."""


def prepare(settings: TrainSettings, slots: int, times: int = 1) -> Parts:
    """The envs of a run, among which `slots` envs are shared out evenly, each `times`; and the model."""
    count = len(settings.envs)
    sizes = [slots // count + (k < slots % count) for k in range(count)]
    envs = [prepare_env(settings, name, times * size) for name, size in zip(settings.envs, sizes, strict=True)]
    for env in envs:
        env.threads = 1  # one core a run: several runs share a machine better than one run its threads
    spec, assign_all = _common(settings, envs)
    effort = settings.effort or ("paper" if settings.inference == "lp" else "fast")
    inference = InferenceSettings(settings.inference, effort, settings.rounding, assign_all)
    header: dict[str, Any] = {"env": settings.envs[0]}
    header |= {"envs": list(settings.envs)} if count > 1 else {}
    header |= {"from": settings.from_policy} if settings.from_policy else {}
    return Parts(envs, spec, inference, header)


NO_TORCH = "use --learner es, which needs no torch"


def make_evolution(settings: TrainSettings) -> Learner:
    """Every candidate plays the same episodes, all at once."""
    parts = prepare(settings, settings.es.episodes, times=2 * settings.es.pairs)
    return Evolution(parts.envs, parts.spec, parts.inference, settings.es, settings.seed, parts.header)


def make_actor_critic(settings: TrainSettings) -> Learner:
    """Needs torch."""
    need_torch("the a2c learner", NO_TORCH)
    from muster.learning.actor_critic import ActorCritic

    parts = prepare(settings, settings.a2c.recipe.envs)
    return ActorCritic(parts.envs, parts.spec, parts.inference, settings.a2c, settings.seed, parts.header)


def make_imitation(settings: TrainSettings) -> Learner:
    """The direct model needs no torch."""
    from muster.learning.imitation import Imitation

    own = settings.imitate
    teacher = settings.teacher or "taken"
    parts = prepare(_on_log(settings) if settings.from_log else settings, own.envs)
    teachers = []
    for env in parts.envs:
        teachers.append(resolve(teacher, env))
        # A teacher has the env show what it reads itself; what else there is it gets from what the student sees.
        env.show(pair_features=settings.pair_features, planes=settings.model == "pem")
    student = make_student(settings, parts.spec)
    told = {"teacher": settings.teacher} if settings.teacher else {"log": settings.from_log}
    header = parts.header | {"env": settings.envs[0]} | told
    return Imitation(parts.envs, teachers, student, parts.spec, parts.inference, own, settings.seed, header)


def _on_log(settings: TrainSettings) -> TrainSettings:
    """The same with the log as the environment to learn on; the one that was named says whether idling is a choice."""
    named = settings.envs[0]
    if kind_of(named) == "log":
        return dataclasses.replace(settings, env=f"log:{settings.from_log},set=training")
    assign_all = not make(named).idling if settings.assign_all is None else settings.assign_all
    return dataclasses.replace(settings, env=f"log:{settings.from_log}", assign_all=assign_all)


def make_student(settings: TrainSettings, spec: ModelSpec) -> Student:
    """By kernels for the direct model; other models need torch."""
    own = settings.imitate
    if spec.kind == "dm":
        return DirectStudent(spec, settings.seed, own.gradient_norm, own.weight_decay)
    need_torch(f"a {spec.kind} model", "use --model dm")
    from muster.learning.torch_student import TorchStudent

    return TorchStudent(spec, settings.seed, own.gradient_norm, own.weight_decay, own.low_precision)


def spread_evolution(settings: TrainSettings, crew: Crew) -> Learner:
    """Every worker has its share of the candidates, and environments for these."""
    parts = prepare(settings, settings.es.episodes)
    episodes = [env.n_envs for env in parts.envs]
    spread_candidates(crew, settings, parts.spec, parts.inference, episodes)
    return Evolution(parts.envs, parts.spec, parts.inference, settings.es, settings.seed, parts.header, crew)


def make_structured(settings: TrainSettings) -> Learner:
    """Candidates are tried on copies of each state's environment."""
    from muster.learning.structured import Structured

    parts = prepare(settings, settings.srl.states)
    return Structured(parts.envs, parts.spec, parts.inference, settings.srl, settings.seed, parts.header)


def spread_actor_critic(settings: TrainSettings, crew: Crew) -> Learner:
    """Every worker has its block of each environment's environments; learning stays here."""
    if settings.learn:
        raise InputError(
            f"the actor-critic learns {settings.learn} in one process: leave out --workers, or --learner es"
        )
    need_torch("the a2c learner", NO_TORCH)
    from muster.learning.actor_critic import ActorCritic

    parts = prepare(settings, settings.a2c.recipe.envs)
    spread_worlds(crew, settings, parts.spec, parts.inference, [env.n_envs for env in parts.envs])
    return ActorCritic(parts.envs, parts.spec, parts.inference, settings.a2c, settings.seed, parts.header, crew)


MAKERS: dict[LearnerKind, Callable[[TrainSettings], Learner]] = {
    "a2c": make_actor_critic,
    "es": make_evolution,
    "imitate": make_imitation,
    "srl": make_structured,
}
SPREAD: dict[LearnerKind, Callable[[TrainSettings, Crew], Learner]] = {
    "a2c": spread_actor_critic,
    "es": spread_evolution,
}
"""Those that can play in several processes."""


def need_torch(who: str, instead: str) -> None:
    """Refuse in a sentence where torch is not installed; let it use one thread."""
    try:
        import torch
    except ImportError:
        raise MissingExtraError(who, "torch", instead) from None
    # One thread: the networks are small, and a run is then the same on every machine with these libraries.
    torch.set_num_threads(1)


def _common(settings: TrainSettings, envs: Sequence[BatchEnv]) -> tuple[ModelSpec, bool]:
    """The model for all envs, and whether every agent is assigned; refuses envs that one policy cannot play."""
    found: list[tuple[ModelSpec, bool]] = []
    for env in envs:
        if settings.centred and not env.positions:
            raise InputError(f"{env.name} names no positions to measure from the middle; leave out --centred")
        centred = env.positions if settings.centred else ()
        pairs_of_tasks = settings.inference in ("quad", "routes")
        seen = env.observe()
        if settings.inference == "routes" and settings.prior and isinstance(seen, PartialObservation) and seen.more:
            # Costs are best learned as what distances leave out.
            seen = seen.more(settings.pair_features, False, True)
        more = parts_of(settings, env, seen) | {"learned": settings.learned, "unlimited": settings.unlimited}
        spec = ModelSpec.of(seen, settings.model, pairs_of_tasks, centred=centred, prior=settings.prior, **more)
        found.append((spec, settings.assign_all if settings.assign_all is not None else not env.idling))
    for env, (spec, assign_all) in zip(envs, found, strict=True):
        if kind_of(env.name) != kind_of(envs[0].name):
            raise InputError(f"a policy learns on environments of one kind; {envs[0].name} and {env.name} are of two")
        told = "; ".join(f"{name} {one} and {other}" for name, one, other in differences(found[0][0], spec))
        if told:
            raise InputError(f"one model cannot read both {envs[0].name} and {env.name}: {told}")
        if assign_all != found[0][1]:
            raise InputError(
                f"idling is a choice in only one of {envs[0].name} and {env.name}; say --assign-all True or False"
            )
    spec, assign_all = found[0]
    if spec.task_scores:
        size = max(env.n_agents for env in envs)
        spec = dataclasses.replace(spec, trained_agents=size, pair_scale=choose_pair_scale(settings, envs))
    return spec, assign_all
