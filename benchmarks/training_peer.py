"""Stable-Baselines3's A2C and PPO on a stub of the rescue environment; run in the peers' own environment.

The stub has the env's observation and score-action sizes and episode lengths, and costs next to nothing, so what is
measured is the learner.
"""

from __future__ import annotations

import json
import time
from typing import Any

import gymnasium
import numpy as np
import torch
from stable_baselines3 import A2C, PPO
from stable_baselines3.common.vec_env.base_vec_env import VecEnv

EPISODE = 12
# Environments, decisions between two updates, and updates; PPO as our actor-critic learns from choices.
SHAPES = {"a2c": (256, 5, 100), "ppo": (128, 32, 30)}
MINIBATCHES = 4


class Stub(VecEnv):  # type: ignore[misc, unused-ignore]  # typed only where the peer is installed
    """Random observations, constant reward, fixed episode length."""

    def __init__(self, agents: int, tasks: int, envs: int) -> None:
        self.envs = envs
        self.width = 2 * agents + 3 * tasks
        actions = agents * tasks + tasks * tasks
        super().__init__(
            envs,
            gymnasium.spaces.Box(-1, 1, (self.width,), np.float32),
            gymnasium.spaces.Box(-10, 10, (actions,), np.float32),
        )
        self.rng = np.random.default_rng(0)
        self.clock = np.zeros(envs, np.int64)

    def reset(self) -> Any:
        return self.rng.random((self.envs, self.width), np.float32)

    def step_async(self, actions: Any) -> None:
        del actions

    def step_wait(self) -> Any:
        self.clock += 1
        done = self.clock >= EPISODE
        self.clock[done] = 0
        seen = self.rng.random((self.envs, self.width), np.float32)
        infos: list[dict[str, Any]] = [{"terminal_observation": seen[k]} if done[k] else {} for k in range(self.envs)]
        return seen, np.full(self.envs, -0.01, np.float32), done, infos

    def close(self) -> None:
        pass

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [None] * self.envs

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        pass

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        return [None] * self.envs

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        return [False] * self.envs


def rate(kind: str, agents: int, tasks: int) -> float:
    """Environment steps per CPU second."""
    torch.set_num_threads(1)
    envs, decisions, updates = SHAPES[kind]
    size = envs * decisions
    shared: dict[str, Any] = {"n_steps": decisions, "policy_kwargs": {"net_arch": [32, 32, 32]}, "device": "cpu"}
    stub = Stub(agents, tasks, envs)
    learner = A2C("MlpPolicy", stub, **shared)
    if kind == "ppo":
        learner = PPO("MlpPolicy", stub, batch_size=size // MINIBATCHES, n_epochs=1, **shared)
    learner.learn(size * updates // 10)
    began = time.process_time()
    learner.learn(size * updates)
    return size * updates / (time.process_time() - began)


if __name__ == "__main__":
    print(json.dumps({kind: {"2x4": rate(kind, 2, 4), "5x10": rate(kind, 5, 10)} for kind in SHAPES}))
