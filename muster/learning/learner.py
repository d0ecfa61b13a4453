"""The interface between training loop and learner, and the parts that learners share: seeds, episodes, state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from muster.assign.settings import InferenceSettings
from muster.assign.solver import Solver
from muster.custom import naming
from muster.data import Ints
from muster.envs.vector import BatchEnv
from muster.errors import InputError
from muster.evaluation.episodes import Episodes, run_episodes
from muster.learning.metrics import Metrics
from muster.models.custom import needs_torch
from muster.models.direct import init_parameters, parameter_shapes
from muster.models.spec import ModelSpec, Parameters
from muster.policy.learned import LearnedPolicy
from muster.policy.settings import PAPER_NOISE, NoiseSettings
from muster.rng import Seeds, episode_seeds

if TYPE_CHECKING:
    from muster.learning.actor import Actor

Arrays = dict[str, NDArray[Any]]
State = tuple[Arrays, dict[str, Any]]
"""Checkpoint of a component, from which it resumes bit for bit: arrays, and values that JSON can hold."""

# Test sets are named by small seeds; those of training, of choosing a checkpoint and of reporting on it lie far from
# them and from each other.
TRAINING, VALIDATION, REPORT = 2**40, 2**41, 2**42
# Episode numbers of a run's environments begin this far apart.
ENV_OFFSET = 2**40
# Independent random streams of a run.
EXPLORATION, WEIGHTS, CANDIDATES, CRITIC, STATISTICS = 1, 2, 3, 4, 5


def stream(seed: int, use: int) -> np.random.Generator:
    """Random generator of a run for one purpose: EXPLORATION, WEIGHTS, …"""
    return np.random.default_rng([seed, use])


class Setup(NamedTuple):
    """Environments, model specification and inference of a run: the argument of every learner's constructor."""

    envs: list[BatchEnv]
    """Of `num_envs` slots in all."""
    spec: ModelSpec
    """Of the scoring model: `spec.read(observation)` is what it reads of an environment's observation."""
    inference: InferenceSettings
    header: dict[str, Any]
    """Header of the policy files that the run writes."""
    seed: int
    make_actor: Callable[..., Actor]
    """Makes the scoring model with its initial parameters and an optimiser; takes the keyword arguments of
    `DirectActor`."""

    def first_parameters(self) -> Parameters:
        """Initial parameters of the scoring model."""
        if needs_torch(self.spec.kind):
            return self.make_actor().parameters()
        return init_parameters(self.spec, stream(self.seed, WEIGHTS))


class Learner(ABC):
    """A learning algorithm: each `update` runs the environments and improves the scoring model.

    Its state can be saved between two updates. A custom learner is a class with `update`, `parameters` and `start`; its
    constructor takes `setup`, and options.
    """

    name: ClassVar[str] = "custom"
    last_is_best: ClassVar[bool] = False
    """Whether the last policy is the run's best, rather than the one with the highest reward in the log."""
    averages = False
    """Whether `parameters` are already averaged over the later half of the run."""
    noise: NoiseSettings = PAPER_NOISE
    """Exploration noise, kept in the policy file for evaluation with noise."""

    def __init__(self, setup: Setup) -> None:
        if not isinstance(setup, Setup):
            raise InputError("a learner is made by muster.train, which gives it its setup: give the class, or its name")
        self.envs, self.spec, self.inference, self.header, self.seed, _ = setup
        # One thread: several runs share a machine better than one run its threads.
        self.solver = Solver.of(self.inference, threads=1)
        self.rng = stream(self.seed, EXPLORATION)
        self.steps = 0
        """Environment steps so far: `run_episodes` counts them, other rollouts of a learner's own add theirs."""

    @abstractmethod
    def update(self, progress: float = 0.0) -> Metrics:
        """Run the environments and learn once; `progress` in [0, 1] is the share of the run that is over.

        Returns metrics for the log: numbers by name, among them `reward` (a mean over episodes) and `episodes`.
        """

    @abstractmethod
    def parameters(self) -> Parameters:
        """Copies of the scoring model's present parameters."""

    @abstractmethod
    def start(self, parameters: Parameters) -> None:
        """Set the scoring model's parameters, before the first update."""

    def policy(self) -> LearnedPolicy:
        """The present policy."""
        return self.policy_of(checked_parameters(self))

    def policy_of(self, parameters: Parameters) -> LearnedPolicy:
        """The policy of a scoring model with these parameters."""
        return LearnedPolicy(self.name, self.spec, parameters, self.inference, self.noise, self.header)

    def run_episodes(self, parameters: Parameters, first: int, count: int) -> list[Episodes]:
        """Training episodes `first` to first + count of every environment, by a model with these parameters."""
        policy = self.policy_of(parameters)
        results = [run_episodes(env, policy, self.seeds(first, count, k)) for k, env in enumerate(self.envs)]
        self.steps += sum(int(episodes.steps.sum()) for episodes in results)
        return results

    def seeds(self, first: int, count: int, env: int = 0) -> Seeds:
        """Seeds of training episodes `first` to first + count of environment `env`; no test set has any of them."""
        return training_seeds(self.seed, env, first + np.arange(count))

    def advice(self) -> str | None:
        """Advice to the user where learning makes no progress, else None."""
        return None

    def counts(self) -> Mapping[str, int]:
        """Further columns of the log: totals over the run so far."""
        return {}

    def get_state(self) -> State:
        """Parameters, random generator and steps, from which `set_state` resumes bit for bit."""
        return prefixed("model", self.parameters()), {"rng": self.rng.bit_generator.state, "steps": self.steps}

    def set_state(self, arrays: Arrays, plain: dict[str, Any]) -> None:
        """Restore the state that `get_state` returned."""
        saved = component(arrays, "model")
        self.start({name: saved[name] for name in self.parameters()})  # in their order, which files do not keep
        self.rng.bit_generator.state, self.steps = plain["rng"], plain["steps"]


