"""Satellites over tasks on the ground: the constellation of REDA (Holder, Jaques and Mesbahi, AAAI 2025).

    muster check-env examples.outside.satellites:Constellation
    muster compare myopic price examples.outside.satellites:Constellation --episodes 100 --seed 1
    muster train examples.outside.satellites:Constellation --minutes 5 --out run
    muster compare price run examples.outside.satellites:Constellation,n_agents=324,n_tasks=450 --episodes 10 --seed 1

In every step each satellite points at a task, or rests. Pointing at a task in view pays its worth from there, minus a
handover cost if it is not the task of the step before, and uses power; resting restores some, and a satellite without
power is lost. Nothing is random after the reset.

With 324 satellites and 450 tasks it is the benchmark of the paper. Compared with the authors' code on the same tasks,
orbits agree to 1e-10 km, proximities to 1e-12, pay and power to 1e-13 at every step, with random assignments and with
those of the authors' policy. The one difference: their satellites always point somewhere, and rest by pointing at a
task out of view; here a satellite without a task rests. Smaller sizes have larger footprints and faster orbits, so that
as many tasks are in view for as many steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from muster import assign
from muster.envs.env import Baseline, Env, Observation
from muster.envs.scene import GREEN, ORANGE, Look, Scene, Stage

STEPS, AHEAD = 100, 3
PAPER_SIZE = 324
EQUATOR, POLE, ORBIT = 6378.1366, 6356.7519, 6378.1366 + 550
INCLINATION, LATITUDES = np.deg2rad(58), 55
PERIOD = 2 * np.pi * np.sqrt(ORBIT**3 / 398600.4418)
STEP_SECONDS = 63.76469
"""Time of four degrees of an orbit."""
VIEW, EDGE = 60, 0.05
"""Largest angle from the vertical, in degrees, and the share of a task's worth there."""
HANDOVER = 0.5
DRAIN, CHARGE = 0.2, 0.1
NOTHING = 1e-12
LOOKS = (Look("satellites", "diamond"), Look("tasks", "disc", GREEN), Look("priority 5", "disc", ORANGE))


