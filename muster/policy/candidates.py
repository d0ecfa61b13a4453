"""Candidates of look-ahead: variations of a policy.

theta    the policy with other weights: each array moved by 0.3 of its spread
scores   the policy with noise of standard deviation 1 on h, the same for five decisions

With several futures candidates are other first decisions (`vary_decisions`), after which the policy itself acts.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from muster.data import BatchObservation, Bools, Floats, Floats32, Ints
from muster.envs.vector import BatchEnv
from muster.errors import InputError
from muster.models.direct import DirectModel
from muster.models.spec import Parameters, Scores
from muster.policy.decision import Decision, decide, make_problem
from muster.policy.learned import LearnedPolicy

SPREAD = 0.3
"""Standard deviation of the perturbation of weights, relative to that of their array."""
NOISE_STD = 1.0
"""Standard deviation of the noise on h; with several futures relative to that of h over the chosen pairs."""
HELD = 5
"""Decisions for which the noise on the scores is held."""


class Candidates(Protocol):
    """A family of candidates, each given by a vector of `width` numbers."""

    width: int

    def prepare(self, moves: Floats32, observation: BatchObservation) -> None:
        """Set the candidates of P environments: moves [P, width], 0 for the policy itself."""
        ...

    def act(self, observation: BatchObservation) -> Ints:
        """[P, N] the next action of each candidate in its own environment."""
        ...


class OtherWeights:
    """Candidates with perturbed weights."""

    def __init__(self, policy: LearnedPolicy, size: float | None, env: BatchEnv) -> None:
        if policy.spec.kind != "dm":
            raise InputError(
                f"candidates 'theta' move the weights of a direct model (dm), and {policy.name} is a "
                f"{policy.spec.kind}; use candidates 'scores'"
            )
        self.policy, self.with_reasons = policy, env.reads_reasons
        self.size = SPREAD if size is None else size
        self.width = sum(array.size for array in policy.parameters.values())
        self._model: DirectModel | None = None

    def prepare(self, moves: Floats32, observation: BatchObservation) -> None:
        """Pack the models of P environments."""
        del observation
        parameters: Parameters = {}
        begin = 0
        # By name, the order of policy files: the candidates of a policy stay the same when it is saved and loaded.
        for name, array in sorted(self.policy.parameters.items()):
            end = begin + array.size
            spread = np.float32(self.size * array.std()) if array.size else np.float32(0.0)
            parameters[name] = array + spread * moves[:, begin:end].reshape(len(moves), *array.shape)
            begin = end
        self._model = DirectModel(parameters, self.policy.spec.task_scores)

    def act(self, observation: BatchObservation) -> Ints:
        """[P, N] actions by each environment's own model."""
        assert self._model is not None
        decision = decide(observation, self.policy.spec, self._model, self.policy.solver)
        return decision.actions(self.with_reasons)


class HeldNoise:
    """Noise on h [P, N, M] that is held for several decisions, for the agents and tasks that are present now."""

    def __init__(self, noise: Floats32, observation: BatchObservation) -> None:
        self.noise = noise
        self.agents, self.tasks = observation.agent_ids, observation.task_ids

    def add(self, scores: Scores, observation: BatchObservation) -> Scores:
        """The scores with the noise, except for agents and tasks that have appeared since in a reused slot."""
        h, g = scores
        same: Floats32 | np.float32 = np.float32(1.0)
        for then, now, axis in ((self.agents, observation.agent_ids, 2), (self.tasks, observation.task_ids, 1)):
            if then is not None and now is not None:
                same = same * np.expand_dims(then == now, axis).astype(np.float32)
        return h + self.noise * same, g


class NoisyScores:
    """Candidates with noise on h for HELD decisions, and without it afterwards."""

    def __init__(self, policy: LearnedPolicy, size: float | None, env: BatchEnv) -> None:
        self.policy, self.with_reasons = policy, env.reads_reasons
        self.size = np.float32(NOISE_STD if size is None else size)
        self.shape = env.n_agents, env.n_tasks
        self.width = env.n_agents * env.n_tasks
        self._held: HeldNoise | None = None
        self._step = 0

    def prepare(self, moves: Floats32, observation: BatchObservation) -> None:
        """Set the noise of P environments, for the agents and tasks that are present now."""
        self._held, self._step = HeldNoise(self.size * moves.reshape(-1, *self.shape), observation), 0

    def act(self, observation: BatchObservation) -> Ints:
        """[P, N] actions, with each candidate's noise on h for the first HELD decisions."""
        held = self._held
        explore = (lambda scores: held.add(scores, observation)) if held is not None and self._step < HELD else None
        self._step += 1
        decision = decide(observation, self.policy.spec, self.policy.scorer, self.policy.solver, explore)
        return decision.actions(self.with_reasons)


def vary_decisions(decision: Decision, policy: LearnedPolicy, draws: Floats32, size: float) -> Decision:
    """K decisions in each state with noise on h: S·K decisions, those of a state together.

    `draws` [S, K, N·M] are standard normals; the noise has `size` standard deviations of h over the chosen pairs.
    """
    n_states, each, _ = draws.shape
    rows = np.repeat(np.arange(n_states), each)
    h, g = decision.scores
    unit = (size * chosen_spread(decision)).astype(np.float32)
    read = decision.observation.take(rows)
    scores: Scores = h[rows], None if g is None else g[rows]
    noisy = scores[0] + unit[rows, None, None] * draws.reshape(-1, *h.shape[1:]), scores[1]
    return Decision(read, scores, noisy, policy.solver.run(make_problem(read, *noisy))[0])


def chosen_spread(decision: Decision) -> Floats:
    """[B] standard deviation of h over the chosen pairs; over all living pairs where that is 0."""
    h, _ = decision.scores
    pairs = decision.observation.pairs
    chosen = decision.assignment[:, :, None] == np.arange(h.shape[2])
    spread = _spread(h, chosen)
    return np.where(spread > 0, spread, _spread(h, pairs))


def _spread(h: Floats32, entries: Bools) -> Floats:
    """[B] standard deviation of h over `entries`, 0 where there are none."""
    count = np.maximum(entries.sum(axis=(1, 2)), 1)
    mean = np.where(entries, h, 0.0).sum(axis=(1, 2)) / count
    gaps = np.where(entries, h - mean[:, None, None], 0.0)
    return np.asarray(np.sqrt((gaps**2).sum(axis=(1, 2)) / count), np.float64)
