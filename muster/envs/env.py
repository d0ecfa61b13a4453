"""Custom environments, written for one instance: the class to subclass, and its observation."""

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
    """The observation of one environment with N agents and M tasks. Leave out what the environment does not have.

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
    """[M] a task gets contributions of at least this much, or no agent; None means 0. Equal to the capacity it means
    exactly this much, such as 2 for a job that needs two agents."""
    allowed: ArrayLike | None = None
    """[N, M] False where the agent must not take the task; None means that all may."""
    prior: ArrayLike | None = None
    """[N, M] scores without learning, such as -distance or profit; a model learns to correct them."""
    task_prior: ArrayLike | None = None
    """[M, M] likewise for pairs of tasks."""
    global_features: ArrayLike | None = None
    """[Fg] features of the whole environment: the time of day, demand, density."""
    agent_ids: ArrayLike | None = None
    """[N] numbers from 0 that identify agents, -1 for none; None: an index always means the same agent."""
    task_ids: ArrayLike | None = None
    """[M] likewise for tasks; needed if the index of a task that is gone is used again."""
    switch_cost: ArrayLike | None = None
    """A number or [N, M]: cost of leaving a task that is still alive, in units of score; None: the environment's."""
    previous: ArrayLike | None = None
    """[N] the task that each agent had after the last decision, -1 for none; filled in by muster if None."""


Baseline = Callable[[Observation], Ints]


class Env(ABC):
    """A custom environment: one episode at a time. See docs/how-to/custom-environment.md and examples/."""

    n_agents: int
    """The largest number of agents in any observation."""
    n_tasks: int
    """The largest number of tasks in any observation."""
    max_steps: int = 1000
    """Step limit, after which muster ends the episode as truncated."""
    metric: Metric = "steps"
    idling: bool = False
    """Whether idling can be a good choice; if not, learned policies assign every agent that fits."""
    switch_cost: ArrayLike = 0.0
    """Cost of leaving a task that is still alive, in units of score: a number or [N, M]."""
    positions: tuple[int, ...] = ()
    """Columns of agent and task features that are coordinates, which models may centre or compare."""
    distances: tuple[int, ...] = ()
    """Columns of pair features and of task-pair features that are distances, for `--form local`."""
    distance_unit: float = 0.0
    """The smallest distance that matters, such as a cell or a minute, in the units of those features."""
    feature_names: Mapping[str, Sequence[str]] = {}
    """Names of the columns of "agent", "task", "pair", "task_pair" and "global" features; numbered by default."""

    @abstractmethod
    def reset(self, rng: np.random.Generator) -> None:
        """Start a new episode. All randomness, now and in later steps, must come from `rng`."""

    @abstractmethod
    def observe(self) -> Observation:
        """The present observation. It must change nothing and draw no random numbers."""

    @abstractmethod
    def step(self, assignment: Ints) -> tuple[float, bool]:
        """Carry out `assignment`; returns the reward, and whether the episode has terminated.

        `assignment` has a task index of the last observation, or -1, for each of its agents. Agents and tasks that are
        not alive, and pairs that are not allowed, are never assigned.
        """

    def won(self) -> bool:
        """Whether the episode was a success, for metric "win_rate"."""
        raise MusterError(f"{type(self).__name__} has metric 'win_rate' and must define won()")

    def metrics(self) -> Mapping[str, float]:
        """Further named metrics of the episode, such as {"served": 197}; evaluation averages and shows them."""
        return {}

    def get_state(self) -> Mapping[str, ArrayLike]:
        """The whole state of the episode, as numbers and arrays; muster saves the generator.

        Define it, with `set_state`, if episodes are long: without it muster keeps every assignment, and restores a
        state by rerunning the episode.
        """
        raise NotImplementedError

    def set_state(self, state: Mapping[str, np.ndarray[Any, Any]]) -> None:
        """Restore what `get_state` returned, numbers as arrays of dimension 0; called after `reset`."""
        raise NotImplementedError

    def redraw(self, rng: np.random.Generator) -> None:
        """Draw anew, from `rng`, what was drawn in advance and not yet observed, such as orders still to come.

        Look-ahead calls it on its copies of the environment. Nothing to do if random numbers are drawn in the step
        that needs them: the generator of `reset` is seeded anew in any case.
        """
        del rng

    @classmethod
    def baselines(cls) -> Mapping[str, Baseline]:
        """{name: function from an observation to an assignment [N]}: the policies to beat."""
        return {}

    def permute(self, agents: Ints, tasks: Ints) -> bool:
        """Renumber agents and tasks as in `BatchEnv.permute`; False if the environment cannot."""
        del agents, tasks
        return False

    def scene(self) -> Scene | None:
        """Positions of agents and tasks for pictures and replays; None: a scene is made from the observation."""
        return None

    def arrange(self, agents: Floats, tasks: Floats) -> None:
        """Place agents [N, 2] and tasks [M, 2] of a new episode, in the coordinates of `scene`."""
        del agents, tasks
        raise MusterError(f"{type(self).__name__} cannot be arranged by hand: it must define arrange(agents, tasks)")

    def draw(self) -> Any:
        """A picture [height, width, 3] of uint8, or an object that numpy converts to one."""
        raise MusterError(
            f"{type(self).__name__} has no picture: it must define draw() (a page, such as replay.html, needs none)"
        )

    def describe(self) -> str:
        """The environment as text, for terminals."""
        raise MusterError(f"{type(self).__name__} has no text for terminals: it must define describe()")
