"""B objects of a user's own class behind the batch contract."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Self, get_args

import numpy as np

from muster.data import BatchObservation, Bools, Floats, Ints
from muster.envs.env import Baseline, Env, Observation
from muster.envs.history import GENERATOR_WORDS, History, pack_generator, pack_states, unpack_generator, unpack_state
from muster.envs.identity import Ids, tasks_now
from muster.envs.padding import Padded, WrongNumberError, observation_at
from muster.envs.renderer import Renderer
from muster.envs.scene import Scene, checked
from muster.envs.vector import BatchEnv, Metric, Policy, State, Step
from muster.errors import EnvError, InputError, MusterError, UnknownNameError, in_words
from muster.rng import Seeds

KEPT = ("seeds", "steps", "running", "returns", "last", "last_agents", "last_tasks", "agent_order", "task_order")
"""Arrays of a batch that its state holds, beside the states or the assignments of the objects."""


class BatchOfSingles(BatchEnv):
    """B objects of a user's class, each with a generator of its own; see `muster.envs.env.Env`."""

    single: ClassVar[type[Env]]

    def __init__(self, n_envs: int = 1, **options: Any) -> None:
        if n_envs < 1:
            raise InputError(f"a batch needs at least 1 environment, got {n_envs}")
        self.name = type(self).single.__name__
        try:
            self.singles = [type(self).single(**options) for _ in range(n_envs)]
        except MusterError:
            raise
        except Exception as error:
            raise InputError(f"{self.name} cannot be made: {in_words(error)}") from error
        first = self.singles[0]
        check_attributes(first, self.name)
        self.metric, self.idling, self.positions = first.metric, bool(first.idling), tuple(first.positions)
        self.distances, self.distance_unit = tuple(first.distances), float(first.distance_unit)
        self.n_envs = n_envs
        self.n_agents, self.n_tasks, self.max_steps = first.n_agents, first.n_tasks, first.max_steps
        self.padded = Padded(self.name, n_envs, self.n_agents, self.n_tasks, first.switch_cost)
        """The present observations, but for those that are `_stale`."""
        self._stale = np.ones(n_envs, np.bool_)
        self._seeds: Seeds = np.zeros(n_envs, np.uint64)
        self.generators = [np.random.default_rng(0) for _ in range(n_envs)]
        self._steps: Ints = np.zeros(n_envs, np.int64)
        self._running = np.zeros(n_envs, np.bool_)
        self._returns = np.zeros(n_envs)
        # The last assignment, and who the agents and tasks of its indices were.
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
        """Reset the objects in these slots, each with a generator of its own."""
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
        """The observations, padded; InputError or EnvError for one that nothing can be made of."""
        self._look()
        return self.padded.observation(self._previous())

    def feature_names(self) -> Mapping[str, Sequence[str]]:
        """Those of the class."""
        return self.singles[0].feature_names

    def step(self, assignment: Ints) -> Step:
        """Step every object whose episode is running; a task that is not there or not allowed means none."""
        assignment = np.asarray(assignment, np.int64)
        if assignment.shape != (self.n_envs, self.n_agents):
            raise InputError(f"the assignment must have shape {(self.n_envs, self.n_agents)}, got {assignment.shape}")
        if assignment.min() < -1 or assignment.max() >= self.n_tasks:
            raise InputError(f"tasks are -1 to {self.n_tasks - 1}, got {assignment.min()} to {assignment.max()}")
        self._look()
        carried = self._possible(assignment)
        slots = np.flatnonzero(self._running)
        agents = self.padded.sizes[:, 0]
        # The objects get a copy: what they do to it stays their own.
        handed, lengths = carried.copy(), agents.tolist()
        reward, terminated = np.zeros(self.n_envs), np.zeros(self.n_envs, np.bool_)
        for slot in slots.tolist():
            try:
                result = self.singles[slot].step(handed[slot, : lengths[slot]])
                if not isinstance(result, (tuple, list)) or len(result) != 2:
                    raise self._failure(
                        "step()", slot, f"it must return the reward and whether the episode is over, got {result!r}"
                    )
                reward[slot], terminated[slot] = result
            except Exception as error:
                raise self._failure("step()", slot, error) from error
        if not np.isfinite(reward).all():
            slot = int(np.flatnonzero(~np.isfinite(reward))[0])
            raise self._failure("step()", slot, f"a reward is not finite, but {reward[slot]}")
        if self._history:
            self._history.append(slots, self._steps[slots], carried[slots], agents[slots])
        self._remember(slots, carried)
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
        return np.array([float(self.ask("won()", slot, single.won)) for slot, single in enumerate(self.singles)])

    def metrics(self) -> dict[str, Floats]:
        """Metrics by name of the episodes that are over; NaN for the others, and for objects without that metric."""
        over = np.flatnonzero(~self._running).tolist()
        found: list[Mapping[str, float]] = [{} for _ in self.singles]
        for slot in over:
            found[slot] = self.ask("metrics()", slot, self.singles[slot].metrics)
        names = {name: None for metrics in found for name in metrics}
        return {name: np.array([float(metrics.get(name, np.nan)) for metrics in found]) for name in names}

    def permute(self, agents: Ints, tasks: Ints) -> bool:
        """Renumber every object; only before the first step of its episode."""
        if self._steps.any() or not all(single.permute(agents, tasks) for single in self.singles):
            return False
        self._agent_order[:] = self._agent_order[:, agents]
        self._task_order[:] = self._task_order[:, tasks]
        self._stale[:] = True
        return True

    def get_state(self) -> State:
        """The objects' own states; or seeds, numbering and assignments, from which every episode can be run again."""
        state: State = {name: array.copy() for name, array in self._arrays().items()}
        if self._history:
            if self._reseeded.any():
                raise MusterError(
                    f"an episode of {self.name} that was given fresh random numbers cannot be run again; define "
                    "get_state() and set_state()"
                )
            return state | self._history.arrays(self._steps, self.name)
        saved = [self.ask("get_state()", slot, single.get_state) for slot, single in enumerate(self.singles)]
        generators = np.array([pack_generator(rng) for rng in self.generators])
        return state | pack_states(saved, self.name) | {"generators": generators.reshape(-1, GENERATOR_WORDS)}

    def set_state(self, state: State) -> None:
        """Hand the objects what they saved, or run every episode again up to where it was."""
        for name, array in self._arrays().items():
            array[...] = state[name]
        self._stale[:] = True
        self._reseeded[:] = False
        for slot, single in enumerate(self.singles):
            self._reset(slot)
            if self._history is None:
                saved = unpack_state(state["own"][slot], int(state["own_bytes"][slot]))
                self.ask("set_state()", slot, partial(single.set_state, saved))
                unpack_generator(self.generators[slot], state["generators"][slot])
            else:
                self._run_again(slot, state)
        if self._history:
            self._history.restore(state["history"], state["history_agents"])

    def running(self) -> Bools:
        """[B] where the episode is not over."""
        return self._running.copy()

    def reseed(self, seeds: Seeds) -> None:
        """Other numbers from the objects' generators from now on, and `redraw` for what was drawn before."""
        for slot, (seed, rng) in enumerate(zip(seeds.tolist(), self.generators, strict=True)):
            rng.bit_generator.state = np.random.default_rng(seed).bit_generator.state
            self.ask("redraw()", slot, partial(self.singles[slot].redraw, rng))
        self._reseeded[:] = True

    def renderer(self) -> Renderer:
        """What the objects say of themselves."""
        return SinglesRenderer(self)

    @classmethod
    def baselines(cls) -> Mapping[str, Callable[[Self], Policy]]:
        """The class's baselines, each as a policy."""

        def policy(name: str, baseline: Baseline) -> Callable[[Self], Policy]:
            return lambda env: BaselinePolicy(name, baseline, env)

        return {name: policy(name, baseline) for name, baseline in cls.single.baselines().items()}

    def _arrays(self) -> State:
        return {name: getattr(self, f"_{name}") for name in KEPT}

    def _reset(self, slot: int) -> None:
        rng = self.generators[slot] = np.random.default_rng(int(self._seeds[slot]))
        self.ask("reset()", slot, partial(self.singles[slot].reset, rng))

    def _run_again(self, slot: int, state: State) -> None:
        single, steps = self.singles[slot], int(self._steps[slot])
        agents, tasks = self._agent_order[slot], self._task_order[slot]
        if (np.diff(agents) < 0).any() or (np.diff(tasks) < 0).any():
            single.permute(agents, tasks)
        past = state["history"][slot, :steps].astype(np.int64)
        for assignment, length in zip(past, state["history_agents"][slot, :steps].tolist(), strict=True):
            self.ask("step()", slot, partial(single.step, assignment[:length]))

    def _look(self) -> None:
        """Observe the objects that have moved since."""
        slots = np.flatnonzero(self._stale)
        if not len(slots):
            return
        slot = 0
        try:
            # Numbers too large for a feature become infinite here, and are refused below.
            with np.errstate(over="ignore", invalid="ignore"):
                for slot in slots.tolist():
                    one = self.singles[slot].observe()
                    if not isinstance(one, Observation):
                        raise self._failure("observe()", slot, f"it must return an Observation, got {one!r}")
                    self.padded.write(slot, one)
            self.padded.check(slots)
        except WrongNumberError as wrong:
            raise self._failure("observe()", wrong.slot, str(wrong)) from None
        except InputError:
            raise
        except Exception as error:
            raise self._failure("observe()", slot, error) from error
        self._stale[slots] = False

    def _possible(self, assignment: Ints) -> Ints:
        """The assignment without what cannot be: agents and tasks that are not alive, pairs that are not allowed."""
        arrays, at = self.padded.arrays, np.maximum(assignment, 0)
        fine = (assignment >= 0) & arrays["agent_alive"] & np.take_along_axis(arrays["task_alive"], at, axis=1)
        if "allowed" in arrays:
            fine &= np.take_along_axis(arrays["allowed"], at[:, :, None], axis=2)[:, :, 0]
        return np.where(fine, assignment, -1)

    def _remember(self, slots: Ints, carried: Ints) -> None:
        self._last[slots] = carried[slots]
        for name, last in (("agent_ids", self._last_agents), ("task_ids", self._last_tasks)):
            if name in self.padded.arrays:
                last[slots] = self.padded.arrays[name][slots]

    def _previous(self) -> Ints:
        """[B, N] the index, now, of the task that each agent, now, had after the last decision."""
        arrays = self.padded.arrays
        now = Ids(arrays.get("agent_ids"), arrays.get("task_ids"))
        last = tasks_now(self._last, Ids(self._last_agents, self._last_tasks), now)
        there = np.take_along_axis(arrays["task_alive"], np.maximum(last, 0), axis=1)
        return np.where((last >= 0) & there, last, -1)

    def changed(self, slot: int) -> None:
        """The object in `slot` has to be observed again."""
        self._stale[slot] = True

    def ask(self, what: str, slot: int, question: Callable[[], Any]) -> Any:
        """The answer of an object; EnvError with its step and seed where it fails."""
        try:
            return question()
        except Exception as error:
            raise self._failure(what, slot, error) from error

    def _failure(self, what: str, slot: int, why: Exception | str) -> MusterError:
        if isinstance(why, MusterError):
            return why
        return EnvError(
            f"{what} of {self.name} failed at step {int(self._steps[slot])} of the episode with seed "
            f"{int(self._seeds[slot])} (slot {slot} of {self.n_envs}): {why if isinstance(why, str) else in_words(why)}"
        )


