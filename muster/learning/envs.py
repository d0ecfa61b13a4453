"""The environments of a run and the model that reads all of them."""

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
    """An environment of the settings that shows what the model reads, on one core.

    Several runs share a machine better than one run its threads.
    """
    env = make(name, n_envs, settings.seed)
    # Costs of routes are best learned as what distances leave out.
    prior = settings.inference == "routes" and settings.prior
    env.show(pair_features=settings.form != "paper", planes=settings.model == "pem", prior=prior)
    env.threads = 1
    return env


def prepare(settings: TrainSettings, times: int = 1) -> Setup:
    """The environments of a run, among which the learner's slots are divided evenly, each `times`; and the model."""
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
    """Those that the environment gives; InputError where they are not as many as its features."""
    names = env.feature_names()
    FeatureNames.of(widths_of(env.observe()), names, env.name)
    return {kind: list(own) for kind, own in names.items()}


def _normalised(settings: TrainSettings, spec: ModelSpec, inference: InferenceSettings) -> ModelSpec:
    """The linear model with statistics of what it reads: those of the policy that the run goes on from, or new ones."""
    if settings.from_policy is not None:
        old = load(settings.from_policy).spec
        if old.kind == "linear":
            same = ("context_features", "prior_unit", "products", "h_statistics", "g_statistics")
            return dataclasses.replace(spec, **{name: getattr(old, name) for name in same})
    envs = [make_env(settings, name, EPISODES) for name in settings.envs]
    return with_statistics(spec, envs, inference, settings.seed)


def _common(settings: TrainSettings, envs: Sequence[BatchEnv]) -> tuple[ModelSpec, bool]:
    """The model for all environments, and whether every agent is assigned; InputError where one policy cannot act in
    all of them.
    """
    found: list[tuple[ModelSpec, bool]] = []
    assert settings.model is not None
    for env in envs:
        if settings.form == "centred" and not env.positions:
            raise InputError(f"{env.name} names no positions to measure from the middle; leave out --form centred")
        centred = env.positions if settings.form == "centred" else ()
        with_g = reads_task_scores(str(settings.inference))
        observation = env.observe()
        more = model_options(settings, env, observation) | {"learned": settings.learned}
        spec = ModelSpec.of(observation, settings.model, with_g, centred=centred, prior=settings.prior, **more)
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
        sizes = [env.n_agents for env in envs]
        fewest = min(sizes) if all(env.agents_stay for env in envs) else 0
        scale = choose_pair_scale(settings, envs)
        spec = dataclasses.replace(spec, trained_agents=max(sizes), fewest_agents=fewest, pair_scale=scale)
    return spec, assign_all


def form_of(settings: TrainSettings, env: BatchEnv) -> Form:
    """What was asked for; a model that sees everyone needs no positions on the map where there are distances."""
    if settings.form is not None:
        return settings.form
    return "local" if settings.model == "context" and names_distances(env) else "plain"


def names_distances(env: BatchEnv) -> bool:
    """Whether the environment says which of its pair features are distances."""
    return len(env.distances) == 2 and env.distance_unit > 0


def model_options(settings: TrainSettings, env: BatchEnv, observation: BatchObservation) -> dict[str, Any]:
    """What a model of these settings must know of an environment beyond the widths of its features."""
    found = local_form(env, observation) if form_of(settings, env) == "local" else {}
    if settings.model != "context":
        return found
    found["places"] = env.positions
    # Only an environment that shows its pairs shows their distances.
    if names_distances(env) and observation.pair_features.shape[-1]:
        found |= {"distances": env.distances, "distance_unit": env.distance_unit}
    return found


def local_form(env: BatchEnv, observation: BatchObservation) -> dict[str, Any]:
    """What a model must know of an environment to read nothing that says where on the map: its columns."""
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
    """How g is scaled so that it generalises to other sizes."""
    if settings.inference == "routes":
        # Costs of going from task to task are what they are, however many agents there are.
        return "none"
    # The gradients of ppo and a2c know of no factor on g: there it must be 1 in training.
    if settings.learner not in ("ppo", "a2c") and form_of(settings, envs[0]) == "local":
        return "fade"
    return "size"
