"""What the training loop asks of a learner, and what every learner is made of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from muster.assign.settings import InferenceSettings
from muster.assign.solver import Solver
from muster.data import Ints
from muster.envs.vector import BatchEnv
from muster.evaluation.episodes import Episodes, run_episodes
from muster.learning.metrics import Metrics
from muster.models.custom import needs_torch
from muster.models.direct import Parameters, init_parameters
from muster.models.spec import ModelSpec
from muster.policy.learned import LearnedPolicy
from muster.policy.settings import PAPER_NOISE, NoiseSettings
from muster.rng import Seeds, episode_seeds

if TYPE_CHECKING:
    from muster.learning.actor import Actor

Arrays = dict[str, NDArray[Any]]
State = tuple[Arrays, dict[str, Any]]
"""Everything needed to go on bit for bit: arrays, and plain values."""

# Test sets are named by small seeds; those of training, of choosing a checkpoint and of reporting on it lie far from
# them and from each other.
TRAINING, VALIDATION, REPORT = 2**40, 2**41, 2**42
# Environments of one run take their episodes this far apart.
ENV_OFFSET = 2**40
# What a run's seed is used for.
EXPLORATION, WEIGHTS, CANDIDATES, CRITIC, STATISTICS = 1, 2, 3, 4, 5


def stream(seed: int, use: int) -> np.random.Generator:
    """The run's generator for one use of its seed."""
    return np.random.default_rng([seed, use])


class Setup(NamedTuple):
    """What every learner is made of."""

    envs: list[BatchEnv]
    spec: ModelSpec
    inference: InferenceSettings
    header: dict[str, Any]
    """Of the policies' files."""
    seed: int
    make_actor: Callable[..., Actor]
    """Makes the scoring model with its first parameters, ready to learn by gradients; takes what `DirectActor` takes
    beyond the model's specification and its generator."""

    def first_parameters(self) -> Parameters:
        """Those that the scoring model of the run begins with."""
        if needs_torch(self.spec.kind):
            return self.make_actor().parameters()
        return init_parameters(self.spec, stream(self.seed, WEIGHTS))


class Learner(ABC):
    """Runs environments and learns, an update at a time; its state can be saved between two updates.

    A custom one is a class with `update`, `parameters` and `start`; its constructor takes `setup`, and options.
    """

    name: ClassVar[str] = "custom"
    last_is_best: ClassVar[bool] = False
    """Whether the last policy stands for the run, rather than the one with the best row of the log."""
    averages = False
    """Whether the policy already is a mean over the later half of the run."""
    noise: NoiseSettings = PAPER_NOISE
    """Of exploration, for those who evaluate the policy with noise."""

    def __init__(self, setup: Setup) -> None:
        self.envs, self.spec, self.inference, self.header, self.seed, _ = setup
        # One core a run: several runs share a machine better than one run its threads.
        self.solver = Solver.of(self.inference, threads=1)
        self.rng = stream(self.seed, EXPLORATION)
        self.steps = 0
        """Environment steps so far."""

    @abstractmethod
    def update(self, progress: float = 0.0) -> Metrics:
        """Run the environments and learn once; `progress` in [0, 1] is how far the run has come.

        Returns what the log is to say: numbers by name, `reward` (a mean over episodes) and `episodes` among them.
        """

    @abstractmethod
    def parameters(self) -> Parameters:
        """Of the scoring model as it stands (copies)."""

    @abstractmethod
    def start(self, parameters: Parameters) -> None:
        """Begin with these values in the scoring model."""

    def policy(self) -> LearnedPolicy:
        """The policy as it stands."""
        return self.policy_of(self.parameters())

    def policy_of(self, parameters: Parameters) -> LearnedPolicy:
        """The policy of a scoring model with these parameters."""
        return LearnedPolicy(self.name, self.spec, parameters, self.inference, self.noise, self.header)

    def run_episodes(self, parameters: Parameters, first: int, count: int) -> list[Episodes]:
        """Training episodes `first` to first + count of every environment, by a model with these parameters."""
        numbers = first + np.arange(count)
        policy = self.policy_of(parameters)
        found = [run_episodes(env, policy, training_seeds(self.seed, k, numbers)) for k, env in enumerate(self.envs)]
        self.steps += sum(int(episodes.steps.sum()) for episodes in found)
        return found

    def advice(self) -> str | None:
        """What a user should hear, if anything."""
        return None

    def counts(self) -> Mapping[str, int]:
        """What the log should say of the run so far, if anything."""
        return {}

    def get_state(self) -> State:
        """Everything needed to go on bit for bit: here parameters, generator and steps."""
        return prefixed("model", self.parameters()), {"rng": self.rng.bit_generator.state, "steps": self.steps}

    def set_state(self, arrays: Arrays, plain: dict[str, Any]) -> None:
        """Go on from what `get_state` returned."""
        saved = component(arrays, "model")
        self.start({name: saved[name] for name in self.parameters()})  # in their order, which files do not keep
        self.rng.bit_generator.state, self.steps = plain["rng"], plain["steps"]


def training_seeds(seed: int, index: int, numbers: Ints) -> Seeds:
    """Seeds of a run's training episodes, by number; `index` counts the environments of the run.

    None of them is ever one of a test set.
    """
    return episode_seeds(TRAINING + seed, index * ENV_OFFSET + numbers)


class SlotEpisodes:
    """The episodes of an environment's slots: of B slots, slot b has numbers b, B + b, 2B + b, ...

    So they do not depend on who runs the slots: `block` says which of B this environment has.
    """

    def __init__(self, n_envs: int, seed: int, index: int = 0, block: tuple[int, int] | None = None) -> None:
        """`n_envs` is B."""
        self.total, self.seed, self.index = n_envs, seed, index
        self.block = slice(*(block or (0, n_envs)))
        self.slots = np.arange(n_envs)[self.block]
        self.begun = np.zeros(len(self.slots), np.int64)
        """Episodes so far, in each slot."""

    def take(self, slots: Ints) -> Seeds:
        """Seeds of the next episode in each of these slots."""
        numbers = self.slots[slots] + self.total * self.begun[slots]
        self.begun[slots] += 1
        return training_seeds(self.seed, self.index, numbers)


def prefixed(name: str, arrays: Mapping[str, NDArray[Any]]) -> Arrays:
    """A component's arrays as a checkpoint names them beside those of others."""
    return {f"{name}/{key}": array for key, array in arrays.items()}


def component(arrays: Mapping[str, NDArray[Any]], name: str) -> Arrays:
    """The arrays of one component, by the names that they have there."""
    return {key.removeprefix(f"{name}/"): array for key, array in arrays.items() if key.startswith(f"{name}/")}
