"""The baselines of a custom environment, as policies."""

from __future__ import annotations

import numpy as np

from muster.data import BatchObservation, Ints
from muster.envs.env import Baseline
from muster.envs.padding import observation_at
from muster.envs.vector import BatchEnv, Policy
from muster.errors import EnvError, InputError, in_words


class BaselinePolicy(Policy):
    """A baseline for one environment, applied to each environment of a batch."""

    def __init__(self, name: str, baseline: Baseline, env: BatchEnv, sizes: Ints) -> None:
        self.name = name
        self.about = (baseline.__doc__ or "").strip().partition("\n")[0]
        self._baseline = baseline
        self._env = env
        self._sizes = sizes
        """[B, 2] how many agents and tasks of the environment's present observation are not padding."""

    def act(self, observation: BatchObservation) -> Ints:
        """[B, N] what the baseline says for each environment of the observation."""
        assignment = np.full((observation.batch, self._env.n_agents), -1, np.int64)
        # Only the environment itself knows what is padding; the observation of another batch counts as full.
        ours = observation.batch == self._env.n_envs
        full = [(self._env.n_agents, self._env.n_tasks)] * observation.batch
        for slot, (agents, tasks) in enumerate(self._sizes.tolist() if ours else full):
            try:
                chosen = np.asarray(self._baseline(observation_at(observation, slot, agents, tasks)))
            except Exception as error:
                raise EnvError(f"the baseline {self.name!r} of {self._env.name} failed: {in_words(error)}") from error
            self._check(observation, slot, chosen, agents, tasks)
            assignment[slot, :agents] = chosen
        return assignment

    def _check(self, observation: BatchObservation, slot: int, chosen: Ints, agents: int, tasks: int) -> None:
        which = f"the baseline {self.name!r} of {self._env.name}"
        fits = chosen.shape == (agents,) and (chosen.dtype.kind in "iu" or not agents)
        if not fits or (agents and not -1 <= chosen.min() <= chosen.max() < tasks):
            tasks_of = f"a task from 0 to {tasks - 1}, or -1," if tasks else "-1"
            raise InputError(f"{which} must give {tasks_of} for each of {agents} agents, got {chosen.tolist()}")
        if observation.allowed is not None and agents:
            forbidden = (chosen >= 0) & ~observation.allowed[slot, np.arange(agents), chosen]
            if forbidden.any():
                agent = int(np.flatnonzero(forbidden)[0])
                raise InputError(f"{which} sends agent {agent} to task {chosen[agent]}, which `allowed` forbids")