class Constellation(Env):
    """Satellites in circular orbits with power for five services each, and tasks worth 1 or 5 from straight above."""

    metric = "return"
    max_steps = STEPS
    idling = True
    feature_names = {  # noqa: RUF012
        "agent": ("power", "empty", "tasks in view"),
        "task": ("priority", "satellites in view"),
        "pair": ("now", "next", "after", "had it", "takes power", "last power"),
        "global": ("time left", "last steps"),
    }

    def __init__(self, n_agents: int = 36, n_tasks: int = 50) -> None:
        self.n_agents, self.n_tasks = n_agents, n_tasks
        self.orbits = orbits_of(n_agents)

    def reset(self, rng: np.random.Generator) -> None:
        """Place tasks at random, a quarter of priority 5; satellites have full power and point at different tasks."""
        lat, lon = rng.uniform(-LATITUDES, LATITUDES, self.n_tasks), rng.uniform(-180, 180, self.n_tasks)
        self.tasks = np.column_stack([lon, lat])
        self.priority = rng.choice([1.0, 1.0, 1.0, 5.0], self.n_tasks)
        self.begin(rng.permutation(self.n_tasks)[: self.n_agents])

    def begin(self, previous: np.ndarray) -> None:
        """Set the state of the first step, with satellites that point at tasks `previous` [N]."""
        self.k, self.power, self.before = 0, np.ones(self.n_agents), previous
        self.proximity = self.orbits.proximity(self.tasks)
        self.look_ahead()

    def look_ahead(self) -> None:
        """Compute the worth of every task for every satellite at this step and the next two."""
        self.worth = [self.worth_at(k) for k in range(self.k, self.k + AHEAD)]

    def worth_at(self, k: int) -> np.ndarray:
        """[N, M] worth of every task for every satellite at step k."""
        return self.orbits.at(self.proximity, k) * self.priority

    def observe(self) -> Observation:
        """Power, and the worth of tasks in view now and soon; the prior is the present pay."""
        worth, power = self.worth, self.power
        visible = sum(worth) > NOTHING
        had, serves = self.before[:, None] == np.arange(self.n_tasks), worth[0] > NOTHING
        alive, empty = power > 0, power - DRAIN < NOTHING
        left = STEPS - self.k
        return Observation(
            agent_features=np.column_stack([power, empty, visible.sum(axis=1) / 10]),
            task_features=np.column_stack([self.priority, visible.sum(axis=0) / 10]),
            pair_features=np.stack([*worth, had & visible, serves, serves & empty[:, None]], axis=-1),
            global_features=[left / STEPS, max(0.0, 1 - left / 8)],
            agent_alive=alive,
            allowed=visible & alive[:, None],
            prior=np.where(visible, worth[0] - HANDOVER * ~had, 0.0),
        )

    def step(self, assignment: np.ndarray) -> tuple[float, bool]:
        """Point satellites at tasks, or at none (-1); satellites at the same task share its pay."""
        satellites, pointed = np.arange(self.n_agents), assignment >= 0
        worth = [step[satellites, assignment] * pointed for step in self.worth]
        pay = worth[0] - HANDOVER * ((assignment != self.before) & (sum(worth) > NOTHING))
        pay[self.power < NOTHING] = 0.0
        sharing = np.bincount(assignment[pointed], minlength=self.n_tasks)[assignment]
        pay = np.where(pay > 0, pay / np.maximum(sharing, 1), pay)
        charged = np.where(worth[0] > NOTHING, self.power - DRAIN, np.minimum(self.power + CHARGE, 1))
        self.power = np.where(self.power > 0, charged, self.power)
        self.before = assignment.copy()
        self.k += 1
        self.worth = [*self.worth[1:], self.worth_at(self.k + AHEAD - 1)]
        return float(pay.sum()), self.k >= STEPS

    def metrics(self) -> Mapping[str, float]:
        """Share of satellites with power at the end."""
        return {"alive": float(np.mean(self.power > 0))}

    def get_state(self) -> Mapping[str, Any]:
        """Tasks, power, previous tasks and step; the rest follows."""
        return {name: getattr(self, name) for name in ("tasks", "priority", "power", "before", "k")}

    def set_state(self, state: Mapping[str, np.ndarray]) -> None:
        """Restore what `get_state` returned."""
        self.tasks, self.priority = state["tasks"], state["priority"]
        self.begin(state["before"])
        self.power, self.k = state["power"], int(state["k"])
        self.look_ahead()

    @classmethod
    def baselines(cls) -> Mapping[str, Baseline]:
        """The largest present pay, and the same with a price for power that was set by hand."""
        return {"price": price, "myopic": myopic}

    def scene(self) -> Scene:
        """A map of the Earth with satellites and their power."""
        stage = Stage(LOOKS, bounds=(-180.0, -65.0, 180.0, 65.0), wraps=True)
        x, y, z = self.orbits.direction[:, :, min(self.k, STEPS - 1)].reshape(-1, 3).T
        return Scene(
            np.rad2deg(np.column_stack([np.arctan2(y, x), -np.arcsin(z)])),
            self.tasks * (1, -1),
            agent_alive=self.power > 0,
            agent_health=np.clip(self.power, 0, 1),
            task_looks=np.where(self.priority > 1, 2, 1),
            text=f"{int((self.power > 0).sum())} of {self.n_agents} satellites have power",
            stage=stage,
        )


