"""Learned policies: scoring model, optional exploration noise, and coordination inference."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from muster.assign.routes import RouteMemory
from muster.assign.settings import InferenceSettings
from muster.assign.solver import Solver
from muster.assign.switching import ALONE
from muster.custom import is_custom
from muster.data import BatchObservation, Floats32, Ints
from muster.envs.env import Observation
from muster.envs.features import FeatureNames
from muster.envs.padding import observation_of
from muster.envs.registry import BUILT_IN, kind_of, make
from muster.envs.vector import BatchEnv, Policy, State
from muster.errors import InputError, MissingExtraError, MusterError
from muster.models.context_model import ContextModel
from muster.models.custom_model import CustomModel
from muster.models.direct import init_parameters, make_model
from muster.models.spec import ModelSpec, Parameters, Scores
from muster.policy.decision import Decision, Scorer, decide, read_observation, score
from muster.policy.files import PolicyFile, read_policy, write_policy
from muster.policy.noise import ScoreNoise, draw_exponentials, draw_normals, standard_gumbels
from muster.policy.settings import PAPER_NOISE, NoiseSettings, RolloutSettings
from muster.rng import NOISE_STREAM, Seeds
from muster.settings import refuse_unknown

if TYPE_CHECKING:
    from muster.models.tensors import TensorModel

PRIOR = "prior"
"""Name of the policy whose scores are the environment's prior."""
PLAIN: dict[str, Any] = {"kind": "dm", "context_features": (), "products": False}
PLAIN |= {"h_statistics": None, "g_statistics": None}
"""Fields of ModelSpec for a model of a prior alone."""
Critic = Callable[[BatchObservation], NDArray[np.floating]]
"""State values [B]."""


