"""Gymnasium environments: single (`gymnasium.make`) and vector (`gymnasium.make_vec`).

An action is an assignment: a task index, or -1 for none, for each agent. Settings of the environment string are keyword
arguments: `gymnasium.make("muster/SearchRescue-v0", agents=5, tasks=10, grid=32)`.

Some learners, such as those of Stable-Baselines3, need actions that start at 0. With `start=0`, 0 is no task and j + 1
is task j. Observations are dictionaries; gymnasium's wrapper makes a vector of them:

    env = FlattenObservation(gymnasium.make("muster/Assignment-v0", env="couriers:Couriers", start=0))
    PPO("MlpPolicy", env).learn(10_000)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from muster.data import BatchObservation, Bools, Ints
from muster.envs.registry import make
from muster.envs.vector import BatchEnv
from muster.errors import InputError, MissingExtraError

RENDER_MODES = {"rgb_array": "draw", "ansi": "describe"}
"""Render mode -> method of a renderer."""
FRAMES_A_SECOND = 4
SIZES: dict[str, dict[str, Any]] = {
    "rescue": {"agents": 2, "tasks": 4},
    "battle": {"scenario": "w15v17"},
    "pursuit": {"agents": 4, "tasks": 2},
    "fleet": {"vehicles": 24},
}
"""{family: settings at the beginning of its environment string, with defaults}."""

Arrays = dict[str, NDArray[Any]]


class AssignmentEnv(gymnasium.Env[Arrays, Ints]):
    """An environment with one slot as a `gymnasium.Env`."""

    def __init__(self, env: BatchEnv, render_mode: str | None = None, start: int = -1) -> None:
        self.metadata = {"render_modes": render_modes(env), "render_fps": FRAMES_A_SECOND}
        self.batch_env = env
        self.render_mode = checked_render_mode(render_mode, env)
        self.start = checked_start(start)
        self.observation_space = observation_space(env)
        self.action_space = action_space(env, start)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Arrays, dict[str, Any]]:
        """Start an episode; later episodes without a seed follow from the last seed."""
        super().reset(seed=seed)
        self.batch_env.reset(np.arange(1), np.array([episode_seed(self.np_random)]))
        return self._observe(), {}

    def step(self, action: Ints) -> tuple[Arrays, float, bool, bool, dict[str, Any]]:
        """Carry out an assignment; `info["outcome"]` is the outcome so far."""
        result = self.batch_env.step(assignment_of(action, self.start)[None])
        info = {"outcome": float(self.batch_env.outcome()[0])}
        return self._observe(), float(result.reward[0]), bool(result.terminated[0]), bool(result.truncated[0]), info

    def render(self) -> Any:
        """A picture [height, width, 3] or text, by `render_mode`."""
        return show(self.batch_env, 0, self.render_mode)

    def _observe(self) -> Arrays:
        return {name: array[0] for name, array in as_dict(self.batch_env.observe()).items()}


class AssignmentVectorEnv(VectorEnv[Arrays, Ints, NDArray[Any]]):
    """A batch of environments as a gymnasium `VectorEnv`; a slot is reset in the step after its end (NEXT_STEP)."""

    def __init__(self, env: BatchEnv, render_mode: str | None = None, start: int = -1) -> None:
        self.metadata = {
            "render_modes": render_modes(env),
            "render_fps": FRAMES_A_SECOND,
            "autoreset_mode": AutoresetMode.NEXT_STEP,
        }
        self.batch_env = env
        self.render_mode = checked_render_mode(render_mode, env)
        self.start = checked_start(start)
        self.num_envs = env.n_envs
        self.single_observation_space = observation_space(env)
        self.single_action_space = action_space(env, start)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._rngs = [seeding.np_random(None)[0] for _ in range(self.num_envs)]
        self._ended: Bools = np.zeros(self.num_envs, np.bool_)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Arrays, dict[str, Any]]:
        """Start an episode in every slot; slot i of seed s has the episodes of a single environment of seed s + i."""
        seeds = [seed + i for i in range(self.num_envs)] if isinstance(seed, int) else seed
        if seeds is not None:
            if len(seeds) != self.num_envs:
                raise InputError(f"{self.num_envs} environments need as many seeds, got {len(seeds)}")
            for slot, slot_seed in enumerate(seeds):
                if slot_seed is not None:
                    self._rngs[slot] = seeding.np_random(slot_seed)[0]
        self._start(np.arange(self.num_envs))
        self._ended[:] = False
        return as_dict(self.batch_env.observe()), {}

    def step(self, actions: Ints) -> tuple[Arrays, NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]:
        """Carry out assignments [B, N]; slots whose episode has ended ignore the action and are reset."""
        result = self.batch_env.step(assignment_of(actions, self.start))
        # Ended slots did not change in this step; they are reset.
        again = self._ended.copy()
        self._start(np.flatnonzero(again))
        reward = np.where(again, 0.0, result.reward)
        terminated, truncated = result.terminated & ~again, result.truncated & ~again
        self._ended = terminated | truncated
        return as_dict(self.batch_env.observe()), reward, terminated, truncated, {"outcome": self.batch_env.outcome()}

    def render(self) -> tuple[Any, ...] | None:
        """Pictures or texts of all slots."""
        if self.render_mode is None:
            return None
        return tuple(show(self.batch_env, slot, self.render_mode) for slot in range(self.num_envs))

    def _start(self, slots: Ints) -> None:
        if slots.size:
            self.batch_env.reset(slots, np.array([episode_seed(self._rngs[slot]) for slot in slots]))


def single(family: str, render_mode: str | None = None, start: int = -1, **settings: Any) -> AssignmentEnv:
    """The entry point of `gymnasium.make`; `settings` are those of the environment string.

    For `muster/Assignment-v0` they are `env`, any environment string or class, and its options.
    """
    return AssignmentEnv(_make(family, 1, settings), render_mode, start)


def vector(
    family: str, num_envs: int = 1, render_mode: str | None = None, start: int = -1, **settings: Any
) -> AssignmentVectorEnv:
    """The entry point of `gymnasium.make_vec`."""
    return AssignmentVectorEnv(_make(family, num_envs, settings), render_mode, start)


def _make(family: str, num_envs: int, settings: dict[str, Any]) -> BatchEnv:
    if not family:
        return make(settings.pop("env", "rescue:2x4"), num_envs, **settings)
    size = [str(settings.pop(name, default)) for name, default in SIZES[family].items()]
    return make(f"{family}:{'x'.join(size)}", num_envs, **settings)


def observation_space(env: BatchEnv) -> Any:
    """The space of one slot's observation: a dictionary of the blocks that are not empty."""
    return spaces.Dict({name: space_of(name, array[0]) for name, array in as_dict(env.observe()).items()})