class SinglesRenderer(Renderer):
    """Shows what the objects of a user's class say of themselves, or else what their observations do."""

    env: BatchOfSingles

    def scene(self, slot: int) -> Scene:
        """What the object in `slot` says, or what its observation does."""
        env = self.env
        found = env.ask("scene()", slot, env.singles[slot].scene)
        return super().scene(slot) if found is None else checked(found, env.n_agents, env.n_tasks, env.name)

    def arrange(self, slot: int, agents: Floats, tasks: Floats) -> None:
        """Let the object in `slot` put its agents and tasks there."""
        self.env.ask("arrange()", slot, partial(self.env.singles[slot].arrange, agents, tasks))
        self.env.changed(slot)

    def draw(self, slot: int) -> Any:
        """What the object in `slot` draws."""
        return self.env.singles[slot].draw()

    def describe(self, slot: int) -> str:
        """What the object in `slot` says of itself."""
        return self.env.singles[slot].describe()

    def can(self, method: str) -> bool:
        """Whether the class has a `method` of its own."""
        return getattr(self.env.single, method) is not getattr(Env, method)


def batched(single: type[Env]) -> type[BatchOfSingles]:
    """The batch class of a user's class."""
    return type(f"BatchOf{single.__name__}", (BatchOfSingles,), {"single": single, "__doc__": single.__doc__})


