"""A custom environment with heavy parcels, for which several couriers must meet.

    muster check-env examples.delivery:Delivery
    muster compare fullest nearest examples.delivery:Delivery

A parcel of weight w is delivered when w couriers that are assigned to it are there at once; every step costs 0.01 for
each parcel that still waits. The class below is all that is needed: muster makes batches of it, checks it, evaluates
policies on it, and learns on it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from muster.envs.env import Baseline, Env, Observation

REACH = 0.05
SPEED = 0.08


class Delivery(Env):
    """Four couriers, six parcels of weight 1 or 2, on the unit square."""

    n_agents = 4
    n_tasks = 6
    max_steps = 200
    metric = "steps"

    def reset(self, rng: np.random.Generator) -> None:
        """Place couriers and parcels at random; all randomness comes from `rng`."""
        self.couriers = rng.random((self.n_agents, 2))
        self.parcels = rng.random((self.n_tasks, 2))
        self.weight = rng.integers(1, 3, self.n_tasks)
        self.delivered = np.zeros(self.n_tasks, dtype=bool)

    def observe(self) -> Observation:
        """Positions, weights, and the way from each courier to each parcel, whose capacity is its weight."""
        way = self.parcels[None] - self.couriers[:, None]
        distance = np.linalg.norm(way, axis=-1, keepdims=True)
        return Observation(
            agent_features=self.couriers,
            task_features=np.column_stack([self.parcels, self.weight]),
            pair_features=np.concatenate([way, distance], axis=-1),
            task_alive=~self.delivered,
            capacities=self.weight,
        )

    def step(self, assignment: np.ndarray) -> tuple[float, bool]:
        """Move couriers towards their parcels, and deliver the parcels that enough couriers have reached."""
        for courier, task in enumerate(assignment):
            if task >= 0 and not self.delivered[task]:
                way = self.parcels[task] - self.couriers[courier]
                length = np.linalg.norm(way)
                self.couriers[courier] += way * min(1.0, SPEED / max(length, 1e-12))
        for task in np.flatnonzero(~self.delivered):
            near = np.linalg.norm(self.couriers - self.parcels[task], axis=1) <= REACH
            # Only couriers that are assigned to the parcel count.
            if np.sum(near & (assignment == task)) >= self.weight[task]:
                self.delivered[task] = True
        return -0.01 * float(np.sum(~self.delivered)), bool(self.delivered.all())

    @classmethod
    def baselines(cls) -> Mapping[str, Baseline]:
        """Two baselines to beat."""
        return {"fullest": fullest, "nearest": nearest}

    def permute(self, agents: np.ndarray, tasks: np.ndarray) -> bool:
        """Renumber couriers and parcels, so that `muster check-env` can check that indices have no meaning."""
        self.couriers = self.couriers[agents]
        self.parcels, self.weight, self.delivered = self.parcels[tasks], self.weight[tasks], self.delivered[tasks]
        return True

    def describe(self) -> str:
        """The parcels still waiting, in words."""
        waiting = [f"parcel {j} needs {self.weight[j]}" for j in np.flatnonzero(~self.delivered)]
        return "; ".join(waiting) or "all delivered"


def nearest(observation: Observation) -> np.ndarray:
    """Each courier goes to the nearest parcel. Couriers that wait alone at different heavy parcels wait for ever."""
    distance = np.where(observation.task_alive, np.asarray(observation.pair_features)[..., -1], np.inf)
    return np.where(np.isfinite(distance).any(axis=1), distance.argmin(axis=1), -1)


def fullest(observation: Observation) -> np.ndarray:
    """The parcel whose team could arrive first gets its couriers, then the next parcel with those that are left."""
    distance = np.asarray(observation.pair_features)[..., -1]
    assignment = np.full(len(distance), -1)
    tasks = np.flatnonzero(observation.task_alive)
    while len(tasks):
        free = np.flatnonzero(assignment < 0)
        needed = {j: int(np.asarray(observation.capacities)[j]) for j in tasks}
        teams = {j: free[np.argsort(distance[free, j], kind="stable")][: needed[j]] for j in tasks}
        complete = {j: distance[team, j].max() for j, team in teams.items() if len(team) == needed[j]}
        if not complete:
            break
        best = min(complete, key=lambda j: complete[j])
        assignment[teams[best]] = best
        tasks = tasks[tasks != best]
    return assignment