def action_space(env: BatchEnv, start: int = -1) -> spaces.MultiDiscrete:
    """The space of actions: `start` (no task) or one of the M numbers after it, for each agent."""
    return spaces.MultiDiscrete(np.full(env.n_agents, env.n_tasks + 1), start=np.full(env.n_agents, start))


def assignment_of(action: Any, start: int) -> Ints:
    """The assignment of an action whose numbers begin at `start`."""
    return np.asarray(action, np.int64) - (start + 1)


def as_dict(observation: BatchObservation) -> Arrays:
    """{name: array} of the observation's blocks that are not empty; masks as 0 and 1."""
    blocks = {field.name: getattr(observation, field.name) for field in fields(observation)}
    return {
        name: array.astype(np.int8) if array.dtype == np.bool_ else array
        for name, array in blocks.items()
        if array is not None and array.size
    }


def show(env: BatchEnv, slot: int, render_mode: str | None) -> Any:
    """A picture [height, width, 3], text, or None, by `render_mode`."""
    if render_mode is None:
        return None
    renderer = env.renderer()
    if render_mode != "rgb_array":
        return renderer.describe(slot)
    try:
        return np.asarray(renderer.draw(slot), np.uint8)
    except ModuleNotFoundError as error:  # built-in environments draw with pillow
        if error.name != "PIL":
            raise
        raise MissingExtraError("a picture", "plot", "use render_mode='ansi'") from None


def episode_seed(rng: np.random.Generator) -> np.uint64:
    """The 64-bit seed of the next episode."""
    return rng.integers(2**64, dtype=np.uint64)


def space_of(name: str, example: NDArray[Any]) -> spaces.Space[Any]:
    """The space of a block: finite numbers, not negative for capacities, contributions and cells."""
    if example.dtype == np.int8:
        return spaces.MultiBinary(example.shape)
    kind: Any = example.dtype.type
    limits = np.iinfo(kind) if np.issubdtype(kind, np.integer) else np.finfo(kind)
    low = 0 if name in ("contributions", "capacities", "agent_cells", "task_cells") else limits.min
    return spaces.Box(low, limits.max, example.shape, kind)


def render_modes(env: BatchEnv) -> list[str]:
    """Render modes of an environment: those whose method its renderer defines."""
    renderer = env.renderer()
    return [mode for mode, method in RENDER_MODES.items() if renderer.can(method)]


def checked_render_mode(render_mode: str | None, env: BatchEnv) -> str | None:
    """The render mode; raises InputError if the environment does not have it."""
    modes = render_modes(env)
    if render_mode is None or render_mode in modes:
        return render_mode
    if render_mode in RENDER_MODES:
        raise InputError(f"{env.name} defines no {RENDER_MODES[render_mode]}(), which {render_mode} shows")
    raise InputError(f"render_mode is one of {', '.join(RENDER_MODES)} or None, got {render_mode!r}")


def checked_start(start: int) -> int:
    """The number of the action "no task"; raises InputError if it is neither -1 nor 0."""
    if start not in (-1, 0):
        raise InputError(f"start is -1 (an action is a task index, or -1) or 0 (0 is no task), got {start!r}")
    return start
