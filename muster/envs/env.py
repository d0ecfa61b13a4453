"""Custom environments, written one instance at a time: the class to subclass, and what it observes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from muster.data import Floats, Ints
from muster.envs.scene import Scene
from muster.envs.vector import Metric
from muster.errors import MusterError


@dataclass(frozen=True, slots=True)
class Observation:
    """What a policy observes of one environment: N agents, M tasks. Leave out what the environment does not have.

    N and M may differ from one to the next, up to the environment's `n_agents` and `n_tasks`; muster pads.
    """

    agent_features: ArrayLike
    """[N, Fa]"""
    task_features: ArrayLike
    """[M, Ft]"""
    pair_features: ArrayLike | None = None
    """[N, M, Fp]"""
    task_pair_features: ArrayLike | None = None
    """[M, M, Fq]"""
    agent_alive: ArrayLike | None = None
    """[N] True where the agent can act; None means all."""
    task_alive: ArrayLike | None = None
    """[M] True where the task takes agents; None means all."""
    contributions: ArrayLike | None = None
    """[N, M] how much of a task's capacity an agent uses up; None means 1."""
    capacities: ArrayLike | None = None
    """[M]; None means 1, or the minimum where that is more."""
    minimums: ArrayLike | None = None
    """[M] a task gets contributions of at least so much, or no agent; None means 0. Equal to the capacity: exactly so
    much, such as 2 for a job that needs two agents."""
    allowed: ArrayLike | None = None
    """[N, M] False where the agent must not take the task; None means that all may."""
    prior: ArrayLike | None = None
    """[N, M] what you would use as scores without learning (-distance, profit); a model learns to correct it."""
    task_prior: ArrayLike | None = None
    """[M, M] likewise for two tasks that are both served."""
    global_features: ArrayLike | None = None
    """[Fg] features of the whole environment: the time of day, demand, density."""
    agent_ids: ArrayLike | None = None
    """[N] numbers from 0 that tell agents apart where an index is used again, -1 for none; None: none ever is."""
    task_ids: ArrayLike | None = None
    """[M] likewise."""
    switch_cost: ArrayLike | None = None
    """A number or [N, M]: what an agent loses by leaving a task that is still there; None means the env's own."""
    previous: ArrayLike | None = None
    """[N] the task that each agent had after the last decision, -1 for none. Left out, muster fills it in."""


Baseline = Callable[[Observation], Ints]


class Env(ABC):
    """One episode at a time. See docs/how-to/custom-environment.md and examples/."""

    n_agents: int
    """The most agents that there ever are."""
    n_tasks: int
    """The most tasks that there ever are at once."""
    max_steps: int = 1000
    """Step limit, after which muster ends the episode as truncated."""
    metric: Metric = "steps"
    idling: bool = False
    """Whether leaving an agent without a task can be a good choice; if not, learned policies assign all they can."""
    switch_cost: ArrayLike = 0.0
    """What an agent loses, in units of score, by leaving a task that is still there: a number or [N, M]."""
    positions: tuple[int, ...] = ()
    """Columns of the features of agents and tasks that are coordinates, which a model may read from their middle."""
    distances: tuple[int, ...] = ()
    """Columns of the pair features and of the task-pair features that are distances, for `--form local`."""
    distance_unit: float = 0.0
    """The shortest distance that matters, such as a cell or a minute, in the units of those features."""
    feature_names: Mapping[str, Sequence[str]] = {}
    """A name for each column of "agent", "task", "pair", "task_pair" and "global" features; numbers if not."""

    @abstractmethod
    def reset(self, rng: np.random.Generator) -> None:
        """Start a new episode; all that is random in it, now and later, comes from `rng`."""

    @abstractmethod
    def observe(self) -> Observation:
        """What is observed now."""

    @abstractmethod
    def step(self, assignment: Ints) -> tuple[float, bool]:
        """Carry out `assignment`: the reward, and whether the episode is over.

        It has a task index of the last observation for each of its agents, or -1: never a task or an agent that is not
        alive, never a pair that is not allowed.
        """

    def won(self) -> bool:
        """For metric "win_rate": was this episode a success?"""
        raise MusterError(f"{type(self).__name__} has metric 'win_rate' and must define won()")

    def metrics(self) -> Mapping[str, float]:
        """Further named metrics of the episode, such as {"served": 197}; evaluation averages and shows them."""
        return {}

    def get_state(self) -> Mapping[str, ArrayLike]:
        """Everything needed to go on later, as numbers and arrays; the generator is saved for you.

        Worth defining, with `set_state`, where episodes are long: without it muster keeps every assignment, and
        restores a state by running the episode again.
        """
        raise NotImplementedError

    def set_state(self, state: Mapping[str, np.ndarray[Any, Any]]) -> None:
        """Go on from what `get_state` gave; called after a `reset`, numbers come as arrays of dimension 0."""
        raise NotImplementedError

    def redraw(self, rng: np.random.Generator) -> None:
        """Draw anew, from `rng`, what is already drawn but not yet observed, such as orders still to come.

        Look-ahead calls it on its copies. Nothing to do where all that is random is drawn when it happens: the
        generator that `reset` was given has then been seeded anew already.
        """
        del rng

    @classmethod
    def baselines(cls) -> Mapping[str, Baseline]:
        """Baselines by name: functions from an observation to an assignment [N]."""
        return {}

    def permute(self, agents: Ints, tasks: Ints) -> bool:
        """Renumber agents and tasks, as `BatchEnv.permute` says; False where the environment cannot."""
        del agents, tasks
        return False

    def scene(self) -> Scene | None:
        """Where agents and tasks are, for pictures and replays; None: muster tells from `observe` what it can."""
        return None

    def arrange(self, agents: Floats, tasks: Floats) -> None:
        """Put agents [N, 2] and tasks [M, 2] of a new episode where `scene` would show them."""
        del agents, tasks
        raise MusterError(f"{type(self).__name__} cannot be arranged by hand: it must define arrange(agents, tasks)")

    def draw(self) -> Any:
        """A picture of the environment: an array [height, width, 3] of uint8, or what numpy makes one of."""
        raise MusterError(
            f"{type(self).__name__} has no picture of itself: it must define draw() "
            "(a page, such as replay.html, needs none)"
        )

    def describe(self) -> str:
        """The environment as text, for terminals."""
        raise MusterError(f"{type(self).__name__} has no description of itself")
