"""One run of `python -m benchmarks marl`: muster, or in the peers' environment MAPPO, IPPO or Stable-Baselines3's PPO.

    python benchmarks/marl_run.py {muster,sb3,mappo,ippo} ENV --seconds 60 --seed 0 [--pad 5x10] [--larger ENV]

Prints one JSON object. The peers see everything, as muster does: a vector of the features of agents, tasks and pairs,
of one fixed size. SB3's PPO is one network with an output for each agent; MAPPO and IPPO share one network among the
agents, which sees its own features first. Tasks that are gone are masked for MAPPO and IPPO; SB3's PPO knows no masks,
and for it they mean "no task".
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

import muster

ENVS, ROLLOUT, EPOCHS, MINIBATCH = 64, 32, 10, 256
"""As many decisions an update as muster's PPO has by default."""
HIDDEN, DISCOUNT = [128, 128], 0.99
RATES = {"sb3": 1e-3, "mappo": 1e-3, "ippo": 1e-3}
"""SB3's own 0.0003 was no better on rescue:2x4 (18.2 against 17.0 steps after 15 s, seed 90, the curve's episodes)."""
REWARD_SCALE = 10.0
"""Rewards of rescue are -0.01 a step."""
MARKS = (5, 10, 20, 30, 60, 120)
"""CPU seconds at which the policy is evaluated, outside of the clock."""
CURVE_EPISODES, CURVE_SEED, FINAL_SEED = 100, 777, "sealed"
FINAL_EPISODES = {"rescue": 1000, "examples": 200}
"""Of the final figure, by the first word of the environment: foraging is slow."""


class Vectors:
    """What the networks see of a batch of observations, for so many agents and tasks; missing ones are zeros."""

    def __init__(self, n_agents: int, n_tasks: int) -> None:
        self.n, self.m = n_agents, n_tasks

    def __call__(self, observation: Any) -> tuple[Any, Any, Any]:
        """[B, F] of everything, [B, N, F'] of each agent, and the mask [B, N, M + 1] of its options, "none" first."""
        batch, n, m = observation.pair_features.shape[:3]
        if n > self.n or m > self.m:
            raise ValueError(f"the network is made for {self.n}x{self.m} and this is {n}x{m}")
        agents = self._padded(observation.agent_features, (self.n,))
        tasks = self._padded(np.dstack([observation.task_features, observation.task_alive]), (self.m,))
        pairs = self._padded(observation.pair_features, (self.n, self.m))
        everything = np.concatenate([part.reshape(batch, -1) for part in (agents, tasks, pairs)], axis=1)
        others = np.concatenate([agents.reshape(batch, -1), tasks.reshape(batch, -1)], axis=1)
        own = [agents, pairs.reshape(batch, self.n, -1), np.repeat(others[:, None], self.n, axis=1)]
        able = np.broadcast_to(observation.task_alive[:, None], (batch, n, m))
        able = able if observation.allowed is None else able & observation.allowed
        mask = np.zeros((batch, self.n, self.m + 1), bool)
        mask[:, :, 0] = True
        mask[:, :n, 1 : m + 1] = able
        return everything.astype(np.float32), np.concatenate(own, axis=2).astype(np.float32), mask

    def _padded(self, features: Any, sizes: tuple[int, ...]) -> Any:
        padded = np.zeros((len(features), *sizes, features.shape[-1]), np.float32)
        padded[tuple(slice(0, size) for size in features.shape[:-1])] = features
        return padded


class Episodes:
    """Episodes of a batch of an environment, one after the other in each slot."""

    def __init__(self, env: str, seed: int, vectors: Vectors | None = None) -> None:
        self.env = muster.make(env, ENVS)
        self.vectors = vectors or Vectors(self.env.n_agents, self.env.n_tasks)
        self.rng = np.random.default_rng([seed, 4711])

    def reset(self, slots: Any) -> None:
        self.env.reset(slots, self.rng.integers(2**63, size=len(slots)).astype(np.uint64))

    def see(self) -> tuple[Any, Any, Any]:
        return self.vectors(self.env.observe())

    def step(self, actions: Any, mask: Any) -> Any:
        return self.env.step(assignment_of(actions, mask)[:, : self.env.n_agents])


def assignment_of(actions: Any, mask: Any) -> Any:
    """[B, N] tasks of actions that count from "none"; what is masked is none."""
    able = np.take_along_axis(mask, actions[:, :, None], axis=2)[:, :, 0]
    return np.where(able, actions, 0).astype(np.int64) - 1


