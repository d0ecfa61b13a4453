"""Stable-Baselines3's PPO for `marl_run.py`."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from marl_run import DISCOUNT, ENVS, EPOCHS, HIDDEN, MINIBATCH, REWARD_SCALE, ROLLOUT, Clock, Episodes, Network
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env.base_vec_env import VecEnv


class Slots(VecEnv):  # type: ignore[misc, unused-ignore]  # typed only where the peer is installed
    """The episodes as SB3 wants them."""

    def __init__(self, episodes: Episodes) -> None:
        self.episodes = episodes
        episodes.reset(np.arange(ENVS))
        seen, _, mask = episodes.see()
        super().__init__(
            ENVS,
            gymnasium.spaces.Box(-np.inf, np.inf, seen.shape[1:], np.float32),
            gymnasium.spaces.MultiDiscrete([mask.shape[2]] * mask.shape[1]),
        )

    def reset(self) -> Any:
        self.episodes.reset(np.arange(ENVS))
        seen, _, self.mask = self.episodes.see()
        return seen

    def step_async(self, actions: Any) -> None:
        self.actions = actions

    def step_wait(self) -> Any:
        result = self.episodes.step(self.actions, self.mask)
        ended = result.terminated | result.truncated
        infos: list[dict[str, Any]] = [{} for _ in range(ENVS)]
        if ended.any():
            last = self.episodes.see()[0]
            for slot in np.flatnonzero(ended):
                cut = bool(result.truncated[slot] and not result.terminated[slot])
                infos[slot] = {"terminal_observation": last[slot], "TimeLimit.truncated": cut}
            self.episodes.reset(np.flatnonzero(ended))
        seen, _, self.mask = self.episodes.see()
        return seen, (result.reward * REWARD_SCALE).astype(np.float32), ended, infos

    def close(self) -> None:
        pass

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [None] * ENVS

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        pass

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        return [None] * ENVS

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        return [False] * ENVS


def learn(name: str, episodes: Episodes, clock: Clock, seed: int, rate: float) -> tuple[dict[str, Network], int]:
    """PPO; its policies, greedy and sampled, and the decisions made."""
    learner = PPO(
        "MlpPolicy",
        Slots(episodes),
        learning_rate=rate,
        n_steps=ROLLOUT,
        batch_size=MINIBATCH,
        n_epochs=EPOCHS,
        gamma=DISCOUNT,
        policy_kwargs={"net_arch": HIDDEN},
        seed=seed,
        device="cpu",
    )

    def made(way: str) -> Network:
        def choose(everything: Any, own: Any, mask: Any) -> Any:
            return learner.predict(everything, deterministic=way == "greedy")[0]

        return Network(f"{name}-{way}", episodes.vectors, choose)

    policies = {way: made(way) for way in ("greedy", "sampled")}
    going = True
    while going:
        learner.learn(ENVS * ROLLOUT, reset_num_timesteps=False)
        going = clock.goes_on(learner.num_timesteps, policies["sampled"])
    return policies, learner.num_timesteps
