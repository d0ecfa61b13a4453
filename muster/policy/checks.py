"""The environment checks, and one more that needs a policy: that agents who are masked change no decision."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from muster.assign.settings import InferenceSettings
from muster.envs.checks import Finding
from muster.envs.checks.contract import CHECKS
from muster.envs.checks.probes import Make, living_agents, random_assignment, require, started
from muster.envs.checks.run import check_env as run_checks
from muster.envs.registry import EnvLike
from muster.envs.vector import BatchEnv
from muster.models.direct import init_parameters
from muster.models.spec import ModelSpec
from muster.policy.learned import LearnedPolicy
from muster.policy.settings import PAPER_NOISE

STEPS = 20


def check_env(env: EnvLike | Make) -> list[Finding]:
    """Run every check on an environment string, a class, or a function that makes a batch of a given size."""
    return run_checks(env, CHECKS | {"masked agents change no decision": masked_agents_change_nothing})


def masked_agents_change_nothing(make: Make) -> None:
    """Whether agents are masked or left out of the observation, the others are given the same tasks."""
    env, rng = started(make, 3), np.random.default_rng(0)
    policy = random_policy(env, rng)
    for t in range(min(env.max_steps, STEPS)):
        observation = env.observe()
        some = observation.agent_alive & (rng.random(observation.agent_alive.shape) < 0.7)
        masked = replace(observation, agent_alive=some)
        assignment = policy.act(masked)
        for slot in range(env.n_envs):
            rest, left = living_agents(masked, slot)
            require(
                np.array_equal(assignment[slot, left], policy.act(rest)[0]),
                f"agents get other tasks at step {t} where {env.n_agents - len(left)} others are masked than where "
                "these are left out of the observation",
            )
        env.step(random_assignment(observation, rng))


def random_policy(env: BatchEnv, rng: np.random.Generator) -> LearnedPolicy:
    """A policy of random weights on top of the prior, if there is one, whose g is scaled by the number of agents."""
    spec = ModelSpec.of(env.observe(), "dm", True, pair_scale="size", trained_agents=max(env.n_agents // 3, 1))
    parameters = {
        name: array + rng.normal(0.0, 0.3, array.shape).astype(np.float32)
        for name, array in init_parameters(spec, rng).items()
    }
    inference = InferenceSettings("quad", "fast", assign_all=not env.idling)
    return LearnedPolicy("random", spec, parameters, inference, PAPER_NOISE)
