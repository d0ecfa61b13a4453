"""An env with a known optimum: each of two agents belongs to one of two tasks, told by the sign of a number."""

from __future__ import annotations

import numpy as np

from muster.envs.env import Env, Observation


class Pairing(Env):
    """One decision: reward 1/2 for each agent on the task of its own sign. Best 1, at random 1/2."""

    n_agents = 2
    n_tasks = 2
    max_steps = 3

    def reset(self, rng: np.random.Generator) -> None:
        self.agents = rng.permutation([-1.0, 1.0])
        self.tasks = rng.permutation([-1.0, 1.0])

    def observe(self) -> Observation:
        return Observation(self.agents[:, None], self.tasks[:, None])

    def step(self, assignment):
        matched = [task >= 0 and self.tasks[task] == sign for sign, task in zip(self.agents, assignment, strict=True)]
        return 0.5 * float(sum(matched)), True


class Roomy(Pairing):
    """Two more tasks that belong to no agent: one alone has a choice even where all must take something."""

    n_tasks = 4

    def reset(self, rng: np.random.Generator) -> None:
        self.agents = rng.permutation([-1.0, 1.0])
        self.tasks = rng.permutation([-1.0, 1.0, 0.0, 0.0])


class Same(Pairing):
    """Rewards every assignment alike."""

    def step(self, assignment):
        return 0.5, True


class Priced(Pairing):
    """Shows the right answer as a prior, and the wrong one with `wrong`; agents may idle; counts in metrics."""

    metric = "return"
    idling = True

    def __init__(self, wrong: bool = False, more_tasks: int = 0) -> None:
        self.sign = -1.0 if wrong else 1.0
        self.n_tasks = 2 + more_tasks

    def reset(self, rng: np.random.Generator) -> None:
        self.agents = rng.permutation([-1.0, 1.0])
        self.tasks = rng.permutation([-1.0, 1.0, *[0.0] * (self.n_tasks - 2)])
        self.served = 0.0

    def observe(self) -> Observation:
        return Observation(
            self.agents[:, None],
            self.tasks[:, None],
            prior=0.05 * self.sign * np.outer(self.agents, self.tasks),
            global_features=[0.5],
        )

    def step(self, assignment):
        reward, over = super().step(assignment)
        self.served = 2 * reward
        return reward, over

    def metrics(self) -> dict[str, float]:
        return {"served": self.served}


class Broken(Pairing):
    """Gives a reward that is not a number, after a while."""

    rounds = 0

    def step(self, assignment):
        Broken.rounds += 1
        reward, over = super().step(assignment)
        return (float("nan") if Broken.rounds > 200 else reward), over


class Taught(Pairing):
    """Knows the right answer as a baseline, and the wrong one."""

    @classmethod
    def baselines(cls):
        def right(observation: Observation):
            agents, tasks = np.asarray(observation.agent_features), np.asarray(observation.task_features)
            return (agents == tasks.T).argmax(axis=1)

        def wrong(observation: Observation):
            return 1 - right(observation)

        return {"right": right, "wrong": wrong}


class Sealed(Pairing):
    """Raises in an episode that few begin with."""

    def reset(self, rng: np.random.Generator) -> None:
        super().reset(rng)
        self.sealed = rng.random() < 0.1

    def step(self, assignment):
        if self.sealed:
            raise ValueError("sealed")
        return super().step(assignment)


class Errands(Pairing):
    """Several decisions: an episode ends when both agents have been right, at the latest after some steps."""

    max_steps = 4

    def reset(self, rng: np.random.Generator) -> None:
        super().reset(rng)
        self.rng = rng

    def step(self, assignment):
        reward, _ = super().step(assignment)
        self.tasks = self.rng.permutation(self.tasks)
        return reward, reward == 1.0


class Lifting(Env):
    """One decision: six agents, and loads of one, two and three people, as each says. Best 1, one each 1/3."""

    metric = "return"
    n_agents = 6
    n_tasks = 3
    max_steps = 3

    def reset(self, rng: np.random.Generator) -> None:
        self.needs = rng.permutation([1, 2, 3])

    def observe(self) -> Observation:
        return Observation(np.ones((6, 1)), self.needs[:, None] / 3.0)

    def step(self, assignment):
        found = np.bincount(np.asarray(assignment)[np.asarray(assignment) >= 0], minlength=3)
        return float(np.mean(found == self.needs)), True


