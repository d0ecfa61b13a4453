"""A batch of B objects of a custom `Env` class."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from inspect import getattr_static, isfunction
from typing import Any, ClassVar, Self, get_args

import numpy as np

from muster.data import BatchObservation, Bools, Floats, Ints
from muster.envs.batch_checks import check_assignment
from muster.envs.env import Baseline, Env, Observation
from muster.envs.history import GENERATOR_WORDS, History, pack_generator, pack_states, unpack_generator, unpack_state
from muster.envs.identity import Ids, tasks_now
from muster.envs.padding import Padded, WrongNumberError, observation_at
from muster.envs.renderer import Renderer
from muster.envs.scene import Scene, checked
from muster.envs.size import check_memory
from muster.envs.vector import BatchEnv, Metric, Policy, State, Step
from muster.errors import EnvError, InputError, MusterError, UnknownNameError, in_words
from muster.rng import Seeds

KEPT = ("seeds", "steps", "running", "returns", "last", "last_agents", "last_tasks", "agent_order", "task_order")
"""Arrays in the state of a batch, beside the objects' own states or their past assignments."""


class BatchOfSingles(BatchEnv):
    """B objects of a custom class, each with its own random generator; see `muster.envs.env.Env`."""

    single: ClassVar[type[Env]]

    def __init__(self, n_envs: int = 1, **options: Any) -> None:
        if n_envs < 1:
            raise InputError(f"a batch needs at least 1 environment, got {n_envs}")
        self.name = type(self).single.__name__
        first = type(self).single(**options)
        check_attributes(first, self.name)
        check_memory(
            f"{self.name} of {first.n_agents} agents and {first.n_tasks} tasks", least_memory(first, n_envs), n_envs
        )
        check_switch_cost(first, self.name)
        self.singles = [first, *(type(self).single(**options) for _ in range(n_envs - 1))]
        self.metric, self.idling, self.positions = first.metric, bool(first.idling), tuple(first.positions)
        self.distances, self.distance_unit = tuple(first.distances), float(first.distance_unit)
        self.n_envs = n_envs
        self.n_agents, self.n_tasks, self.max_steps = first.n_agents, first.n_tasks, first.max_steps
        self.padded = Padded(self.name, n_envs, self.n_agents, self.n_tasks, first.switch_cost)
        """The present observations, except in slots that are `_stale`."""
        self._stale = np.ones(n_envs, np.bool_)
        self._seeds: Seeds = np.zeros(n_envs, np.uint64)
        self.generators = [np.random.default_rng(0) for _ in range(n_envs)]
        self._steps: Ints = np.zeros(n_envs, np.int64)
        self._running = np.zeros(n_envs, np.bool_)
        self._returns = np.zeros(n_envs)
        # The last assignment, and the ids of its agents and tasks.
        self._last: Ints = np.full((n_envs, self.n_agents), -1, np.int64)
        self._last_agents: Ints = np.full((n_envs, self.n_agents), -1, np.int64)
        self._last_tasks: Ints = np.full((n_envs, self.n_tasks), -1, np.int64)
        self._agent_order: Ints = np.tile(np.arange(self.n_agents), (n_envs, 1))
        self._task_order: Ints = np.tile(np.arange(self.n_tasks), (n_envs, 1))
        self._reseeded = np.zeros(n_envs, np.bool_)
        saves_itself = type(first).get_state is not Env.get_state
        self._history = None if saves_itself else History(n_envs, self.n_agents, self.n_tasks, self.max_steps)
        self.reset(np.arange(n_envs), np.zeros(n_envs, np.uint64))

    def reset(self, slots: Ints, seeds: Seeds) -> None:
        """Reset the objects in `slots`, each with a new generator of its seed."""
        self._seeds[slots] = seeds
        self._steps[slots] = 0
        self._returns[slots] = 0
        self._running[slots] = True
        self._stale[slots] = True
        self._reseeded[slots] = False
        self._last[slots] = self._last_agents[slots] = -1
        self._last_tasks[slots] = -1
        self._agent_order[slots] = np.arange(self.n_agents)
        self._task_order[slots] = np.arange(self.n_tasks)
        if self._history:
            self._history.forget(slots)
        for slot in np.asarray(slots).tolist():
            self._reset(slot)

    def observe(self) -> BatchObservation:
        """The observations, padded; raises InputError or EnvError for one that is not valid."""
        self._refresh()
        return self.padded.observation(self._previous())

    def feature_names(self) -> Mapping[str, Sequence[str]]:
        """The class's `feature_names`."""
        return self.singles[0].feature_names

    def step(self, assignment: Ints) -> Step:
        """Step every object whose episode is running; a task that is not alive or not allowed counts as none."""
        check_assignment(self, assignment)
        assignment = np.asarray(assignment, np.int64)
        self._refresh()
        feasible = self._feasible(assignment)
        slots = np.flatnonzero(self._running)
        agents = self.padded.sizes[:, 0]
        # The objects get a copy, which they may change.
        copies, lengths = feasible.copy(), agents.tolist()
        reward, terminated = np.zeros(self.n_envs), np.zeros(self.n_envs, np.bool_)
        for slot in slots.tolist():
            try:
                result = self.singles[slot].step(copies[slot, : lengths[slot]])
                if not _is_step(result):
                    raise self._failure(
                        "step()",
                        slot,
                        f"it must return the reward and whether the episode is over, got {result!r:.200}; give a "
                        "number, and True or False",
                    )
                reward[slot], terminated[slot] = result
            except Exception as error:
                raise self._failure("step()", slot, error) from error
        if not np.isfinite(reward).all():
            slot = int(np.flatnonzero(~np.isfinite(reward))[0])
            raise self._failure("step()", slot, f"a reward is not finite, but {reward[slot]}")
        if self._history:
            self._history.append(slots, self._steps[slots], feasible[slots], agents[slots])
        self._remember(slots, feasible)
        self._steps += self._running
        self._returns += reward
        self._stale |= self._running
        truncated = self._running & ~terminated & (self._steps >= self.max_steps)
        self._running &= ~(terminated | truncated)
        return Step(reward, terminated, truncated)

    def outcome(self) -> Floats:
        """[B] steps taken, the sum of rewards, or 1 where `won()`."""
        if self.metric == "steps":
            return self._steps.astype(np.float64)
        if self.metric == "return":
            return self._returns.copy()
        return np.array([float(self.call("won()", slot, single.won)) for slot, single in enumerate(self.singles)])

    def metrics(self) -> dict[str, Floats]:
        """Metrics by name of the episodes that have ended; NaN for the others, and for objects without that metric."""
        by_slot: list[Mapping[str, float]] = [
            {} if self._running[slot] else self.call("metrics()", slot, single.metrics)
            for slot, single in enumerate(self.singles)
        ]
        for slot, found in enumerate(by_slot):
            if not isinstance(found, Mapping) or not all(map(_is_number, found.values())):
                raise self._failure("metrics()", slot, f"it must return numbers by name, got {found!r:.200}")
        names = {name: None for metrics in by_slot for name in metrics}
        return {name: np.array([float(metrics.get(name, np.nan)) for metrics in by_slot]) for name in names}

    def permute(self, agents: Ints, tasks: Ints) -> bool:
        """Renumber every object; False after the first step of an episode, or if an object cannot."""
        if self._steps.any() or not all(single.permute(agents, tasks) for single in self.singles):
            return False
        self._agent_order[:] = self._agent_order[:, agents]
        self._task_order[:] = self._task_order[:, tasks]
        self._stale[:] = True
        return True

    def get_state(self) -> State:
        """The objects' own states; or seeds, numbering and past assignments, by which every episode can be rerun."""
        state: State = {name: array.copy() for name, array in self._arrays().items()}
        if self._history:
            if self._reseeded.any():
                raise MusterError(
                    f"an episode of {self.name} that was given fresh random numbers cannot be rerun; define "
                    "get_state() and set_state()"
                )
            return state | self._history.arrays(self._steps, self.name)
        saved = [self.call("get_state()", slot, single.get_state) for slot, single in enumerate(self.singles)]
        generators = np.array([pack_generator(rng) for rng in self.generators])
        return state | pack_states(saved, self.name) | {"generators": generators.reshape(-1, GENERATOR_WORDS)}

    def set_state(self, state: State) -> None:
        """Restore the objects' own states, or rerun every episode up to its step."""
        for name, array in self._arrays().items():
            array[...] = state[name]
        self._stale[:] = True
        self._reseeded[:] = False
        for slot, single in enumerate(self.singles):
            self._reset(slot)
            if self._history is None:
                saved = unpack_state(state["own"][slot], int(state["own_bytes"][slot]))
                self.call("set_state()", slot, partial(single.set_state, saved))
                unpack_generator(self.generators[slot], state["generators"][slot])
            else:
                self._rerun(slot, state)
        if self._history:
            self._history.restore(state["history"], state["history_agents"])

    def running(self) -> Bools:
        """[B] whether the episode has not ended."""
        return self._running.copy()

    def reseed(self, seeds: Seeds) -> None:
        """Seed the objects' generators anew, and `redraw` what was drawn before."""
        for slot, (seed, rng) in enumerate(zip(seeds.tolist(), self.generators, strict=True)):
            rng.bit_generator.state = np.random.default_rng(seed).bit_generator.state
            self.call("redraw()", slot, partial(self.singles[slot].redraw, rng))
        self._reseeded[:] = True

    def renderer(self) -> Renderer:
        """A renderer that calls the objects' own methods."""
        return SinglesRenderer(self)

    @classmethod
    def baselines(cls) -> Mapping[str, Callable[[Self], Policy]]:
        """The class's baselines, each as a policy; raises EnvError unless it gives functions by name."""
        what = f"baselines() of {cls.single.__name__}"
        if isfunction(getattr_static(cls.single, "baselines")):
            raise EnvError(f"{what} must be a classmethod: write @classmethod above it")
        try:
            found = cls.single.baselines()
        except Exception as error:
            raise EnvError(f"{what} failed: {in_words(error)}") from error
        if not isinstance(found, Mapping) or not all(isinstance(k, str) and callable(v) for k, v in found.items()):
            raise EnvError(
                f"{what} must return {{name: function}}, each from an observation to an assignment; got {found!r:.80}"
            )

        def policy(name: str, baseline: Baseline) -> Callable[[Self], Policy]:
            return lambda env: BaselinePolicy(name, baseline, env)

        return {name: policy(name, baseline) for name, baseline in found.items()}

    def _arrays(self) -> State:
        return {name: getattr(self, f"_{name}") for name in KEPT}

    def _reset(self, slot: int) -> None:
        rng = self.generators[slot] = np.random.default_rng(int(self._seeds[slot]))
        self.call("reset()", slot, partial(self.singles[slot].reset, rng))

    def _rerun(self, slot: int, state: State) -> None:
        single, steps = self.singles[slot], int(self._steps[slot])
        agents, tasks = self._agent_order[slot], self._task_order[slot]
        if (np.diff(agents) < 0).any() or (np.diff(tasks) < 0).any():
            single.permute(agents, tasks)
        past = state["history"][slot, :steps].astype(np.int64)
        for assignment, length in zip(past, state["history_agents"][slot, :steps].tolist(), strict=True):
            self.call("step()", slot, partial(single.step, assignment[:length]))

    def _refresh(self) -> None:
        """Observe the objects in stale slots."""
        slots = np.flatnonzero(self._stale)
        if not len(slots):
            return
        slot = 0
        try:
            # Numbers too large for float32 become infinite here, which `check` refuses.
            with np.errstate(over="ignore", invalid="ignore"):
                for slot in slots.tolist():
                    observation = self.singles[slot].observe()
                    if not isinstance(observation, Observation):
                        raise self._failure("observe()", slot, f"it must return an Observation, got {observation!r}")
                    self.padded.write(slot, observation)
            self.padded.check(slots)
        except WrongNumberError as wrong:
            raise self._failure("observe()", wrong.slot, str(wrong)) from None
        except InputError:
            raise
        except Exception as error:
            raise self._failure("observe()", slot, error) from error
        self._stale[slots] = False

    def _feasible(self, assignment: Ints) -> Ints:
        """[B, N] the assignment, with -1 for agents or tasks that are not alive and for pairs that are not allowed."""
        arrays, tasks = self.padded.arrays, np.maximum(assignment, 0)
        feasible = (assignment >= 0) & arrays["agent_alive"] & np.take_along_axis(arrays["task_alive"], tasks, axis=1)
        if "allowed" in arrays:
            feasible &= np.take_along_axis(arrays["allowed"], tasks[:, :, None], axis=2)[:, :, 0]
        return np.where(feasible, assignment, -1)

    def _remember(self, slots: Ints, assignment: Ints) -> None:
        self._last[slots] = assignment[slots]
        for name, last in (("agent_ids", self._last_agents), ("task_ids", self._last_tasks)):
            if name in self.padded.arrays:
                last[slots] = self.padded.arrays[name][slots]

    def _previous(self) -> Ints:
        """[B, N] the task of each present agent in the last assignment, by its present index; -1 for none."""
        arrays = self.padded.arrays
        now = Ids(arrays.get("agent_ids"), arrays.get("task_ids"))
        last = tasks_now(self._last, Ids(self._last_agents, self._last_tasks), now)
        alive = np.take_along_axis(arrays["task_alive"], np.maximum(last, 0), axis=1)
        return np.where((last >= 0) & alive, last, -1)

    def changed(self, slot: int) -> None:
        """Mark the object in `slot` to be observed again."""
        self._stale[slot] = True

    def call(self, name: str, slot: int, method: Callable[[], Any]) -> Any:
        """The result of an object's method; raises EnvError with step and seed if it fails."""
        try:
            return method()
        except Exception as error:
            raise self._failure(name, slot, error) from error

    def _failure(self, name: str, slot: int, cause: Exception | str) -> MusterError:
        if isinstance(cause, MusterError):
            return cause
        text = cause if isinstance(cause, str) else in_words(cause)
        return EnvError(
            f"{name} of {self.name} failed at step {int(self._steps[slot])} of the episode with seed "
            f"{int(self._seeds[slot])} (slot {slot} of {self.n_envs}): {text}"
        )


