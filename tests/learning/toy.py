"""A world with a known optimum: each of two agents belongs to one of two tasks, told by the sign of a number."""

from __future__ import annotations

import numpy as np

from muster.envs.single import Env, View


class Pairing(Env):
    """One decision: reward 1/2 for each agent on the task of its own sign. Best 1, at random 1/2."""

    n_agents = 2
    n_tasks = 2
    max_steps = 3

    def reset(self, rng: np.random.Generator) -> None:
        self.agents = rng.permutation([-1.0, 1.0])
        self.tasks = rng.permutation([-1.0, 1.0])

    def view(self) -> View:
        return View(self.agents[:, None], self.tasks[:, None])

    def step(self, assignment):
        matched = [task >= 0 and self.tasks[task] == sign for sign, task in zip(self.agents, assignment, strict=True)]
        return 0.5 * float(sum(matched)), True


class Same(Pairing):
    """Rewards every assignment alike."""

    def step(self, assignment):
        return 0.5, True


class Broken(Pairing):
    """Gives a reward that is not a number, after a while."""

    rounds = 0

    def step(self, assignment):
        Broken.rounds += 1
        reward, over = super().step(assignment)
        return (float("nan") if Broken.rounds > 200 else reward), over
