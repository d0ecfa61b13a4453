"""The contract between batches of environments and policies."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from muster.data import BatchObservation, Bools, Floats, Ints
from muster.envs.renderer import Renderer
from muster.errors import InputError, MusterError
from muster.rng import Seeds

State = dict[str, NDArray[np.generic]]
Metric = Literal["steps", "win_rate", "return", "agreement"]
"""steps: steps to the last task, fewer are better; win_rate: share of episodes won; return: sum of rewards; agreement:
share of agents with the log's task."""


class Step(NamedTuple):
    """The result of one step of B environments."""

    reward: Floats
    """[B]"""
    terminated: Bools
    """[B] whether the episode terminated in this step."""
    truncated: Bools
    """[B] whether it was truncated at the step limit instead."""


IDLE = -2
"""Used instead of -1 in environments with `reads_reasons`: the agent chose to idle."""


class Policy(ABC):
    """Maps observations of B environments to assignments. Only `name` and `act` are required."""

    name: str
    remembered: tuple[str, ...] = ()
    """Names of its arrays with a row for each slot, such as plans or random streams: the memory of running episodes."""

    def reset(self, slots: Ints, seeds: Seeds) -> None:
        """Forget these slots: new episodes start there. Any randomness must follow from `seeds`."""
        del slots, seeds

    @abstractmethod
    def act(self, observation: BatchObservation) -> Ints:
        """Assignment [B, N]: a task index for each agent, -1 for none."""

    def actions(self, observation: BatchObservation) -> Ints:
        """As `act`, with IDLE instead of -1 for agents that chose to idle, if the policy knows."""
        return self.act(observation)

    def get_memory(self) -> State:
        """Copies of the memory of the running episodes."""
        return {name: getattr(self, name).copy() for name in self.remembered}

    def set_memory(self, memory: State) -> None:
        """Restore what `get_memory` returned."""
        for name in self.remembered:
            getattr(self, name)[...] = memory[name]

    def replan(self, slots: Ints) -> None:
        """Make a new plan in these slots, where another decision than the policy's was carried out."""
        del slots

    def expected_return(self, observation: BatchObservation) -> Floats | None:
        """[B] the return from the last observed state on if the policy's plan is carried out; None if unknown."""
        del observation
        return None


class BatchEnv(ABC):
    """B independent episodes of one environment, stepped together.

    An episode is determined by its 64-bit seed and its assignments, whatever its slot, the other episodes of the batch
    and the number of threads. A slot whose episode has ended does not change, with reward 0, until it is `reset`.
    """

    name: str = "a custom environment"
    """The environment string that makes it, such as "rescue:2x4"; set by `muster.make`."""
    metric: Metric
    """The unit of `outcome`."""
    n_envs: int
    n_agents: int
    n_tasks: int
    max_steps: int
    """Step limit, after which an episode is truncated."""
    idling: bool = False
    """Whether idling can be a good choice; if not, learned policies assign every agent that fits."""
    reads_reasons: bool = False
    """Whether `step` distinguishes agents that chose to idle (IDLE) from those that found no capacity (-1)."""
    agents_stay: bool = False
    """Whether all agents are always alive."""
    positions: tuple[int, ...] = ()
    """Columns of agent and task features that are coordinates, which models may centre or compare."""
    distances: tuple[int, ...] = ()
    """Columns of pair features and of task-pair features that are distances; () if there are none."""
    distance_unit: float = 0.0
    """The smallest distance that matters, such as a cell, in the units of those features."""
    random: bool = True
    """Whether anything is random after the reset."""
    threads: int | None = None
    """Most threads for large batches; None for one per core, or MUSTER_NUM_THREADS."""
    made_by: Callable[[int], BatchEnv] | None = None
    """Makes a new batch of this environment with a given number of slots; None if not made by `muster.make`."""

    @abstractmethod
    def reset(self, slots: Ints, seeds: Seeds) -> None:
        """Reset `slots[k]` to the first state of the episode of `seeds[k]`."""

    @abstractmethod
    def observe(self) -> BatchObservation:
        """The present observation, in new arrays that later steps do not change."""

    @abstractmethod
    def step(self, assignment: Ints) -> Step:
        """Carry out one decision: `assignment` [B, N] has a task index for each agent, or -1."""

    def show(self, *, pair_features: bool = True, planes: bool = False, prior: bool = False) -> None:
        """Choose the parts of an observation that a policy reads; raises InputError for planes if there are none.

        Features of pairs, planes for a CNN, and priors of pairs and tasks for policies that plan routes. Environments
        whose prior costs nothing always include it.
        """
        del pair_features, prior
        if planes:
            raise InputError(f"{self.name} has no feature planes; use a direct model (dm)")

    @abstractmethod
    def outcome(self) -> Floats:
        """[B] outcome of the episode in each slot, as `metric` says: steps taken, 1 for a win, or sum of rewards."""

    def metrics(self) -> dict[str, Floats]:
        """{name: [B]} further metrics of the episodes, such as requests served, which evaluation averages."""
        return {}

    def feature_names(self) -> Mapping[str, Sequence[str]]:
        """Names of the columns of "agent", "task", "pair", "task_pair" and "global" features.

        Used by the service, cards and messages; blocks without names are numbered.
        """
        return {}

    def all_episodes(self) -> Seeds | None:
        """The seeds of all episodes of an environment with finitely many, such as recorded days; None for others.

        `--episodes all` runs each of them once. Other seeds are valid too, for training.
        """
        return None

    @abstractmethod
    def get_state(self) -> State:
        """The whole state of all slots: copies of arrays with a row for each slot."""

    @abstractmethod
    def set_state(self, state: State) -> None:
        """Restore what `get_state` returned: episodes continue bit for bit."""

    def running(self) -> Bools:
        """[B] whether an episode is running in each slot; all, unless the environment defines this."""
        return np.ones(self.n_envs, np.bool_)

    def reseed(self, seeds: Seeds) -> None:
        """Draw everything that is still to come anew, from `seeds` [B]; the present observation stays as it is.

        Look-ahead calls it on its copies of the environment, so that they do not reveal the future.
        """
        del seeds
        raise MusterError(f"{self.name} cannot be given fresh random numbers: it has no reseed()")

    @classmethod
    def baselines(cls) -> Mapping[str, Callable[[Self], Policy]]:
        """{name: constructor of a policy for an environment object}, which may read more than observations."""
        return {}

    def permute(self, agents: Ints, tasks: Ints) -> bool:
        """Renumber every slot: agent i is the former `agents[i]`, task j the former `tasks[j]`.

        Returns False, and does nothing, if the environment cannot; the check of numbering is then skipped.
        """
        del agents, tasks
        return False

    def renderer(self) -> Renderer:
        """The renderer of its episodes; by default one that uses observations only."""
        return Renderer(self)