def _is_step(result: Any) -> bool:
    """Whether `step` returned a number and a truth value."""
    if not isinstance(result, (tuple, list)) or len(result) != 2:
        return False
    reward, over = result
    return _is_number(reward) and (isinstance(over, (bool, np.bool_)) or (_is_number(over) and over in (0, 1)))


def _is_number(value: Any) -> bool:
    """Whether it is a number, or an array of no dimension that holds one."""
    return isinstance(value, (int, float)) or (np.ndim(value) == 0 and np.asarray(value).dtype.kind in "biuf")


class SinglesRenderer(Renderer):
    """Renders the objects of a custom class by their own methods, or scenes from their observations."""

    env: BatchOfSingles

    def scene(self, slot: int) -> Scene:
        """The scene of the object in `slot`, or one made from its observation."""
        env = self.env
        scene = env.call("scene()", slot, env.singles[slot].scene)
        return super().scene(slot) if scene is None else checked(scene, env.n_agents, env.n_tasks, env.name)

    def arrange(self, slot: int, agents: Floats, tasks: Floats) -> None:
        """Have the object in `slot` place its agents and tasks."""
        self.env.call("arrange()", slot, partial(self.env.singles[slot].arrange, agents, tasks))
        self.env.changed(slot)

    def draw(self, slot: int) -> Any:
        """The picture that the object in `slot` draws."""
        return self.env.singles[slot].draw()

    def describe(self, slot: int) -> str:
        """The text of the object in `slot`."""
        return self.env.singles[slot].describe()

    def can(self, method: str) -> bool:
        """Whether the class has a `method` of its own."""
        return getattr(self.env.single, method) is not getattr(Env, method)