class LearnedPolicy(Policy):
    """A trained policy, observation -> scores -> assignment. Direct, linear and context models need no torch.

    A policy is immutable (`variant` makes another), except for the noise and routes of episodes in progress.
    """

    def __init__(
        self,
        name: str,
        spec: ModelSpec,
        parameters: Parameters,
        inference: InferenceSettings,
        noise: NoiseSettings,
        header: dict[str, Any] | None = None,
        noisy: bool = False,
        rollouts: RolloutSettings | None = None,
        critic: Critic | None = None,
    ) -> None:
        self.name = name
        self.spec = spec
        self.parameters = parameters
        self.inference = inference
        self.noise = noise
        self.header = header or {}
        self.noisy = noisy
        """Whether it acts with the exploration noise of its training."""
        if noisy and rollouts:
            raise InputError("look-ahead tries moves of its own: it has no use for the exploration noise of training")
        self.rollouts = rollouts
        """Settings of look-ahead in its environment (`muster.policy.lookahead`); None: no look-ahead."""
        self.critic = critic
        """State values at the horizon of look-ahead."""
        self.solver = Solver.of(inference)
        self._plans: RouteMemory | None = None
        """Routes of the episodes in progress (method routes)."""
        self._scorer: Scorer | None = None
        self._states: Seeds = np.zeros(0, np.uint64)
        self._exploration: ScoreNoise | None = None

    def variant(self, **changes: Any) -> Self:
        """The same policy with some of the constructor's arguments changed."""
        names = ("name", "spec", "parameters", "inference", "noise", "header", "noisy", "rollouts", "critic")
        copy = type(self)(**{name: getattr(self, name) for name in names} | changes)
        if not changes.keys() & {"spec", "parameters"}:
            copy._scorer = self._scorer
        return copy

    def save(self, path: str | Path) -> None:
        """Write the policy to a file that `muster.load` reads, replacing an existing one atomically."""
        write_policy(path, PolicyFile(self.name, self.spec, self.parameters, self.inference, self.noise, self.header))

    def to_torch(self) -> TensorModel:
        """The scoring model as a torch module from plain tensors to h, and g if it has one; `inputs` names them."""
        try:
            from muster.models.tensors import TensorModel
        except ImportError:
            raise MissingExtraError("to_torch", "torch") from None
        return TensorModel(self.spec, self.parameters)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a policy file, or the best policy of a run's folder."""
        return cls(*read_policy(path))

    def with_noise(self) -> Self:
        """The same policy with the exploration noise of its training."""
        return self.variant(noisy=True)

    def with_rollouts(self, rollouts: int | None = None, critic: Critic | None = None, **settings: Any) -> Self:
        """The same policy with look-ahead: `rollouts` candidates a decision, or as many as `until` seconds allow.

        `settings` are further ones of `RolloutSettings`: futures, horizon, candidates, size. `critic` is a function
        from an observation to state values [B] at the horizon (`muster.policy.files.run_critic`). Such a policy acts in
        `muster.evaluate` and wherever else there is an environment to copy.
        """
        refuse_unknown(RolloutSettings, settings)
        return self.variant(rollouts=RolloutSettings(rollouts, **settings), critic=critic or self.critic)

    def with_inference(self, **changes: Any) -> Self:
        """The same scores under other inference settings, such as effort="best"."""
        if changes.get("method") == "routes" and self.inference.method != "routes":
            raise InputError(
                f"{self.name} learned its scores for {self.inference.method!r}: they are no costs of going from task "
                "to task, so there are no routes to make of them"
            )
        if changes.get("method") == "quad" and not self.spec.task_scores:
            raise InputError(
                f"{self.name} has no scores for pairs of tasks (g): for 'quad' it would have to learn some"
            )
        refuse_unknown(InferenceSettings, changes)
        return self.variant(inference=dataclasses.replace(self.inference, **changes))

    def without_task_scores(self) -> Self:
        """A QUAD policy's h alone under LP, to measure what its g contributes."""
        return self.variant(
            spec=dataclasses.replace(self.spec, task_scores=False),
            parameters={name: array for name, array in self.parameters.items() if not name.startswith("g.")},
            inference=dataclasses.replace(self.inference, method="lp", effort="paper"),
        )

    def reset(self, slots: Ints, seeds: Seeds) -> None:
        """Begin episodes in these slots: their noise follows from their seeds, and they have no routes yet."""
        if self.inference.method == "routes":
            self._plans = self._plans or RouteMemory(self.solver)
            self._plans.forget(np.asarray(slots))
        if not self.noisy:
            return
        self._make_room(int(np.max(slots, initial=-1)) + 1)
        self._states[slots] = np.asarray(seeds, np.uint64) ^ NOISE_STREAM
        if self._exploration is not None:
            self._exploration.reset(slots)

    def get_memory(self) -> State:
        """Routes of the episodes in progress, if any; not the noise."""
        return {} if self._plans is None else {"routes": self._plans.routes.copy()}

    def set_memory(self, memory: State) -> None:
        """Restore what `get_memory` returned."""
        if "routes" in memory:
            self._plans = self._plans or RouteMemory(self.solver)
            self._plans.routes = np.array(memory["routes"], np.int64)

    @property
    def scorer(self) -> Scorer:
        """The scoring model, made when first used."""
        if self._scorer is None:
            self._scorer = make_scorer(self.spec, self.parameters)
        return self._scorer

    def scores(self, observation: BatchObservation) -> tuple[Floats32, Floats32 | None]:
        """h [B, N, M] and g [B, M, M], without noise."""
        return score(self.spec.read(observation), self.spec, self.scorer)

    def read(self, observation: BatchObservation, env: str = "what is observed") -> BatchObservation:
        """The observation as the model reads it, with learned capacities and contributions in place."""
        return read_observation(observation, self.spec, self.scorer, env=env)

    def score(self, read: BatchObservation) -> tuple[Floats32, Floats32 | None]:
        """h and the scaled g of an observation from `read`."""
        return score(read, self.spec, self.scorer)

    @overload
    def act(self, observation: BatchObservation) -> Ints: ...
    @overload
    def act(self, observation: Observation) -> Ints: ...
    @overload
    def act(self, observation: Sequence[Observation]) -> list[Ints]: ...
    @overload
    def act(self, **fields: ArrayLike) -> Ints: ...

    def act(self, observation: Any = None, **fields: Any) -> Ints | list[Ints]:
        """The assignment: a task index for each agent, -1 for none.

        Of a `BatchObservation` an assignment [B, N]; of one `Observation`, or of its fields as keywords, one [N]; of
        several observations, whose sizes may differ, a list of them.
        """
        if self.rollouts:
            raise InputError(
                f"{self.name} looks ahead, for which it needs the environment and not just a view of it: give it to "
                "muster.evaluate, or make a muster.policy.lookahead.LookAhead for an environment"
            )
        if isinstance(observation, BatchObservation):
            if fields:
                raise InputError(f"an observation is complete: {', '.join(fields)} cannot be given beside it")
            return self.decide(observation).assignment
        if observation is None or isinstance(observation, Observation):
            return self._act_on([_view(observation, fields)])[0]
        several = observation if isinstance(observation, (list, tuple)) else [observation]
        return self._act_on([_view(view, fields) for view in several])

    def actions(self, observation: BatchObservation) -> Ints:
        """As `act`, with `IDLE` for agents that prefer to do nothing, for an environment that reads reasons."""
        return self.decide(observation).actions(with_reasons=True)

    def decide(self, observation: BatchObservation) -> Decision:
        """Assignments with the scores that led to them."""
        explore = partial(self._explore, observation) if self.noisy else None
        return decide(observation, self.spec, self.scorer, self._plans or self.solver, explore)

    def _act_on(self, views: list[Observation]) -> list[Ints]:
        if not views:
            return []
        for view in views:
            if view.switch_cost is not None and view.previous is None and np.any(view.switch_cost):
                raise InputError(ALONE)
        sizes = [len(np.asarray(view.agent_features)) for view in views]
        assignment = self.act(observation_of(views, widths=self.spec.widths))
        return [row[:size] for row, size in zip(assignment, sizes, strict=True)]

    def _explore(self, observation: BatchObservation, scores: Scores) -> Scores:
        batch, n, m = scores[0].shape
        self._make_room(batch)
        if self._exploration is None or self._exploration.h.total.shape != (batch, n, m):
            self._exploration = ScoreNoise(self.noise, batch, n, m, self.spec.task_scores)
        self._exploration.track(observation)
        states = self._states[:batch]

        gumbel = self._exploration.gumbel

        def draw(shape: tuple[int, ...]) -> Floats32:
            if gumbel:
                return standard_gumbels(draw_exponentials(states, int(np.prod(shape[1:])))).reshape(shape)
            return draw_normals(states, int(np.prod(shape[1:]))).reshape(shape)

        return self._exploration.add(scores, draw)[0]

    def _make_room(self, slots: int) -> None:
        if slots > len(self._states):
            self._states = np.concatenate([self._states, np.zeros(slots - len(self._states), np.uint64)])
            self._exploration = None

    def __repr__(self) -> str:
        lines = [f"{name:11}{value}" for name, value in self.facts().items()]
        return "\n  ".join([f"LearnedPolicy {self.name}", *lines])

    def _repr_html_(self) -> str:
        from html import escape

        rows = [f"<tr><th>{name}</th><td>{escape(value)}</td></tr>" for name, value in self.facts().items()]
        return f"<table><caption>LearnedPolicy {escape(self.name)}</caption>{''.join(rows)}</table>"

    def facts(self) -> dict[str, str]:
        """Facts about the policy by name: model, inference, training, features."""
        spec, inference, header = self.spec, self.inference, self.header
        size = sum(array.size for array in self.parameters.values())
        trained = [", ".join(header.get("envs", [])) or str(header.get("env", "unknown"))]
        trained += [f"by {header['learner']}"] if "learner" in header else []
        trained += [f"for {header['steps']:,} steps"] if "steps" in header else []
        widths = {"agent": spec.agent_width, "task": spec.task_width, "pair": spec.pair_width}
        widths |= {"task-pair": spec.task_pair_width, "global": spec.global_width}
        return {
            "model": f"{spec.kind}, {size:,} numbers, {'h and g' if spec.task_scores else 'h'}"
            + (", on top of the environment's prior" if spec.corrects else "")
            + (f", {' and '.join(spec.learned)} learned" if spec.learned else "")
            + (", no capacities" if spec.unlimited else ""),
            "inference": inference.method
            + ("" if is_custom(inference.method) else f", effort {inference.effort}")
            + (", every agent assigned" if inference.assign_all else ", idling allowed")
            + (", with noise" if self.noisy else "")
            + (f", {self.rollouts}" if self.rollouts else ""),
            "trained on": " ".join(trained),
            "features": ", ".join(f"{width} {name}" for name, width in widths.items() if width)
            + (", positions from the middle" if spec.centred else ""),
        }