class Network:
    """A policy for muster's evaluation."""

    def __init__(self, name: str, vectors: Vectors, choose: Callable[[Any, Any, Any], Any]) -> None:
        self.name, self.vectors, self.choose = name, vectors, choose

    def act(self, observation: Any) -> Any:
        everything, own, mask = self.vectors(observation)
        n = observation.agent_features.shape[1]
        return assignment_of(self.choose(everything, own, mask), mask)[:, :n]


class Clock:
    """CPU seconds and decisions of learning: evaluations on the way do not count."""

    def __init__(self, env: str, seconds: float, steps: int | None) -> None:
        self.env, self.seconds, self.steps = env, seconds, steps
        self.curve: list[dict[str, float]] = []
        self.began, self.paused, self.marks = time.process_time(), 0.0, 0

    def spent(self) -> float:
        return time.process_time() - self.began - self.paused

    def progress(self, steps: int) -> float:
        """Share of the run that is over."""
        return self.spent() / self.seconds if self.steps is None else steps / self.steps

    def goes_on(self, steps: int, policy: Any) -> bool:
        """Whether there is time left; evaluates the policy where a mark has been passed."""
        spent, goes_on = self.spent(), self.progress(steps) < 1
        passed = sum(mark <= spent for mark in MARKS)
        if passed > self.marks or not goes_on:
            self.marks = passed
            found = muster.evaluate(policy, self.env, CURVE_EPISODES, CURVE_SEED)
            row = {"seconds": round(spent, 2), "steps": steps, "mean": found.mean}
            self.curve.append(row | {"failed": found.failed / found.episodes})
            self.paused += self.spent() - spent
        return goes_on


def learn_muster(env: str, clock: Clock, seed: int) -> tuple[dict[str, Any], int]:
    """What `muster train ENV` learns with in so many CPU seconds or decisions; its last policy."""
    from muster.learning.learners import make_learner
    from muster.learning.settings import TrainSettings
    from muster.learning.speed import choose_sizes

    length: dict[str, Any] = {"minutes": clock.seconds / 60} if clock.steps is None else {"steps": clock.steps}
    learner = make_learner(choose_sizes(TrainSettings(env=env, seed=seed, **length))[0])
    clock.began = time.process_time()
    while True:
        learner.update(clock.progress(learner.steps))
        if not clock.goes_on(learner.steps, learner.policy()):
            return {"greedy": learner.policy()}, learner.steps


def main() -> None:
    """Learn, evaluate, print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("algorithm", choices=["muster", "sb3", "mappo", "ippo"])
    parser.add_argument("env")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--steps", type=int, help="decisions, in place of seconds")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rate", type=float)
    parser.add_argument("--pad", help="agents x tasks that the network is made for")
    parser.add_argument("--larger", help="an environment to run without further learning")
    given = parser.parse_args()
    warnings.filterwarnings("ignore")
    rate = given.rate or RATES.get(given.algorithm)
    if given.algorithm == "muster":
        clock = Clock(given.env, given.seconds, given.steps)
        policies, steps = learn_muster(given.env, clock, given.seed)
    else:
        import torch

        torch.set_num_threads(1)
        torch.manual_seed(given.seed)
        learn: Any = import_module("marl_sb3" if given.algorithm == "sb3" else "marl_benchmarl").learn
        size = tuple(int(part) for part in given.pad.split("x")) if given.pad else ()
        episodes = Episodes(given.env, given.seed, Vectors(*size) if size else None)
        clock = Clock(given.env, given.seconds, given.steps)
        policies, steps = learn(given.algorithm, episodes, clock, given.seed, rate)
    found = {
        "algorithm": given.algorithm,
        "env": given.env,
        "seed": given.seed,
        "rate": rate,
        "pad": given.pad,
        "steps": steps,
        "seconds": clock.spent(),
        "curve": clock.curve,
        "final": {way: outcome(policy, given.env) for way, policy in policies.items()},
    }
    if given.larger:
        found["larger"] = {"env": given.larger} | {way: outcome(one, given.larger) for way, one in policies.items()}
    print(json.dumps(found))


def outcome(policy: Any, env: str) -> dict[str, Any]:
    """Mean, interval and failures on the final episodes; or why there are none."""
    try:
        episodes = next(count for word, count in FINAL_EPISODES.items() if env.startswith(word))
        found = muster.evaluate(policy, env, episodes, FINAL_SEED)  # type: ignore[arg-type]
    except ValueError as error:
        return {"error": str(error)}
    return {"mean": found.mean, "ci95": list(found.ci95), "failed": found.failed / found.episodes}


if __name__ == "__main__":
    main()