def batched(single: type[Env]) -> type[BatchOfSingles]:
    """The class of batches of a custom class."""
    return type(f"BatchOf{single.__name__}", (BatchOfSingles,), {"single": single, "__doc__": single.__doc__})


def check_attributes(env: Env | BatchEnv, name: str) -> None:
    """Raise InputError unless sizes, metric and state methods of a custom environment are valid."""
    for attribute, meaning in (
        *([("n_envs", "the number of environments")] if isinstance(env, BatchEnv) else []),
        ("n_agents", "the most agents that there ever are"),
        ("n_tasks", "the most tasks that there ever are at once"),
        ("max_steps", "the step limit"),
    ):
        value = getattr(env, attribute, None)
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
            raise InputError(f"{name} must have {attribute}, {meaning}, a whole number from 1; got {value!r}")
    if (metric := getattr(env, "metric", None)) not in get_args(Metric):
        raise UnknownNameError("metric", str(metric), get_args(Metric), f"for {name}")
    for attribute in ("positions", "distances"):
        columns = getattr(env, attribute)
        if not isinstance(columns, (tuple, list)) or not all(isinstance(k, int) and k >= 0 for k in columns):
            raise InputError(f"{attribute} of {name} must be a tuple of columns, counted from 0; got {columns!r}")
    if (type(env).get_state is Env.get_state) != (type(env).set_state is Env.set_state):
        raise InputError(f"{name} must define both get_state() and set_state(), or neither")


