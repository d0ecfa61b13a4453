"""Small environments that use what the contract offers, for tests."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from muster.data import Ints
from muster.envs.env import Baseline, Env, Observation


class Orders(Env):
    """Pickers and orders that come and go: views of any length, ids, allowed pairs, a prior, a global feature."""

    metric, max_steps, idling = "return", 30, True

    def __init__(self, n_agents: int = 3, n_tasks: int = 5, rate: float = 0.5, kind: Literal["a", "b"] = "a") -> None:
        if rate < 0:
            raise ValueError("rate must not be negative")
        self.n_agents, self.n_tasks, self.rate, self.kind = n_agents, n_tasks, rate, kind

    def reset(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.pickers = rng.random((self.n_agents, 1))
        self.on_duty = np.arange(self.n_agents)
        self.orders, self.ids, self.next_id = np.zeros((0, 1)), np.zeros(0, np.int64), 0
        self.served = self.t = 0
        self.heard: list[Any] = []
        self.arrive()

    def arrive(self) -> None:
        coming = min(self.rng.poisson(self.rate * self.n_agents), self.n_tasks - len(self.ids))
        self.orders = np.concatenate([self.orders, self.rng.random((coming, 1))])
        self.ids = np.append(self.ids, self.next_id + np.arange(coming))
        self.next_id += int(coming)
        self.on_duty = np.flatnonzero(self.rng.random(self.n_agents) < 0.8)

    def observe(self) -> Observation:
        here = self.pickers[self.on_duty]
        distance = np.abs(here - self.orders[:, 0])
        return Observation(
            agent_features=here,
            task_features=self.orders,
            allowed=distance < 0.7,
            prior=-distance,
            global_features=[self.t / 30],
            agent_ids=self.on_duty,
            task_ids=self.ids,
        )

    def step(self, assignment: Ints) -> tuple[float, bool]:
        self.heard.append((assignment.copy(), self.on_duty, self.ids))
        done = np.zeros(len(self.ids), bool)
        for agent, task in zip(self.on_duty, assignment, strict=True):
            if task >= 0:
                self.pickers[agent] += np.clip(self.orders[task] - self.pickers[agent], -0.3, 0.3)
                done[task] |= abs(self.pickers[agent, 0] - self.orders[task, 0]) < 1e-9
        self.orders, self.ids = self.orders[~done], self.ids[~done]
        self.served += int(done.sum())
        self.t += 1
        self.arrive()
        return float(done.sum()), False

    def metrics(self) -> Mapping[str, float]:
        return {"served": self.served}

    @classmethod
    def baselines(cls) -> Mapping[str, Baseline]:
        return {"nearest": nearest}


def nearest(view: Observation) -> Ints:
    """Everyone to the nearest order that is allowed."""
    prior = np.asarray(view.prior)
    if not prior.shape[1]:
        return np.full(len(prior), -1)
    wish = np.where(view.allowed, prior, -np.inf)
    return np.where(np.isfinite(wish.max(axis=1)), wish.argmax(axis=1), -1)


class SavedOrders(Orders):
    """The same, saving itself."""

    def get_state(self) -> Mapping[str, Any]:
        names = ("pickers", "on_duty", "orders", "ids", "next_id", "served", "t")
        return {name: getattr(self, name) for name in names}

    def set_state(self, state: Mapping[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value if value.ndim else int(value))


class NoBaselines(Orders):
    """The same without baselines, and without a prior if told so."""

    def __init__(self, n_agents: int = 3, n_tasks: int = 5, prior: bool = True) -> None:
        super().__init__(n_agents, n_tasks)
        self.with_prior = prior

    def observe(self) -> Observation:
        """What is seen."""
        seen = super().observe()
        return seen if self.with_prior else dataclasses.replace(seen, prior=None)

    @classmethod
    def baselines(cls) -> Mapping[str, Baseline]:
        """None."""
        return {}


class Raises(Env):
    """Shows something and then fails."""

    n_agents, n_tasks, max_steps = 2, 3, 10

    def reset(self, rng: np.random.Generator) -> None:
        del rng

    def observe(self) -> Observation:
        return Observation(np.zeros((2, 1)), np.zeros((3, 1)))

    def step(self, assignment: Ints) -> tuple[float, bool]:
        raise KeyError("boom")
