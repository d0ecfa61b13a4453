"""The contract between environments and everything that acts in them."""

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
"""steps: until done, fewer are better; win_rate: share of episodes won; return: sum of rewards, more is better."""


class Step(NamedTuple):
    """What one step of B environments gives back."""

    reward: Floats
    """[B]"""
    terminated: Bools
    """[B] the episode reached its end."""
    truncated: Bools
    """[B] the episode hit the step limit."""


IDLE = -2
"""In place of -1, to an environment that reads reasons (`BatchEnv.reads_reasons`): the agent prefers to do nothing."""


class Policy(ABC):
    """Turns observations of B environments into one assignment for each. Only `name` and `act` are needed."""

    name: str
    remembered: tuple[str, ...] = ()
    """Names of the arrays by which it remembers episodes under way, such as plans or streams of random numbers."""

    def reset(self, slots: Ints, seeds: Seeds) -> None:
        """New episodes start in these slots, before `act` is asked about them; randomness follows from `seeds`."""
        del slots, seeds

    @abstractmethod
    def act(self, observation: BatchObservation) -> Ints:
        """Assignment [B, N]: a task index for each agent, -1 for none."""

    def actions(self, observation: BatchObservation) -> Ints:
        """As `act`, with IDLE for agents that prefer to do nothing, where the policy can tell."""
        return self.act(observation)

    def get_memory(self) -> State:
        """What it remembers of the episodes under way: copies."""
        return {name: getattr(self, name).copy() for name in self.remembered}

    def set_memory(self, memory: State) -> None:
        """Go on from what `get_memory` returned."""
        for name in self.remembered:
            getattr(self, name)[...] = memory[name]

    def replan(self, slots: Ints) -> None:
        """Something else was done in these slots than it decided last: a policy that follows a plan makes a new one."""
        del slots

    def expected_return(self, observation: BatchObservation) -> Floats | None:
        """[B] rewards from here on if its plan is carried out, in the state it was last asked about; None: unknown."""
        del observation
        return None


class BatchEnv(ABC):
    """B independent episodes of one environment, stepped together.

    An episode is wholly determined by its 64-bit seed and by the assignments it receives: not by its slot, by its
    neighbours or by the number of threads. A slot whose episode has ended stands still, with reward 0, until it is
    `reset`.
    """

    name: str
    """The environment string that makes it, such as "rescue:2x4"."""
    metric: Metric
    """What `outcome` measures."""
    n_envs: int
    n_agents: int
    n_tasks: int
    max_steps: int
    """Step limit, after which an episode is truncated."""
    idling: bool = False
    """Whether leaving an agent without a task can be a good choice; if not, learned policies assign all they can."""
    reads_reasons: bool = False
    """Whether `step` tells agents that prefer to do nothing (IDLE) from those that no task had capacity for (-1);
    policies whose inference knows then say so."""
    agents_stay: bool = False
    """Whether every agent is alive from the first step to the last."""
    positions: tuple[int, ...] = ()
    """Columns of the features of agents and tasks that are coordinates, which a model may read from their middle."""
    distances: tuple[int, ...] = ()
    """Columns of the pair features and of the task-pair features that are distances; () where there are none."""
    distance_unit: float = 0.0
    """The shortest distance that matters, such as a cell, in the units of those features."""
    random: bool = True
    """Whether anything is left to chance once an episode has begun."""
    threads: int | None = None
    """Threads for large batches; None for one a core (or MUSTER_NUM_THREADS). Environments are free to use fewer."""
    made_by: Callable[[int], BatchEnv] | None = None
    """Makes another batch of this environment, of a given size; None where it was not made by `muster.make`."""

    @abstractmethod
    def reset(self, slots: Ints, seeds: Seeds) -> None:
        """Reset `slots[k]` to the first state of the episode of `seeds[k]`."""

    @abstractmethod
    def observe(self) -> BatchObservation:
        """What is observed now, in fresh arrays that later steps do not touch."""

    @abstractmethod
    def step(self, assignment: Ints) -> Step:
        """Carry out one decision: `assignment` [B, N] has a task index for each agent, or -1."""

    def show(self, *, pair_features: bool = True, planes: bool = False, prior: bool = False) -> None:
        """Make `observe` include what a policy reads; InputError for planes where there are none.

        Features of pairs, which may be left out where they are not read; planes for a CNN; and priors of pairs and
        tasks for policies that plan routes. Priors that an environment has anyway are there without asking.
        """
        del pair_features, prior
        if planes:
            raise InputError(f"{self.name} has no feature planes; use a direct model (dm)")

    @abstractmethod
    def outcome(self) -> Floats:
        """[B] for the episode in each slot: steps taken, 1 for a win, or the sum of rewards, as `metric` says."""

    def metrics(self) -> dict[str, Floats]:
        """Further named metrics [B] of the episode in each slot, such as requests served, to be averaged and shown."""
        return {}

    def feature_names(self) -> Mapping[str, Sequence[str]]:
        """A name for each column of "agent", "task", "pair", "task_pair" and "global" features.

        Services, cards and messages use them; columns without a name are numbered.
        """
        return {}

    def all_episodes(self) -> Seeds | None:
        """The seeds of all episodes, in order, of an env that has only so many (recorded days); None without end.

        `--episodes all` runs each of them once. An env that has them takes other seeds as well, for training.
        """
        return None

    @abstractmethod
    def get_state(self) -> State:
        """Everything needed to go on later, as plain arrays (copies)."""

    @abstractmethod
    def set_state(self, state: State) -> None:
        """Go on from what `get_state` returned, bit for bit."""

    def running(self) -> Bools:
        """[B] whether an episode is under way in each slot; an env that does not say is taken to be under way."""
        return np.ones(self.n_envs, np.bool_)

    def reseed(self, seeds: Seeds) -> None:
        """Draw anew, from `seeds` [B], all that is still to come and that no observation shows yet.

        What is observed now stays as it is. Look-ahead does it to its copies, which would otherwise see the future.
        """
        del seeds
        raise MusterError(f"{self.name} cannot be given fresh random numbers: it has no reseed()")

    @classmethod
    @abstractmethod
    def baselines(cls) -> Mapping[str, Callable[[Self], Policy]]:
        """Built-in policies by name; each is made for one environment object and may look inside it."""

    def permute(self, agents: Ints, tasks: Ints) -> bool:
        """Renumber every slot: agent i is the former `agents[i]`, task j the former `tasks[j]`.

        False, and nothing done, where an environment cannot; numbering then goes unchecked.
        """
        del agents, tasks
        return False

    def renderer(self) -> Renderer:
        """What shows its episodes to people; by default what can be told from `observe`."""
        return Renderer(self)
