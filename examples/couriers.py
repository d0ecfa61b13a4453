import numpy as np

from muster import Env, Scene, View


class Couriers(Env):
    """Couriers fetch parcels on the unit square. Change it into your own problem, a method at a time."""

    max_steps = 100  # muster ends an episode there
    metric = "steps"  # fewer are better; "return" is the sum of rewards, and "win_rate" asks won()

    # What stands here can be set from outside: couriers:Couriers,n_agents=15,n_tasks=30
    def __init__(self, n_agents: int = 3, n_tasks: int = 6, speed: float = 0.1):
        self.n_agents, self.n_tasks, self.speed = n_agents, n_tasks, speed

    def reset(self, rng):
        """A new episode. All that is random comes from rng, now or later."""
        self.couriers = rng.random((self.n_agents, 2))
        self.parcels = rng.random((self.n_tasks, 2))
        self.waiting = np.ones(self.n_tasks, bool)

    def view(self):
        """What a policy sees: of agents, tasks and pairs; who can be served; and what you would go by yourself."""
        way = self.parcels - self.couriers[:, None]
        distance = np.linalg.norm(way, axis=-1)
        pairs = np.dstack([way, distance])
        return View(self.couriers, self.parcels, pairs, task_alive=self.waiting, prior=-distance)

    def step(self, assignment):
        """One decision: a task for each agent, or -1. How an agent goes about it is the world's business."""
        for courier, parcel in enumerate(assignment):
            if parcel >= 0:
                way = self.parcels[parcel] - self.couriers[courier]
                self.couriers[courier] += way * min(1, self.speed / np.linalg.norm(way))
                self.waiting[parcel] &= np.linalg.norm(way) > self.speed
        return -0.01, not self.waiting.any()  # the reward, and whether the episode is over

    def scene(self):
        """Where everyone is, for whoever watches; leave it out and muster draws what it can tell from the view."""
        return Scene(self.couriers, self.parcels)

    @classmethod
    def rules(cls):
        """Rules to beat, by name: from a view to an assignment."""
        return {"nearest": nearest}


def nearest(view):
    """Everyone goes to the nearest parcel that waits."""
    return np.where(view.task_alive, view.prior, -np.inf).argmax(axis=1)
