"""A warehouse where orders arrive all the time: task indices are used again, and ids identify the orders.

    muster check-env examples.warehouse:Warehouse
    muster train examples.warehouse:Warehouse --model dm --learner es --inference lp --minutes 2.5 --out run
    muster compare worth nearest run examples.warehouse:Warehouse --episodes 500 --seed 1
    muster compare worth nearest run examples.warehouse:Warehouse,n_agents=20,n_tasks=60 --episodes 200 --seed 1

An order has a value and is lost if no robot arrives in time. The reward is the value delivered, so the metric is
"return". Pairs of robots and orders that could not meet in time are not allowed.

The results of these commands are in docs/cookbook/warehouse.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from muster.envs.env import Baseline, Env, Observation
from muster.envs.scene import GREEN, ORANGE, Look, Scene, Stage

VALUES = (1.0, 4.0)
PATIENCE = (6, 16)
ARRAYS = ("robots", "places", "value", "left", "ids")
LOOKS = (Look("robots", "square"), Look("orders", "disc", GREEN), Look("dear orders", "diamond", ORANGE))


class Warehouse(Env):
    """Robots on the unit square fetch orders; in four steps one order per robot arrives, which is too many to serve."""

    metric = "return"
    switch_cost = 0.05

    def __init__(
        self, n_agents: int = 4, n_tasks: int = 12, rate: float = 0.25, speed: float = 0.05, steps: int = 60
    ) -> None:
        self.n_agents, self.n_tasks = n_agents, n_tasks
        self.rate, self.speed, self.steps = rate, speed, steps
        self.max_steps = steps + 1

    def reset(self, rng: np.random.Generator) -> None:
        """Place robots at random; the only orders are those of the first step."""
        self.rng, self.t, self.next_id, self.served = rng, 0, 0, 0
        self.robots = rng.random((self.n_agents, 2))
        self.places, self.value = np.zeros((self.n_tasks, 2)), np.zeros(self.n_tasks)
        self.left, self.ids = np.zeros(self.n_tasks, np.int64), np.full(self.n_tasks, -1)
        self.arrive()

    def arrive(self) -> None:
        """Put new orders into free indices; orders without one are turned away."""
        coming = np.flatnonzero(self.ids < 0)[: self.rng.poisson(self.rate * self.n_agents)]
        self.places[coming] = self.rng.random((len(coming), 2))
        self.value[coming] = self.rng.choice(VALUES, len(coming))
        self.left[coming] = self.rng.integers(*PATIENCE, len(coming))
        self.ids[coming] = self.next_id + np.arange(len(coming))
        self.next_id += len(coming)

    def observe(self) -> Observation:
        """Positions, values and deadlines; the prior is the value that a robot would earn per step."""
        way = self.places - self.robots[:, None]
        needed = np.maximum(np.ceil(np.linalg.norm(way, axis=-1) / self.speed), 1)
        slack = np.maximum(self.left - needed, 0)
        worth = self.value / needed
        return Observation(
            agent_features=self.robots,
            task_features=np.column_stack([self.places, self.value, self.left / 10]),
            pair_features=np.stack([needed / 10, slack / 10, worth], axis=-1),
            task_alive=self.ids >= 0,
            allowed=(needed <= self.left) & (self.ids >= 0),
            prior=worth,
            global_features=[np.mean(self.ids >= 0)],
            task_ids=self.ids,
        )

    def step(self, assignment: np.ndarray) -> tuple[float, bool]:
        """Move robots, deliver the orders that are reached, and lose those that waited too long."""
        going, task = np.flatnonzero(assignment >= 0), assignment[assignment >= 0]
        way = self.places[task] - self.robots[going]
        length = np.linalg.norm(way, axis=1)
        self.robots[going] += way * np.minimum(1, self.speed / np.maximum(length, 1e-12))[:, None]
        reached = np.unique(task[length <= self.speed])
        reward = float(self.value[reached].sum())
        self.served += len(reached)
        self.ids[reached] = -1
        self.left -= 1
        self.ids[self.left <= 0] = -1
        self.arrive()
        self.t += 1
        return reward, self.t >= self.steps

    def metrics(self) -> Mapping[str, float]:
        """Numbers of orders delivered, and of all orders."""
        return {"served": self.served, "orders": self.next_id}

    def get_state(self) -> Mapping[str, Any]:
        """Everything that changes; muster saves the generator."""
        return {name: getattr(self, name) for name in (*ARRAYS, "t", "next_id", "served")}

    def set_state(self, state: Mapping[str, np.ndarray]) -> None:
        """Restore what `get_state` returned."""
        for name, value in state.items():
            setattr(self, name, value if name in ARRAYS else int(value))

    @classmethod
    def baselines(cls) -> Mapping[str, Baseline]:
        """Two greedy baselines to beat."""
        return {"worth": worth, "nearest": nearest}

    def scene(self) -> Scene:
        """Robots and orders; the look of an order shows its value, and its bar the time left."""
        stage = Stage(LOOKS, bounds=(0.0, 0.0, 1.0, 1.0))
        looks = np.where(self.value == VALUES[0], 1, 2)
        waits = np.clip(self.left / PATIENCE[1], 0, 1)
        return Scene(
            self.robots, self.places, task_looks=looks, task_health=waits, text=f"{self.served} served", stage=stage
        )

    def describe(self) -> str:
        """The waiting orders as text."""
        waiting = [f"order {self.ids[j]}: {self.value[j]:g}, {self.left[j]} steps left" for j in np.argsort(self.ids)]
        return "; ".join(waiting[int(np.sum(self.ids < 0)) :]) or "no orders"


def worth(observation: Observation) -> np.ndarray:
    """The pair with the largest value per step first, then the next, each order once."""
    return best_pairs_first(observation, np.asarray(observation.prior))


def nearest(observation: Observation) -> np.ndarray:
    """The nearest pair first, then the next, each order once."""
    return best_pairs_first(observation, -np.asarray(observation.pair_features)[..., 0])


def best_pairs_first(observation: Observation, score: np.ndarray) -> np.ndarray:
    """Assign allowed pairs in decreasing order of score, each robot and each order once."""
    score = np.where(observation.allowed, score, -np.inf)
    chosen = np.full(len(score), -1)
    while np.isfinite(score).any():
        robot, order = np.unravel_index(score.argmax(), score.shape)
        chosen[robot] = order
        score[robot] = score[:, order] = -np.inf
    return chosen
