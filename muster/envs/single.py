"""A user's own world, written one instance at a time; muster batches it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from muster.data import Floats, Ints, Observation
from muster.envs.base import BatchEnv, Metric, Policy, State, Step
from muster.errors import InputError, MusterError
from muster.rng import Seeds


@dataclass(frozen=True, slots=True)
class View:
    """What a policy sees of one world: N agents, M tasks. Leave out what the world does not have."""

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
    """[M]; None means 1."""


Rule = Callable[[View], Ints]


class Env(ABC):
    """One episode at a time. See docs/how-to/own-world.md and examples/delivery.py."""

    n_agents: int
    n_tasks: int
    max_steps: int = 1000
    """Step limit, after which muster ends the episode as truncated."""
    metric: Metric = "steps"

    @abstractmethod
    def reset(self, rng: np.random.Generator) -> None:
        """Begin a new episode; all that is random in it, now and later, comes from `rng`."""

    @abstractmethod
    def view(self) -> View:
        """What is seen now."""

    @abstractmethod
    def step(self, assignment: Ints) -> tuple[float, bool]:
        """Carry out `assignment` [N] (task index or -1): the reward, and whether the episode is over."""

    def won(self) -> bool:
        """For metric "win_rate": was this episode a success?"""
        raise MusterError(f"{type(self).__name__} has metric 'win_rate' and must define won()")

    @classmethod
    def rules(cls) -> Mapping[str, Rule]:
        """Baselines by name: functions from a view to an assignment [N]."""
        return {}

    def permute(self, agents: Ints, tasks: Ints) -> bool:
        """Renumber agents and tasks, as `BatchEnv.permute` says; False where the world cannot."""
        del agents, tasks
        return False

    def draw(self) -> Any:
        """A picture of the world: an array [height, width, 3] of uint8, or what numpy makes one of."""
        raise MusterError(f"{type(self).__name__} has no picture of itself")

    def describe(self) -> str:
        """The world as text, for terminals."""
        raise MusterError(f"{type(self).__name__} has no description of itself")


class BatchOfSingles(BatchEnv):
    """B objects of a user's class, behind the batch contract."""

    single: ClassVar[Callable[[], Env]]

    def __init__(self, n_envs: int = 1) -> None:
        self.singles = [type(self).single() for _ in range(n_envs)]
        first = self.singles[0]
        self.name = type(first).__name__
        self.metric = first.metric
        self.n_envs = n_envs
        self.n_agents, self.n_tasks, self.max_steps = first.n_agents, first.n_tasks, first.max_steps
        self._seeds = np.zeros(n_envs, np.uint64)
        self._steps: Ints = np.zeros(n_envs, np.int64)
        self._running = np.zeros(n_envs, np.bool_)
        # An episode is its seed and its assignments, so these are all there is to save.
        self._history: Ints = np.full((n_envs, self.max_steps, self.n_agents), -1, np.int64)
        self._agent_order: Ints = np.tile(np.arange(self.n_agents), (n_envs, 1))
        self._task_order: Ints = np.tile(np.arange(self.n_tasks), (n_envs, 1))
        self.start(np.arange(n_envs), np.zeros(n_envs, np.uint64))

    def start(self, slots: Ints, seeds: Seeds) -> None:
        """Reset the objects in these slots, each with a generator of its own."""
        for slot, seed in zip(slots, seeds, strict=True):
            self.singles[slot].reset(np.random.default_rng(int(seed)))
        self._seeds[slots] = seeds
        self._steps[slots] = 0
        self._running[slots] = True
        self._history[slots] = -1
        self._agent_order[slots] = np.arange(self.n_agents)
        self._task_order[slots] = np.arange(self.n_tasks)

    def observe(self) -> Observation:
        """The views, stacked; raises InputError for a view whose shapes do not fit N and M."""
        n, m = self.n_agents, self.n_tasks
        views = [single.view() for single in self.singles]

        def stack(name: str, shape: tuple[int, ...], kind: type, fill: float | None) -> NDArray[Any]:
            """`fill` None marks a feature block: any width, 0 when left out."""
            values = [getattr(view, name) for view in views]
            if values[0] is None:
                whole = (len(views), *shape) if fill is not None else (len(views), *shape, 0)
                return np.full(whole, fill or 0, kind)
            array: NDArray[Any] = np.array(values, kind)
            found = array.shape[1:-1] if fill is None else array.shape[1:]
            if found != shape:
                wanted = f"{list(shape)}" if fill is not None else f"{list(shape)} and a width"
                raise InputError(f"{name} of {self.name} must have shape {wanted}, got {list(array.shape[1:])}")
            return array

        return Observation(
            agent_features=stack("agent_features", (n,), np.float32, None),
            task_features=stack("task_features", (m,), np.float32, None),
            pair_features=stack("pair_features", (n, m), np.float32, None),
            task_pair_features=stack("task_pair_features", (m, m), np.float32, None),
            agent_alive=stack("agent_alive", (n,), np.bool_, 1),
            task_alive=stack("task_alive", (m,), np.bool_, 1),
            contributions=stack("contributions", (n, m), np.float64, 1),
            capacities=stack("capacities", (m,), np.float64, 1),
        )

    def step(self, assignment: Ints) -> Step:
        """Step every object whose episode is running."""
        assignment = np.array(assignment, np.int64)
        if assignment.shape != (self.n_envs, self.n_agents):
            raise InputError(f"the assignment must have shape {(self.n_envs, self.n_agents)}, got {assignment.shape}")
        if assignment.min() < -1 or assignment.max() >= self.n_tasks:
            raise InputError(f"tasks are -1 to {self.n_tasks - 1}, got {assignment.min()} to {assignment.max()}")
        reward = np.zeros(self.n_envs)
        terminated = np.zeros(self.n_envs, np.bool_)
        for slot in np.flatnonzero(self._running):
            self._history[slot, self._steps[slot]] = assignment[slot]
            # The object gets a copy: whatever it does to it stays its own.
            reward[slot], terminated[slot] = self.singles[slot].step(assignment[slot].copy())
        self._steps += self._running
        truncated = self._running & ~terminated & (self._steps >= self.max_steps)
        self._running &= ~(terminated | truncated)
        return Step(reward, terminated, truncated)

    def outcome(self) -> Floats:
        """[B] steps taken, or 1 where `won()`."""
        if self.metric == "steps":
            return self._steps.astype(np.float64)
        return np.array([float(single.won()) for single in self.singles])

    def permute(self, agents: Ints, tasks: Ints) -> bool:
        """Renumber every object; only before the first step of its episode."""
        if self._steps.any() or not all(single.permute(agents, tasks) for single in self.singles):
            return False
        self._agent_order[:] = self._agent_order[:, agents]
        self._task_order[:] = self._task_order[:, tasks]
        return True

    def get_state(self) -> State:
        """Seeds, numbering and assignments so far: enough to play every episode again."""
        return {
            "seeds": self._seeds.copy(),
            "steps": self._steps.copy(),
            "running": self._running.copy(),
            "history": self._history.copy(),
            "agent_order": self._agent_order.copy(),
            "task_order": self._task_order.copy(),
        }

    def set_state(self, state: State) -> None:
        """Play every episode again up to where it was."""
        self._seeds[:] = state["seeds"]
        self._steps[:] = state["steps"]
        self._running[:] = state["running"]
        self._history[:] = state["history"]
        self._agent_order[:] = state["agent_order"]
        self._task_order[:] = state["task_order"]
        for slot, single in enumerate(self.singles):
            single.reset(np.random.default_rng(int(self._seeds[slot])))
            agents, tasks = self._agent_order[slot], self._task_order[slot]
            if (np.diff(agents) < 0).any() or (np.diff(tasks) < 0).any():
                single.permute(agents, tasks)
            for assignment in self._history[slot, : self._steps[slot]]:
                single.step(assignment.copy())

    def draw(self, slot: int) -> Any:
        """What the object in `slot` draws."""
        return self.singles[slot].draw()

    def describe(self, slot: int) -> str:
        """What the object in `slot` says of itself."""
        return self.singles[slot].describe()

    @classmethod
    def baselines(cls) -> Mapping[str, Callable[[Self], Policy]]:
        """The class's rules, each as a policy."""

        def policy(name: str, rule: Rule) -> Callable[[Self], Policy]:
            return lambda env: RulePolicy(name, rule, env)

        rules = cls.single.rules() if isinstance(cls.single, type) and issubclass(cls.single, Env) else {}
        return {name: policy(name, rule) for name, rule in rules.items()}


class RulePolicy:
    """A rule for one world, applied to each world of a batch."""

    def __init__(self, name: str, rule: Rule, env: BatchOfSingles) -> None:
        self.name = name
        self.about = (rule.__doc__ or "").strip().partition("\n")[0]
        self._rule = rule
        self._env = env

    def begin(self, slots: Ints, seeds: Seeds) -> None:
        """Nothing to remember."""

    def act(self, observation: Observation) -> Ints:
        """[B, N] what the rule says for each world of the observation."""
        assignment = [self._rule(_view_of(observation, slot)) for slot in range(observation.batch)]
        return np.array(assignment, np.int64).reshape(observation.batch, self._env.n_agents)


def _view_of(observation: Observation, slot: int) -> View:
    return View(**{field.name: getattr(observation, field.name)[slot] for field in fields(View)})


def batched(single: type[Env]) -> type[BatchOfSingles]:
    """The batch class of a user's class."""
    return type(f"BatchOf{single.__name__}", (BatchOfSingles,), {"single": single, "__doc__": single.__doc__})
