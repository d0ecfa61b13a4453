import numpy as np

from muster import Env, Observation, Scene


class Couriers(Env):
    """Couriers fetch parcels on the unit square. Change it into your own problem, a method at a time."""

    # An episode ends after max_steps. Fewer "steps" are better; "return" is the sum of rewards, "win_rate" asks won().
    max_steps, metric = 100, "steps"

    # These arguments are options of the environment string: couriers:Couriers,n_agents=15,n_tasks=30
    def __init__(self, n_agents: int = 3, n_tasks: int = 6, speed: float = 0.1):
        self.n_agents, self.n_tasks, self.speed = n_agents, n_tasks, speed

    def reset(self, rng):
        """Start an episode. All randomness, now and in later steps, comes from rng."""
        self.couriers, self.parcels = rng.random((self.n_agents, 2)), rng.random((self.n_tasks, 2))
        self.waiting = np.ones(self.n_tasks, bool)

    def observe(self):
        """Features of agents, tasks and pairs; which tasks are left; and a prior: scores without learning."""
        way = self.parcels - self.couriers[:, None]
        far = np.linalg.norm(way, axis=-1)
        return Observation(self.couriers, self.parcels, np.dstack([way, far]), task_alive=self.waiting, prior=-far)

    def step(self, assignment):
        """Carry out one decision, a task for each agent or -1; returns the reward, and whether the episode is over."""
        for courier in np.flatnonzero(assignment >= 0):
            way = self.parcels[assignment[courier]] - self.couriers[courier]
            self.couriers[courier] += way * min(1, self.speed / np.linalg.norm(way))
            self.waiting[assignment[courier]] &= np.linalg.norm(way) > self.speed
        return -0.01, not self.waiting.any()

    def scene(self):
        """Positions for pictures and replays; without this method muster draws the observation."""
        return Scene(self.couriers, self.parcels)

    @classmethod
    def baselines(cls):
        """Policies to beat: functions from an observation to an assignment, by name."""
        return {"nearest": nearest}


def nearest(observation):
    """The nearest pair of courier and parcel first, then the nearest of those that are left."""
    far, chosen = np.where(observation.task_alive, -observation.prior, np.inf), np.full(len(observation.prior), -1)
    for _ in range(min(len(chosen), sum(observation.task_alive))):
        courier, parcel = np.unravel_index(far.argmin(), far.shape)
        chosen[courier], far[courier], far[:, parcel] = parcel, np.inf, np.inf
    return chosen