def adapt(policy: LearnedPolicy, env: BatchEnv) -> BatchEnv:
    """Make `env` show what the policy reads; InputError for another kind of environment or other features."""
    trained_on = str(policy.header.get("env", env.name))
    kinds = {kind_of(trained_on), kind_of(env.name)}
    if len(kinds) > 1 and "log" not in kinds:
        raise InputError(f"{policy.name} was trained on {trained_on}; it cannot run on {env.name}")
    env.show(**policy.spec.shown)
    policy.spec.read(env.observe(), env.name)
    return env


def _view(view: Any, fields: dict[str, Any]) -> Observation:
    """The observation itself, or one made of keyword arguments."""
    if isinstance(view, Observation) and not fields:
        return view
    if view is not None:
        beside = f" beside {', '.join(fields)}" if fields else ""
        raise InputError(
            f"act takes an observation, a view, a list of views, or fields of one; got {view!r:.80}{beside}"
        )
    refuse_unknown(Observation, fields, "field of a view")
    if not {"agent_features", "task_features"} <= fields.keys():
        raise InputError("a situation needs at least agent_features [N, Fa] and task_features [M, Ft]")
    return Observation(**fields)


def features_of(policy: LearnedPolicy) -> FeatureNames:
    """Names of the features that a policy reads, from its file or else from its training environment."""
    spec = policy.spec
    widths = {
        "agent": spec.agent_width,
        "task": spec.task_width,
        "pair": spec.pair_width,
        "task_pair": spec.task_pair_width,
        "global": spec.global_width,
    }
    return FeatureNames.of(widths, policy.header.get("features") or _features_of_env(policy), policy.name)


