"""The environments of a training run, and one model for all of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import partial
from typing import Any

from muster.assign.custom import reads_task_scores
from muster.assign.settings import Effort, InferenceSettings
from muster.data import BatchObservation
from muster.envs.features import FeatureNames, widths_of
from muster.envs.registry import kind_of, make
from muster.envs.vector import BatchEnv
from muster.errors import InputError, MissingExtraError
from muster.learning.actor import Actor, DirectActor
from muster.learning.learner import WEIGHTS, Setup, stream
from muster.learning.settings import TrainSettings
from muster.learning.statistics import EPISODES, with_statistics
from muster.models import Form, PairScale
from muster.models.custom import needs_torch
from muster.models.spec import ModelSpec
from muster.policy.names import load
from muster.settings import differences


def make_env(settings: TrainSettings, name: str, n_envs: int) -> BatchEnv:
    """An environment that shows what the model of the settings reads, with one thread.

    Several runs share a machine better than one run its threads.
    """
    env = make(name, n_envs, settings.seed)
    # Costs of routes are best learned as a correction of distances.
    prior = settings.inference == "routes" and settings.prior
    env.show(pair_features=settings.form != "paper", planes=settings.model == "pem", prior=prior)
    env.threads = 1
    return env


def prepare(settings: TrainSettings, times: int = 1) -> Setup:
    """Environments, model and inference of a run. The environments share the slots evenly, `times` as many for ES."""
    count, slots = len(settings.envs), settings.shared
    sizes = [slots // count + (k < slots % count) for k in range(count)]
    envs = [make_env(settings, name, times * size) for name, size in zip(settings.envs, sizes, strict=True)]
    spec, assign_all = _common(settings, envs)
    assert settings.inference is not None
    # LP is the paper's relaxation, rounded; a policy may be given another effort afterwards (`with_inference`).
    effort: Effort = "paper" if settings.inference == "lp" else "fast"
    inference = InferenceSettings(settings.inference, effort, assign_all=assign_all)
    if settings.model == "linear":
        spec = _normalised(settings, spec, inference)
    header: dict[str, Any] = {"env": settings.envs[0]}
    header |= {"envs": list(settings.envs)} if count > 1 else {}
    header |= {"features": _feature_names(envs[0])}
    header |= {"from": settings.from_policy} if settings.from_policy else {}
    return Setup(envs, spec, inference, header, settings.seed, partial(make_actor, settings, spec))


def make_actor(settings: TrainSettings, spec: ModelSpec, batch_statistics: bool = False, **options: Any) -> Actor:
    """The scoring model of a run; other models than direct and linear ones need torch."""
    rng = stream(settings.seed, WEIGHTS)
    if spec.kind in ("dm", "linear"):
        return DirectActor(spec, rng, **options)
    if not needs_torch(spec.kind):
        raise InputError(
            f"{spec.kind} is no torch module, so there are no gradients for {settings.learner} to follow; use "
            "--learner es, or make it one"
        )
    try:
        from muster.learning.torch_actor import TorchActor
    except ImportError:
        raise MissingExtraError(f"a {spec.kind} model", "torch", "use --model dm") from None
    return TorchActor(spec, settings.seed, rng, batch_statistics=batch_statistics, **options)


def _feature_names(env: BatchEnv) -> dict[str, list[str]]:
    """Feature names of the environment; InputError unless there are as many as features."""
    names = env.feature_names()
    FeatureNames.of(widths_of(env.observe()), names, env.name)
    return {kind: list(own) for kind, own in names.items()}


def _normalised(settings: TrainSettings, spec: ModelSpec, inference: InferenceSettings) -> ModelSpec:
    """The linear model with statistics of its features: those of the policy it starts from, or measured ones."""
    if settings.from_policy is not None:
        old = load(settings.from_policy).spec
        if old.kind == "linear":
            same = ("context_features", "prior_unit", "products", "h_statistics", "g_statistics")
            return dataclasses.replace(spec, **{name: getattr(old, name) for name in same})
    envs = [make_env(settings, name, EPISODES) for name in settings.envs]
    return with_statistics(spec, envs, inference, settings.seed)


def _common(settings: TrainSettings, envs: Sequence[BatchEnv]) -> tuple[ModelSpec, bool]:
    """One model for all environments, and assign_all; InputError where one policy cannot act in all of them."""
    candidates: list[tuple[ModelSpec, bool]] = []
    assert settings.model is not None
    for env in envs:
        if settings.form == "centred" and not env.positions:
            raise InputError(f"{env.name} names no positions to measure from the middle; leave out --form centred")
        centred = env.positions if settings.form == "centred" else ()
        with_g = reads_task_scores(str(settings.inference))
        observation = env.observe()
        options = model_options(settings, env, observation) | {"learned": settings.learned}
        spec = ModelSpec.of(observation, settings.model, with_g, centred=centred, prior=settings.prior, **options)
        candidates.append((spec, settings.assign_all if settings.assign_all is not None else not env.idling))
    first_spec, first_assign_all = candidates[0]
    for env, (spec, assign_all) in zip(envs, candidates, strict=True):
        if kind_of(env.name) != kind_of(envs[0].name):
            raise InputError(f"a policy learns on environments of one kind; {envs[0].name} and {env.name} are of two")
        if gaps := differences(first_spec, spec):
            reasons = "; ".join(f"{name} {one} and {other}" for name, one, other in gaps)
            raise InputError(f"one model cannot read both {envs[0].name} and {env.name}: {reasons}")
        if assign_all != first_assign_all:
            raise InputError(
                f"idling is a choice in only one of {envs[0].name} and {env.name}; say --assign-all True or False"
            )
    spec = first_spec
    if spec.task_scores:
        sizes = [env.n_agents for env in envs]
        fewest = min(sizes) if all(env.agents_stay for env in envs) else 0
        scale = choose_pair_scale(settings, envs)
        spec = dataclasses.replace(spec, trained_agents=max(sizes), fewest_agents=fewest, pair_scale=scale)
    return spec, first_assign_all


def form_of(settings: TrainSettings, env: BatchEnv) -> Form:
    """The form of the settings, or the default: local for a context model where there are distances, else plain."""
    if settings.form is not None:
        return settings.form
    return "local" if settings.model == "context" and names_distances(env) else "plain"


def names_distances(env: BatchEnv) -> bool:
    """Whether the environment says which of its pair features are distances."""
    return len(env.distances) == 2 and env.distance_unit > 0


def model_options(settings: TrainSettings, env: BatchEnv, observation: BatchObservation) -> dict[str, Any]:
    """Fields of ModelSpec that follow from an environment, beyond the widths of its features."""
    options = local_form(env, observation) if form_of(settings, env) == "local" else {}
    if settings.model != "context":
        return options
    options["places"] = env.positions
    # Only an environment that shows its pairs shows their distances.
    if names_distances(env) and observation.pair_features.shape[-1]:
        options |= {"distances": env.distances, "distance_unit": env.distance_unit}
    return options


def local_form(env: BatchEnv, observation: BatchObservation) -> dict[str, Any]:
    """Fields of ModelSpec for a model without positions on the map: the columns that are positions and distances."""
    if not names_distances(env):
        raise InputError(
            f"{env.name} does not say which of its pair features are distances (distances, distance_unit): "
            "leave out --form local"
        )
    return {
        "blind": env.positions,
        "distances": env.distances,
        "distance_unit": env.distance_unit,
        "distance_prior": observation.prior is None,
    }


def choose_pair_scale(settings: TrainSettings, envs: Sequence[BatchEnv]) -> PairScale:
    """Scaling of g by which it generalises to other sizes."""
    if settings.inference == "routes":
        # Costs of going from task to task do not depend on the number of agents.
        return "none"
    # The gradients of ppo and a2c leave out the factor on g, so it must be 1 in training.
    if settings.learner not in ("ppo", "a2c") and form_of(settings, envs[0]) == "local":
        return "fade"
    return "size"