class Orbits(NamedTuple):
    """Circular orbits in planes with equally many satellites; the Earth does not rotate."""

    direction: np.ndarray
    """[P, S, T, 3] unit vector from the centre of the Earth to each satellite at each step."""
    scale: float
    """Size of footprints and steps relative to the paper's."""
    shift: int
    """Steps from one satellite of a plane to the next; 0 if not a whole number."""

    def proximity(self, tasks: np.ndarray) -> np.ndarray:
        """[P, T, M] from 1 straight above a task to 0 out of view, for the first satellite of each plane.

        [P * S, T, M], for all satellites, if `shift` is 0.
        """
        direction = self.direction[:, 0] if self.shift else self.direction.reshape(-1, STEPS, 3)
        lon, lat = np.deg2rad(tasks).T
        across = EQUATOR**2 / np.sqrt((EQUATOR * np.cos(lat)) ** 2 + (POLE * np.sin(lat)) ** 2)
        ground = np.array(
            [across * np.cos(lat) * np.cos(lon), across * np.cos(lat) * np.sin(lon),
             across * (POLE / EQUATOR) ** 2 * np.sin(lat)]
        )  # fmt: skip
        height = np.sqrt((ground**2).sum(axis=0))
        cosine = np.clip(direction @ (ground / height), -1, 1)
        near = cosine > np.cos(min(self.scale * np.arccos(POLE / ORBIT), np.pi))
        apart, height = np.arccos(cosine[near]) / self.scale, np.broadcast_to(height, cosine.shape)[near]
        angle = np.rad2deg(np.arctan2(height * np.sin(apart), ORBIT - height * np.cos(apart)))
        in_view = (ORBIT * np.cos(apart) > height) & (angle < VIEW)
        proximity = np.zeros(cosine.shape)
        proximity[near] = np.where(in_view, EDGE ** ((angle / VIEW) ** 2), 0.0)
        return proximity

    def at(self, proximity: np.ndarray, k: int) -> np.ndarray:
        """[N, M] proximities of all satellites at step k; 0 after the end.

        As in the authors' code, the k-th satellite of a plane has the proximities of the first k times `shift` steps
        later, modulo the number of steps.
        """
        planes, in_plane = self.direction.shape[:2]
        if k >= STEPS:
            return np.zeros((planes * in_plane, proximity.shape[-1]))
        if not self.shift:
            return proximity[:, k]
        return proximity[:, (k + self.shift * np.arange(in_plane)) % STEPS].reshape(planes * in_plane, -1)


@lru_cache(maxsize=8)
def orbits_of(n_agents: int) -> Orbits:
    """Orbits of 18 planes of 18 satellites, as in the paper, or of as square a number of planes as possible."""
    planes = max(p for p in range(1, int(np.sqrt(n_agents)) + 1) if n_agents % p == 0)
    in_plane, scale = n_agents // planes, float(np.sqrt(PAPER_SIZE / n_agents))
    node = 2 * np.pi * np.arange(planes)[:, None, None] / planes
    gone = scale * STEP_SECONDS / PERIOD * (1 + np.arange(STEPS))
    turn = 2 * np.pi * (np.arange(in_plane)[:, None] / in_plane - 0.5 + gone)
    up, ahead = np.sin(turn) * np.sin(INCLINATION), np.sin(turn) * np.cos(INCLINATION)
    direction = np.stack(
        np.broadcast_arrays(np.cos(node) * np.cos(turn) - np.sin(node) * ahead,
                            np.sin(node) * np.cos(turn) + np.cos(node) * ahead, up), axis=-1,
    )  # fmt: skip
    steps = 360 / in_plane / (4 * scale)
    return Orbits(direction, scale, round(steps) if abs(steps - round(steps)) < 1e-9 else 0)


def myopic(observation: Observation) -> np.ndarray:
    """The assignment with the largest present pay."""
    return best_assignment(observation, np.asarray(observation.prior))


def price(observation: Observation) -> np.ndarray:
    """The same with a price for power, set by hand, that falls to 0 in the last eight steps."""
    takes_power, last_power = np.moveaxis(np.asarray(observation.pair_features)[:, :, 4:], -1, 0)
    power, lasting = np.asarray(observation.agent_features)[:, :1], 1 - np.asarray(observation.global_features)[1]
    cost = 1.5 * (1 - power) * takes_power + 9 * last_power
    return best_assignment(observation, np.asarray(observation.prior) - cost * lasting)


def best_assignment(observation: Observation, score: np.ndarray) -> np.ndarray:
    """The allowed assignment with the largest sum of positive scores."""
    return assign(np.where(observation.allowed & (score > 0), score, -np.inf), method="lp").assignment