def _features_of_env(policy: LearnedPolicy) -> dict[str, tuple[str, ...]]:
    """Feature names of a built-in training environment; no code or file that a header names is loaded."""
    name = str(policy.header.get("env", ""))
    if kind_of(name) not in BUILT_IN or kind_of(name) == "log":
        return {}
    try:
        env = make(name)
        env.show(pair_features=policy.spec.pair_width > 0)
        return {kind: tuple(names) for kind, names in env.feature_names().items()}
    except MusterError:
        return {}


def prior_policy(
    env: BatchEnv, inference: InferenceSettings | None = None, spec: ModelSpec | None = None
) -> LearnedPolicy:
    """The policy `prior`: the inference on the environment's prior, with corrections that are all 0.

    `spec` may be that of a model that corrects the prior. `inference` is by default quad for an environment with a
    task_prior, and lp for others.
    """
    if spec is None or not spec.corrects:
        env.show()
        observation = env.observe()
        if observation.prior is None:
            raise InputError(
                f"{env.name} shows no prior for the policy 'prior' to go by; a custom environment gives one as "
                "Observation(prior=...), [N, M]"
            )
        with_g = observation.task_prior is not None if inference is None else inference.method == "quad"
        spec = ModelSpec.of(observation, "dm", with_g)
    spec = dataclasses.replace(spec, **PLAIN, pair_scale="none", learned=())
    if inference is None:
        inference = InferenceSettings("quad" if spec.task_scores else "lp", "fast", assign_all=not env.idling)
    parameters = init_parameters(spec, np.random.default_rng(0))
    return LearnedPolicy(PRIOR, spec, parameters, inference, PAPER_NOISE, {"env": env.name})


def make_scorer(spec: ModelSpec, parameters: Parameters) -> Scorer:
    """The scoring model of a policy; imports a custom one."""
    if is_custom(spec.kind):
        return CustomModel(spec, parameters)
    if spec.kind in ("dm", "linear"):
        return make_model(spec, parameters, spec.task_scores)
    if spec.kind == "context":
        return ContextModel(spec, parameters)
    try:
        import torch  # noqa: F401
    except ImportError:
        raise MissingExtraError(f"a {spec.kind} policy", "torch") from None
    from muster.models.torch_networks import network_from

    return network_from(spec, parameters).scores
