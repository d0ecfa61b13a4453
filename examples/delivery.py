"""An environment of your own: couriers carry parcels across town. Run it with

    muster check-env examples.delivery:Delivery
    muster compare fullest nearest examples.delivery:Delivery

A parcel waits at a place and wants as many couriers as it is heavy. It is delivered once that many stand there at
once; every minute costs the parcels that still wait. Nothing but the class below is needed: muster batches it,
checks it, evaluates policies on it, and learns on it.
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
        """Scatter couriers and parcels; all that is random comes from `rng`."""
        self.couriers = rng.random((self.n_agents, 2))
        self.parcels = rng.random((self.n_tasks, 2))
        self.weight = rng.integers(1, 3, self.n_tasks)
        self.delivered = np.zeros(self.n_tasks, dtype=bool)

    def observe(self) -> Observation:
        """Positions, weights, and the way from each courier to each parcel; a parcel takes no more than its weight."""
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
        """Couriers move towards their parcels; those with enough couriers at hand are delivered."""
        for courier, task in enumerate(assignment):
            if task >= 0 and not self.delivered[task]:
                way = self.parcels[task] - self.couriers[courier]
                length = np.linalg.norm(way)
                self.couriers[courier] += way * min(1.0, SPEED / max(length, 1e-12))
        for task in np.flatnonzero(~self.delivered):
            near = np.linalg.norm(self.couriers - self.parcels[task], axis=1) <= REACH
            # Only couriers sent here help: standing near by chance delivers nothing.
            if np.sum(near & (assignment == task)) >= self.weight[task]:
                self.delivered[task] = True
        return -0.01 * float(np.sum(~self.delivered)), bool(self.delivered.all())

    @classmethod
    def baselines(cls) -> Mapping[str, Baseline]:
        """Two baselines to beat."""
        return {"fullest": fullest, "nearest": nearest}

    def permute(self, agents: np.ndarray, tasks: np.ndarray) -> bool:
        """Renumber, so that `muster check-env` can see that numbers mean nothing here."""
        self.couriers = self.couriers[agents]
        self.parcels, self.weight, self.delivered = self.parcels[tasks], self.weight[tasks], self.delivered[tasks]
        return True

    def describe(self) -> str:
        """The parcels still waiting, in words."""
        waiting = [f"parcel {j} wants {self.weight[j]}" for j in np.flatnonzero(~self.delivered)]
        return "; ".join(waiting) or "all delivered"


def nearest(observation: Observation) -> np.ndarray:
    """Every courier goes to the nearest parcel. Two couriers that each prefer another heavy parcel wait for ever."""
    distance = np.where(observation.task_alive, np.asarray(observation.pair_features)[..., -1], np.inf)
    return np.where(np.isfinite(distance).any(axis=1), distance.argmin(axis=1), -1)


def fullest(observation: Observation) -> np.ndarray:
    """Parcels in turn, by how near their couriers would be, each get as many couriers as they want."""
    distance = np.asarray(observation.pair_features)[..., -1]
    assignment = np.full(len(distance), -1)
    tasks = np.flatnonzero(observation.task_alive)
    while len(tasks):
        free = np.flatnonzero(assignment < 0)
        wanted = {j: int(np.asarray(observation.capacities)[j]) for j in tasks}
        teams = {j: free[np.argsort(distance[free, j], kind="stable")][: wanted[j]] for j in tasks}
        complete = {j: distance[team, j].max() for j, team in teams.items() if len(team) == wanted[j]}
        if not complete:
            break
        best = min(complete, key=lambda j: complete[j])
        assignment[teams[best]] = best
        tasks = tasks[tasks != best]
    return assignment
