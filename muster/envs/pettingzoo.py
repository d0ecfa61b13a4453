"""PettingZoo environments: a `ParallelEnv` in which every agent chooses its own task."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.utils import seeding
from numpy.typing import NDArray

from muster.envs.gymnasium import FRAMES_A_SECOND, checked_render_mode, episode_seed, render_modes, show, space_of
from muster.envs.registry import make
from muster.envs.vector import BatchEnv
from muster.errors import MissingExtraError

try:
    from pettingzoo import ParallelEnv
except ImportError:
    raise MissingExtraError("the pettingzoo adapter", "pettingzoo") from None

Arrays = dict[str, NDArray[Any]]


class ParallelAssignment(ParallelEnv):  # type: ignore[misc]  # pettingzoo ships no types
    """Agents "agent_0", "agent_1", …, which observe themselves, all agents and all tasks, and share the team's reward.

    An action is a task index, or -1 for none; `action_mask` says which are possible, beginning with -1.
    """

    def __init__(self, env: BatchEnv, render_mode: str | None = None) -> None:
        self.metadata: dict[str, Any] = {
            "name": "muster",
            "render_modes": render_modes(env),
            "render_fps": FRAMES_A_SECOND,
            "is_parallelizable": True,
        }
        self.batch_env = env
        self.render_mode = checked_render_mode(render_mode, env)
        self.possible_agents = [f"agent_{i}" for i in range(env.n_agents)]
        self.agents: list[str] = []
        self._numbers = {agent: i for i, agent in enumerate(self.possible_agents)}
        self._rng = seeding.np_random(None)[0]
        example = self._observe(self.possible_agents)
        self._observation_spaces = {
            agent: spaces.Dict({name: space_of(name, array) for name, array in observation.items()})
            for agent, observation in example.items()
        }
        self._action_spaces = {agent: spaces.Discrete(env.n_tasks + 1, start=-1) for agent in self.possible_agents}

    def observation_space(self, agent: str) -> spaces.Dict:
        """The space of an agent's observation."""
        return self._observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Discrete:
        """The space of actions: -1 or a task index."""
        return self._action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Arrays], dict[str, dict[str, Any]]]:
        """Start an episode; later episodes without a seed follow from the last seed."""
        if seed is not None:
            self._rng = seeding.np_random(seed)[0]
        self.batch_env.reset(np.arange(1), np.array([episode_seed(self._rng)]))
        self.agents = self.possible_agents[:]
        return self._observe(self.agents), {agent: {} for agent in self.agents}

    def step(
        self, actions: dict[str, int]
    ) -> tuple[dict[str, Arrays], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        """Carry out the agents' actions; agents that are no longer alive terminate."""
        assignment = np.full((1, self.batch_env.n_agents), -1, np.int64)
        for agent, task in actions.items():
            assignment[0, self._numbers[agent]] = task
        acting = self.agents
        result = self.batch_env.step(assignment)
        alive = self.batch_env.observe().agent_alive[0]
        ended = bool(result.terminated[0])
        terminated = {agent: ended or not alive[self._numbers[agent]] for agent in acting}
        truncated = dict.fromkeys(acting, bool(result.truncated[0]))
        observation, reward = self._observe(acting), dict.fromkeys(acting, float(result.reward[0]))
        self.agents = [agent for agent in acting if not (terminated[agent] or truncated[agent])]
        return observation, reward, terminated, truncated, {agent: {} for agent in acting}

    def render(self) -> Any:
        """A picture [height, width, 3] or text, by `render_mode`."""
        return show(self.batch_env, 0, self.render_mode)

    def _observe(self, agents: list[str]) -> dict[str, Arrays]:
        observation = self.batch_env.observe()
        alive = np.broadcast_to(observation.task_alive[0], (self.batch_env.n_agents, self.batch_env.n_tasks))
        possible = alive if observation.allowed is None else alive & observation.allowed[0]
        common = {
            "agents": observation.agent_features[0],
            "tasks": observation.task_features[0],
            "task_pairs": observation.task_pair_features[0],
            "capacities": observation.capacities[0],
        }
        observations = {}
        for agent in agents:
            i = self._numbers[agent]
            own = {
                "self": observation.agent_features[0, i],
                "pairs": observation.pair_features[0, i],
                "contributions": observation.contributions[0, i],
                "action_mask": np.append(True, possible[i]).astype(np.int8),
            }
            observations[agent] = {name: array.copy() for name, array in (common | own).items() if array.size}
        return observations


def parallel_env(env: str | type, render_mode: str | None = None, **options: Any) -> ParallelAssignment:
    """A pettingzoo ParallelEnv of an environment string such as "rescue:3x6", or of a class, with its options."""
    return ParallelAssignment(make(env, **options), render_mode)
