"""Specification of a scoring model: everything needed to make one, apart from its parameters."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Annotated, Any, get_args

import numpy as np

from muster.custom import is_custom
from muster.data import BatchObservation, Floats, Floats32, Ints
from muster.errors import InputError, UnknownNameError
from muster.models import ContextFeature, Learned, ModelKind, PairScale
from muster.models.context_features import with_context
from muster.settings import AtLeast, Between, Positive, check_fields

Parameters = dict[str, Floats32]
"""Arrays of a scoring model by name."""
Scores = tuple[Floats32, Floats32 | None]
"""h [B, N, M], and g [B, M, M] if the model has one."""
DISTANCE_WEIGHT = 0.5
"""Cost of a unit of distance in a prior made of distances."""
Width = Annotated[int, Between(0, 4096)]


@dataclass(frozen=True, slots=True)
class Statistics:
    """Means and standard deviations of a linear model's features, over pairs of training episodes."""

    unit: Annotated[float, Positive()]
    """Standard deviation of the prior; without one 1, and for g that of h divided by the number of agents."""
    means: tuple[float, ...]
    deviations: tuple[Annotated[float, AtLeast(0)], ...]
    """Standard deviations; a column of 0 has no influence."""

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """Kind, sizes and inputs of a scoring model; checked when made."""

    kind: ModelKind | str
    """dm: scores from the features of the two objects; pem: with an embedding of their cells from a CNN as well;
    context: with a token of each that has listened to all others (context.py); linear: the prior and a weighted sum
    of features (linear.py); package.module:Class is a custom one (custom.py)."""
    task_scores: bool
    """Whether there is a g (QUAD) beside h."""
    agent_width: Width
    """Features of an agent, of a task, of an agent-task pair and of a task-task pair."""
    task_width: Width
    pair_width: Width
    task_pair_width: Width
    hidden: Width = 32
    planes: Width = 0
    """Input planes of the CNN (pem)."""
    embedding: Width = 16
    """Values a cell gets from the CNN, half for agents and half for tasks (pem)."""
    channels: Width = 32
    blocks: Width = 3
    centred: tuple[int, ...] = ()
    """Features of agents and tasks that the model reads as differences from their mean over all that live."""
    global_width: Width = 0
    """Features of the whole environment, which every pair reads beside those of its left object."""
    prior: bool = False
    """Whether h is a correction: scale · (the environment's prior) + network, and likewise g."""
    task_prior: bool = False
    pair_scale: PairScale = "none"
    """By what the learned part of g is multiplied: nothing, agents in training / agents alive, or what fades with
    distance."""
    trained_agents: Width = 0
    """Agents of the largest environment that it was trained in; 0: not known."""
    fewest_agents: Width = 0
    """Agents that were always alive in training; 0: any number of them may have been missing."""
    blind: tuple[int, ...] = ()
    """Features of agents and tasks that the model does not read: where they are on the map."""
    distances: tuple[int, ...] = ()
    """Columns of the pair and task-pair features that are distances."""
    distance_unit: Annotated[float, AtLeast(0)] = 0.0
    """The shortest distance that matters, such as a cell."""
    distance_prior: bool = False
    """Whether the prior that h corrects is made of distances: -0.5 a unit."""
    places: tuple[int, ...] = ()
    """Features of agents and tasks that are positions, of which relations between any two are made (context)."""
    context: Width = 32
    """Values of the token of an agent or a task (context)."""
    heads: Width = 4
    """Ways to weigh who speaks, each for its part of the values (context)."""
    rounds: Width = 2
    """Rounds of attention among the tokens (context)."""
    learned: tuple[Learned, ...] = ()
    """Limits that are learned in place of the environment's (limits.py; dm)."""
    unlimited: bool = False
    """Whether the environment's capacities are left out."""
    context_features: tuple[ContextFeature, ...] = ()
    """Pair features that are made of the observation, behind those of the environment (context_features.py)."""
    prior_unit: Annotated[float, Positive()] = 1.0
    """Standard deviation of the prior, in which context features are measured."""
    products: bool = False
    """Whether features are multiplied by those of the environment (linear)."""
    h_statistics: Statistics | None = None
    """Statistics of the features of h (linear)."""
    g_statistics: Statistics | None = None
    """Statistics of the features of g (linear)."""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.kind not in get_args(ModelKind) and not is_custom(self.kind):
            raise UnknownNameError("model", self.kind, get_args(ModelKind))
        for name, chosen in (("centred", self.centred), ("blind", self.blind), ("places", self.places)):
            if not all(0 <= k < min(self.agent_width, self.task_width) for k in chosen):
                raise InputError(f"{name} of a model must name features of both agents and tasks, got {chosen}")
        if self.distances and not (
            len(self.distances) == 2
            and 0 <= self.distances[0] < self.pair_width
            and (not self.task_scores or 0 <= self.distances[1] < self.task_pair_width)
        ):
            raise InputError(
                f"distances of a model must be a pair feature of {self.pair_width} and a task-pair feature of "
                f"{self.task_pair_width}, got {self.distances}"
            )
        if self.pair_scale == "size" and not self.trained_agents:
            raise InputError("pairs are scaled by size only where the size in training is known (trained_agents)")
        if (self.pair_scale == "fade" or self.distance_prior) and not (self.distances and self.distance_unit > 0):
            raise InputError("a model that goes by distances needs to know their columns and their unit")
        if self.learned and (self.kind != "dm" or self.unlimited):
            raise InputError("capacities and contributions are learned by a direct model (dm) that respects capacities")
        if self.hidden < 1 or (self.kind == "pem" and (self.embedding < 2 or self.embedding % 2)):
            raise InputError("a model needs hidden units, and a pem an even embedding of 2 or more")
        if self.kind == "context" and (self.heads < 1 or self.context < 1 or self.context % self.heads):
            raise InputError(
                f"the values of a token are shared out among the heads of a context model: {self.context} cannot be "
                f"among {self.heads}"
            )
        for net, columns, found in (("h", self.h_columns, self.h_statistics), ("g", self.g_columns, self.g_statistics)):
            if found is not None and not len(found.means) == len(found.deviations) == columns:
                raise InputError(f"{net} of a linear model has {columns} columns, and statistics of {len(found.means)}")
        if self.context_features and self.kind not in ("dm", "linear"):
            raise InputError(f"context features are read by direct and linear models (dm, linear), not {self.kind}")
        if self.products and not self.global_width:
            raise InputError("products are with features of the environment, and the model reads none")

    @classmethod
    def of(
        cls,
        observation: BatchObservation,
        kind: ModelKind | str,
        task_scores: bool,
        centred: tuple[int, ...] = (),
        prior: bool = True,
        **more: Any,
    ) -> ModelSpec:
        """Specification of a model for this observation; with `prior` it corrects the environment's scores, if any."""
        planes = 0
        if kind == "pem":
            if observation.planes is None:
                raise InputError("the positional model (pem) needs an environment with feature planes; use dm here")
            planes = observation.planes.shape[1]
        return cls(
            kind=kind,
            task_scores=task_scores,
            agent_width=observation.agent_features.shape[-1],
            task_width=observation.task_features.shape[-1],
            pair_width=observation.pair_features.shape[-1],
            task_pair_width=observation.task_pair_features.shape[-1],
            planes=planes,
            centred=centred,
            global_width=_global_width(observation),
            prior=prior and (observation.prior is not None or more.get("distance_prior", False)),
            task_prior=prior and task_scores and observation.task_prior is not None,
            **more,
        )

    @property
    def widths(self) -> dict[str, int]:
        """Widths of the features that the model reads, by the observation's fields."""
        return {
            "agent_features": self.agent_width,
            "task_features": self.task_width,
            "pair_features": self.pair_width,
            "task_pair_features": self.task_pair_width,
        }

    def check(self, observation: BatchObservation, env: str) -> None:
        """Raise InputError unless the observation has the features that the model reads."""
        widths = {field: (wanted, getattr(observation, field).shape[-1]) for field, wanted in self.widths.items()}
        widths["global_features"] = self.global_width, _global_width(observation)
        for field, (wanted, got) in widths.items():
            if wanted != got:
                name = field.removesuffix("_features").replace("_", "-")
                hint = "; call env.show(pair_features=True)" if "pair" in name and not got else ""
                raise InputError(f"the model reads {wanted} {name} features but {env} has {got}{hint}")
        unseen = self.reads_prior and observation.prior is None
        if unseen or (self.task_prior and observation.task_prior is None):
            raise InputError(f"the model corrects a prior score, which {env} does not show; call env.show(prior=True)")
        if self.kind == "pem" and (observation.planes is None or observation.agent_cells is None):
            raise InputError(
                f"the positional model (pem) reads feature planes and cells, which {env} does not show; "
                "call env.show(planes=True)"
            )

    def read(self, observation: BatchObservation, env: str = "what is observed") -> BatchObservation:
        """The observation as the model reads it: other features dropped, positions centred or blinded, priors computed.

        Raises InputError where features that the model reads are missing.
        """
        observation = self._trimmed(observation)
        self.check(observation, env)
        # A context model reads positions only to see how far others are.
        if self.blind and self.kind != "context":
            observation = self._blinded(observation)
        if self.unlimited:
            observation = dataclasses.replace(observation, capacities=np.full_like(observation.capacities, np.inf))
        if self.distance_prior:
            far = observation.pair_features[..., self.distances[0]].astype(np.float64)
            observation = dataclasses.replace(observation, prior=-DISTANCE_WEIGHT / self.distance_unit * far)
        if self.centred:
            observation = self._centred(observation)
        if self.context_features:
            observation = with_context(observation, self.context_features, self.prior_unit)
        return observation

    def _blinded(self, observation: BatchObservation) -> BatchObservation:
        columns = list(self.blind)
        agents, tasks = observation.agent_features.copy(), observation.task_features.copy()
        agents[:, :, columns] = 0.0
        tasks[:, :, columns] = 0.0
        return dataclasses.replace(observation, agent_features=agents, task_features=tasks)

    def _centred(self, observation: BatchObservation) -> BatchObservation:
        columns = _consecutive(self.centred)
        alive = np.concatenate([observation.agent_alive, observation.task_alive], axis=1)[:, :, None]
        both = observation.agent_features[:, :, columns], observation.task_features[:, :, columns]
        values = np.concatenate(both, axis=1, dtype=np.float64)
        mean = (values * alive).sum(1, keepdims=True) / np.maximum(alive.sum(1, keepdims=True), 1)
        values = np.where(alive, values - mean, values)
        agents, tasks = observation.agent_features.copy(), observation.task_features.copy()
        agents[:, :, columns] = values[:, : agents.shape[1]]
        tasks[:, :, columns] = values[:, agents.shape[1] :]
        return dataclasses.replace(observation, agent_features=agents, task_features=tasks)

    def _trimmed(self, observation: BatchObservation) -> BatchObservation:
        """The observation without blocks of features that the model does not read."""
        if not (self.pair_width or self.task_pair_width):
            nothing = observation.pair_features[..., :0], observation.task_pair_features[..., :0]
            observation = dataclasses.replace(observation, pair_features=nothing[0], task_pair_features=nothing[1])
        if is_custom(self.kind) and not self.corrects:
            observation = dataclasses.replace(observation, prior=None, task_prior=None)
        if observation.global_features is not None and not self.global_width:
            observation = dataclasses.replace(observation, global_features=None)
        return observation

    @property
    def shown(self) -> dict[str, bool]:
        """Keyword arguments of `BatchEnv.show` for this model."""
        pairs = self.pair_width > 0 or self.task_pair_width > 0
        return {"pair_features": pairs, "planes": self.kind == "pem", "prior": self.reads_prior or self.task_prior}

    @property
    def extra(self) -> int:
        """Width of the embedding or token that is appended to each object's features."""
        return {"pem": self.embedding // 2, "context": self.context}.get(self.kind, 0)

    @property
    def h_columns(self) -> int:
        """Number of features in h of a linear model."""
        pairs = self.pair_width + len(self.context_features) + self.prior
        return self.agent_width + self.task_width + pairs + self.global_width

    @property
    def g_columns(self) -> int:
        """Number of features in g of a linear model."""
        return self.task_width + self.task_pair_width

    @property
    def reads_prior(self) -> bool:
        """Whether the model reads the environment's prior; one of distances is computed from features instead."""
        return self.prior and not self.distance_prior

    @property
    def corrects(self) -> bool:
        """Whether the model's scores are corrections of a prior."""
        return self.prior or self.task_prior

    def pair_share(self, agents: Ints) -> Floats:
        """Factor of the learned scores of two tasks among so many living agents (pair_scale "size")."""
        return np.clip(agents, self.fewest_agents, self.trained_agents) / np.maximum(agents, 1)

    def as_dict(self) -> dict[str, Any]:
        """The specification as plain values."""
        return dataclasses.asdict(self)


def _consecutive(columns: tuple[int, ...]) -> slice | list[int]:
    """The columns, as a slice where they are consecutive: numpy copies those in half the time."""
    first, end = columns[0], columns[0] + len(columns)
    return slice(first, end) if columns == tuple(range(first, end)) else list(columns)


def _global_width(observation: BatchObservation) -> int:
    return 0 if observation.global_features is None else observation.global_features.shape[-1]