def least_memory(env: Env, n_envs: int) -> int:
    """Bytes that a batch takes at least: contributions, masks and scores of the pairs."""
    return 16 * n_envs * int(env.n_agents) * int(env.n_tasks)


def check_switch_cost(env: Env, name: str) -> None:
    """Raise InputError unless the switch cost of a custom environment is valid."""
    try:
        cost = np.broadcast_to(np.asarray(env.switch_cost, np.float64), (env.n_agents, env.n_tasks))
    except ValueError:
        raise InputError(f"switch_cost of {name} must be a number or [n_agents, n_tasks]") from None
    if not (np.isfinite(cost) & (cost >= 0)).all():
        raise InputError(f"switch_cost of {name} must be finite and not negative")


class BaselinePolicy(Policy):
    """A baseline function of a custom class as a policy: called for each environment of a batch."""

    def __init__(self, name: str, baseline: Baseline, env: BatchOfSingles) -> None:
        self.name = name
        self.about = (baseline.__doc__ or "").strip().partition("\n")[0]
        self._baseline = baseline
        self._env = env

    def act(self, observation: BatchObservation) -> Ints:
        """[B, N] the baseline's assignment for each environment of the observation."""
        assignment = np.full((observation.batch, self._env.n_agents), -1, np.int64)
        # Only the environment knows the padding of its observations; another batch's count as full.
        own = observation.batch == self._env.n_envs
        full = [(self._env.n_agents, self._env.n_tasks)] * observation.batch
        for slot, (agents, tasks) in enumerate(self._env.padded.sizes.tolist() if own else full):
            try:
                chosen = np.asarray(self._baseline(observation_at(observation, slot, agents, tasks)))
            except Exception as error:
                raise EnvError(f"the baseline {self.name!r} of {self._env.name} failed: {in_words(error)}") from error
            self._check(observation, slot, chosen, agents, tasks)
            assignment[slot, :agents] = chosen
        return assignment

    def _check(self, observation: BatchObservation, slot: int, chosen: Ints, agents: int, tasks: int) -> None:
        subject = f"the baseline {self.name!r} of {self._env.name}"
        fits = chosen.shape == (agents,) and (chosen.dtype.kind in "iu" or not agents)
        if not fits or (agents and not -1 <= chosen.min() <= chosen.max() < tasks):
            tasks_of = f"a task from 0 to {tasks - 1}, or -1," if tasks else "-1"
            raise InputError(f"{subject} must give {tasks_of} for each of {agents} agents, got {chosen.tolist()}")
        if observation.allowed is not None and agents:
            forbidden = (chosen >= 0) & ~observation.allowed[slot, np.arange(agents), chosen]
            if forbidden.any():
                agent = int(np.flatnonzero(forbidden)[0])
                raise InputError(f"{subject} sends agent {agent} to task {chosen[agent]}, which `allowed` forbids")