class Wages(Pairing):
    """Pays 100 a decision at best, and new partners each time; 12 decisions, all envs in step with one another."""

    def __init__(self, ends: bool = True) -> None:
        self.ends, self.max_steps = ends, 13 if ends else 12

    def reset(self, rng: np.random.Generator) -> None:
        super().reset(rng)
        self.rng, self.t = rng, 0

    def step(self, assignment):
        earned = 100 * super().step(assignment)[0]
        self.t += 1
        self.agents, self.tasks = self.rng.permutation([-1.0, 1.0]), self.rng.permutation([-1.0, 1.0])
        return earned, self.ends and self.t == 12


class Sized(Env):
    """One decision at any size: each agent belongs to the task of its number, as the prior says. Best 1."""

    metric = "return"
    idling = True
    max_steps = 3

    def __init__(self, n_agents: int = 2, n_tasks: int = 2) -> None:
        self.n_agents, self.n_tasks = n_agents, n_tasks

    def reset(self, rng: np.random.Generator) -> None:
        self.agents, self.tasks = rng.permutation(self.n_agents), rng.permutation(self.n_tasks)

    def observe(self) -> Observation:
        return Observation(
            self.agents[:, None] / self.n_agents,
            self.tasks[:, None] / self.n_tasks,
            prior=np.equal.outer(self.agents, self.tasks) - 0.5,
            task_prior=-0.01 * np.ones((self.n_tasks, self.n_tasks)),
        )

    def step(self, assignment):
        right = [task >= 0 and self.tasks[task] == own for own, task in zip(self.agents, assignment, strict=True)]
        return float(np.mean(right)), True


class Crews(Env):
    """Any size; every job is two tasks, which pay more together: the task_prior says so. Some agents are busy."""

    metric = "return"
    idling = True
    max_steps = 3

    def __init__(self, n_agents: int = 4, n_tasks: int = 6) -> None:
        self.n_agents, self.n_tasks = n_agents, n_tasks

    def reset(self, rng: np.random.Generator) -> None:
        self.agents, self.busy = rng.uniform(size=self.n_agents), rng.random(self.n_agents) < 0.2
        self.tasks = np.repeat(rng.uniform(size=self.n_tasks // 2), 2)
        self.value = np.repeat(rng.uniform(size=self.n_tasks // 2), 2)

    def observe(self) -> Observation:
        job = np.arange(self.n_tasks) // 2
        return Observation(
            self.agents[:, None],
            np.stack([self.tasks, self.value], axis=1),
            agent_alive=~self.busy,
            prior=0.2 - np.abs(np.subtract.outer(self.agents, self.tasks)),
            task_prior=0.5 * self.value * (np.equal.outer(job, job) & ~np.eye(len(job), dtype=np.bool_)),
        )

    def step(self, assignment):
        crews = np.bincount(assignment[assignment >= 0] // 2, minlength=self.n_tasks // 2) == 2
        gain = 0.2 - np.abs(self.agents - self.tasks[assignment])
        return float(self.value[::2][crews].sum() + gain[assignment >= 0].sum()), True


class Rated(Taught):
    """Counts rewards rather than steps."""

    metric = "return"


class Corrected(Env):
    """One decision at any size: the prior leaves out twice a feature of the pair, and a price of the task."""

    metric = "return"
    max_steps = 2
    feature_names = {"task": ("price",), "pair": ("bonus", "noise"), "global": ("constant",)}  # noqa: RUF012

    def __init__(self, n_agents: int = 3, n_tasks: int = 6) -> None:
        self.n_agents, self.n_tasks = n_agents, n_tasks

    def reset(self, rng: np.random.Generator) -> None:
        size = self.n_agents, self.n_tasks
        self.prior, self.price = 10.0 + rng.normal(size=size), 50.0 + 5.0 * rng.normal(size=self.n_tasks)
        self.features = rng.normal(size=(*size, 2))
        self.truth = self.prior + 2.0 * self.features[..., 0] - 0.2 * (self.price - 50.0)

    def observe(self) -> Observation:
        return Observation(
            np.zeros((self.n_agents, 0)), self.price[:, None], self.features, prior=self.prior, global_features=[3.0]
        )

    def step(self, assignment):
        taken = np.flatnonzero(assignment >= 0)
        return float(self.truth[taken, assignment[taken]].sum()) / self.n_agents, True

    @classmethod
    def baselines(cls):
        def knowing(observation: Observation):
            from muster import assign

            features, price = np.asarray(observation.pair_features), np.asarray(observation.task_features)[:, 0]
            return assign(observation.prior + 2.0 * features[..., 0] - 0.2 * (price - 50.0), method="lp").assignment

        return {"knowing": knowing}
