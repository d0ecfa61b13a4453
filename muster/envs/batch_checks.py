"""Custom batch environments whose methods are checked where they are called: one sentence names what is wrong."""

from __future__ import annotations

from typing import Any

import numpy as np

from muster.custom import naming
from muster.data import BatchObservation, Ints
from muster.envs.padding import BLOCKS
from muster.envs.vector import BatchEnv, State, Step
from muster.errors import EnvError, InputError
from muster.rng import Seeds

UNKNOWN = -(2**62)
"""Steps of an episode that has ended, or was restored: so few that it never comes to the limit."""


def with_checks(kind: type[BatchEnv]) -> type[BatchEnv]:
    """The class, with arguments, results and exceptions of reset, observe and step checked."""

    class Checked(kind):  # type: ignore[valid-type, misc]
        def reset(self, slots: Ints, seeds: Seeds) -> None:
            with naming(f"reset() of {self.name}", EnvError):
                super().reset(slots, seeds)
            _counted(self)[slots] = 0

        def set_state(self, state: State) -> None:
            super().set_state(state)
            _counted(self)[:] = UNKNOWN

        def observe(self) -> BatchObservation:
            with naming(f"observe() of {self.name}", EnvError):
                observation = super().observe()
            check_observation(self, observation)
            return observation

        def step(self, assignment: Ints) -> Step:
            check_assignment(self, assignment)
            with naming(f"step() of {self.name}", EnvError):
                result = super().step(assignment)
            check_step(self, result)
            counted = _counted(self)
            counted += 1
            counted[result.terminated | result.truncated] = UNKNOWN
            if counted.max() > self.max_steps:
                raise EnvError(f"an episode of {self.name} goes on after max_steps = {self.max_steps}")
            return result

    Checked.__name__, Checked.__qualname__, Checked.__module__ = kind.__name__, kind.__qualname__, kind.__module__
    return Checked


def _counted(env: BatchEnv) -> Ints:
    """[B] steps of each episode since its reset, or a negative number: it has ended, or was restored."""
    steps: Ints = env.__dict__.setdefault("_counted_steps", np.full(env.n_envs, UNKNOWN, np.int64))
    return steps


def check_assignment(env: BatchEnv, assignment: Ints) -> None:
    """Raise InputError unless an assignment has a task index, -1 or IDLE for every agent."""
    shape, tasks = (env.n_envs, env.n_agents), np.asarray(assignment)
    if tasks.shape != shape or tasks.dtype.kind not in "iu":
        raise InputError(
            f"the assignment must be whole numbers of shape {shape}, got {tasks.dtype} of shape {tasks.shape}"
        )
    least = -2 if env.reads_reasons else -1
    if tasks.size and not least <= tasks.min() <= tasks.max() < env.n_tasks:
        raise InputError(f"tasks are {least} to {env.n_tasks - 1}, got {tasks.min()} to {tasks.max()}")


def check_observation(env: BatchEnv, observation: Any) -> None:
    """Raise EnvError unless the arrays of an observation have their shapes and dtypes, and numbers are finite."""
    if not isinstance(observation, BatchObservation):
        raise EnvError(f"observe() of {env.name} must return a muster.BatchObservation, got {observation!r:.80}")
    sizes: dict[str, int | None] = {"N": env.n_agents, "M": env.n_tasks, "F": None}
    for name, block in BLOCKS.items():
        array = getattr(observation, name)
        if array is not None:
            check_array(env, name, array, (env.n_envs, *(sizes[axis] for axis in block.axes)), block.kind)
    if observation.planes is not None:
        check_array(env, "planes", observation.planes, (env.n_envs, None, None, None), np.float32)


def check_step(env: BatchEnv, result: Any) -> None:
    """Raise EnvError unless a step's result is a Step of three arrays [B]."""
    if not isinstance(result, Step):
        raise EnvError(
            f"step() of {env.name} must return muster.Step(reward, terminated, truncated), got {result!r:.80}"
        )
    for name, array, kind in zip(Step._fields, result, (np.floating, np.bool_, np.bool_), strict=True):
        check_array(env, name, array, (env.n_envs,), kind)


def check_array(env: BatchEnv, name: str, array: Any, shape: tuple[int | None, ...], kind: type) -> None:
    """Raise EnvError unless an array has its shape (None: any size) and dtype, and finite numbers."""
    found = getattr(array, "shape", ())
    fits = (
        isinstance(array, np.ndarray)
        and np.issubdtype(array.dtype, kind)
        and len(found) == len(shape)
        and all(want in (None, size) for want, size in zip(shape, found, strict=True))
    )
    if not fits:
        got = f"{array.dtype} of shape {found}" if isinstance(array, np.ndarray) else repr(array)[:80]
        sizes = tuple("any" if size is None else size for size in shape)
        raise EnvError(f"{name} of {env.name} must be an array of {kind.__name__} of shape {sizes}, got {got}")
    if (
        array.dtype.kind == "f"
        and not (fine := np.isfinite(array) | ((name == "capacities") & (array == np.inf))).all()
    ):
        where = np.argwhere(~fine)[0].tolist()
        raise EnvError(f"{name} of {env.name} must be finite, got {array[tuple(where)]} at {where}")