def title(learner: Learner) -> str:
    """package.module:Class of a custom learner; "" for one of muster's own, which is trusted."""
    own = type(learner).__module__.startswith("muster.")
    return "" if own else f"{type(learner).__module__}:{type(learner).__qualname__}"


def checked_update(learner: Learner, progress: float) -> Metrics:
    """Metrics of one update; InputError, naming a custom learner, unless they are numbers and steps were counted."""
    if not title(learner):
        return learner.update(progress)
    steps, subject = learner.steps, f"update() of {title(learner)}"
    with naming(subject):
        metrics = learner.update(progress)
    wrong: Any = metrics
    if isinstance(metrics, dict):
        wanted = {"reward": None, "episodes": None} | metrics
        wrong = {name: value for name, value in wanted.items() if not isinstance(value, Real)}
    if wrong or not metrics:
        raise InputError(f"{subject} must return a dict of numbers, reward and episodes among them, got {wrong!r:.80}")
    if metrics["episodes"] > 0 and not np.isfinite(metrics["reward"]):
        raise InputError(f"{subject} must return the mean reward of its episodes, got {metrics['reward']}")
    if learner.steps <= steps:
        raise InputError(
            f"{subject} counted no environment steps, by which a run is measured: run_episodes counts them, and "
            "rollouts of your own must add theirs to self.steps"
        )
    return {name: float(value) for name, value in metrics.items()}


def checked_parameters(learner: Learner) -> Parameters:
    """Copies of the learner's parameters; InputError, naming a custom one, unless they are those of its model."""
    if not title(learner):
        return learner.parameters()
    subject = f"parameters() of {title(learner)}"
    with naming(subject):
        found = learner.parameters()
        if not isinstance(found, dict):
            raise InputError(f"{subject} must return a dict of arrays, got {found!r:.80}")
        arrays = {name: np.array(array) for name, array in found.items()}
    check_parameters(learner.spec, arrays, subject)
    return {name: array.astype(np.float32) if array.dtype.kind == "f" else array for name, array in arrays.items()}


def check_parameters(spec: ModelSpec, arrays: Arrays, subject: str) -> None:
    """Raise InputError unless the arrays are a model's parameters; those of a torch module may have others beside."""
    expected, got = parameter_shapes(spec), {name: np.shape(array) for name, array in arrays.items()}
    for name in [*expected, *({} if needs_torch(spec.kind) else got)]:
        if got.get(name) != expected.get(name):
            wanted = f"of shape {expected[name]}" if name in expected else f"none but {', '.join(expected)}"
            raise InputError(f"{subject} must be the model's: {name} {wanted}, got {got.get(name, 'none')}")


def join_states(states: Sequence[State]) -> tuple[Arrays, list[dict[str, Any]]]:
    """States of a run's environments in one: their arrays under environment0/, environment1/, …; and their values."""
    arrays: Arrays = {}
    for k, (env_arrays, _) in enumerate(states):
        arrays |= prefixed(f"environment{k}", env_arrays)
    return arrays, [values for _, values in states]


def split_states(arrays: Arrays, values: Sequence[dict[str, Any]]) -> list[State]:
    """The inverse of `join_states`."""
    return [(component(arrays, f"environment{k}"), own) for k, own in enumerate(values)]


def training_seeds(seed: int, index: int, numbers: Ints) -> Seeds:
    """Seeds of the training episodes with these numbers, in environment `index` of the run.

    No test set has any of them.
    """
    return episode_seeds(TRAINING + seed, index * ENV_OFFSET + numbers)


class SlotEpisodes:
    """Episode numbers of an environment's slots: of B slots, slot b runs episodes b, B + b, 2B + b, …

    So a slot's episodes do not depend on the process that runs it: `block` is the range of slots that this one runs.
    """

    def __init__(self, n_envs: int, seed: int, index: int = 0, block: tuple[int, int] | None = None) -> None:
        """`n_envs` is B, the slots of all blocks."""
        self.total, self.seed, self.index = n_envs, seed, index
        self.block = slice(*(block or (0, n_envs)))
        self.slots = np.arange(n_envs)[self.block]
        self.begun = np.zeros(len(self.slots), np.int64)
        """Episodes that each slot of the block has begun."""

    def take(self, slots: Ints) -> Seeds:
        """Seeds of the next episode of each of these slots."""
        numbers = self.slots[slots] + self.total * self.begun[slots]
        self.begun[slots] += 1
        return training_seeds(self.seed, self.index, numbers)


def prefixed(name: str, arrays: Mapping[str, NDArray[Any]]) -> Arrays:
    """The arrays of one component under the names that they have in a checkpoint: `name/key`."""
    return {f"{name}/{key}": array for key, array in arrays.items()}


def component(arrays: Mapping[str, NDArray[Any]], name: str) -> Arrays:
    """The inverse of `prefixed`: a checkpoint's arrays of one component, without the prefix."""
    return {key.removeprefix(f"{name}/"): array for key, array in arrays.items() if key.startswith(f"{name}/")}