def check_attributes(env: Env, name: str) -> None:
    """Refuse an environment whose sizes or metric nothing can be made of."""
    for attribute, what in (
        ("n_agents", "the most agents that there ever are"),
        ("n_tasks", "the most tasks that there ever are at once"),
        ("max_steps", "the step limit"),
    ):
        value = getattr(env, attribute, None)
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
            raise InputError(f"{name} must have {attribute}, {what}, a whole number from 1; got {value!r}")
    if env.metric not in get_args(Metric):
        raise UnknownNameError("metric", str(env.metric), get_args(Metric), f"for {name}")
    if (type(env).get_state is Env.get_state) != (type(env).set_state is Env.set_state):
        raise InputError(f"{name} must define both get_state() and set_state(), or neither")
    try:
        cost = np.broadcast_to(np.asarray(env.switch_cost, np.float64), (env.n_agents, env.n_tasks))
    except ValueError:
        raise InputError(f"switch_cost of {name} must be a number or [n_agents, n_tasks]") from None
    if not (np.isfinite(cost) & (cost >= 0)).all():
        raise InputError(f"switch_cost of {name} must be finite and not negative")


class BaselinePolicy(Policy):
    """A baseline for one environment, applied to each environment of a batch."""

    def __init__(self, name: str, baseline: Baseline, env: BatchOfSingles) -> None:
        self.name = name
        self.about = (baseline.__doc__ or "").strip().partition("\n")[0]
        self._baseline = baseline
        self._env = env

    def act(self, observation: BatchObservation) -> Ints:
        """[B, N] what the baseline says for each environment of the observation."""
        assignment = np.full((observation.batch, self._env.n_agents), -1, np.int64)
        # Only the environment itself knows what is padding; the observation of another batch counts as full.
        ours = observation.batch == self._env.n_envs
        full = [(self._env.n_agents, self._env.n_tasks)] * observation.batch
        for slot, (agents, tasks) in enumerate(self._env.padded.sizes.tolist() if ours else full):
            try:
                chosen = np.asarray(self._baseline(observation_at(observation, slot, agents, tasks)))
            except Exception as error:
                raise EnvError(f"the baseline {self.name!r} of {self._env.name} failed: {in_words(error)}") from error
            self._check(observation, slot, chosen, agents, tasks)
            assignment[slot, :agents] = chosen
        return assignment

    def _check(self, observation: BatchObservation, slot: int, chosen: Ints, agents: int, tasks: int) -> None:
        which = f"the baseline {self.name!r} of {self._env.name}"
        fits = chosen.shape == (agents,) and (chosen.dtype.kind in "iu" or not agents)
        if not fits or (agents and not -1 <= chosen.min() <= chosen.max() < tasks):
            tasks_of = f"a task from 0 to {tasks - 1}, or -1," if tasks else "-1"
            raise InputError(f"{which} must give {tasks_of} for each of {agents} agents, got {chosen.tolist()}")
        if observation.allowed is not None and agents:
            forbidden = (chosen >= 0) & ~observation.allowed[slot, np.arange(agents), chosen]
            if forbidden.any():
                agent = int(np.flatnonzero(forbidden)[0])
                raise InputError(f"{which} sends agent {agent} to task {chosen[agent]}, which `allowed` forbids")
