"""Agents that are masked and agents that are left out of the observation are the same to every shipped policy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import muster
from muster.envs.checks import check_env
from muster.envs.checks.probes import living_agents
from muster.policy import checks, decision
from muster.policy.learned import adapt
from muster.policy.names import shipped
from tests.envs.custom_envs import Orders

LARGER = {
    "rescue:2x4": "rescue:10x20",
    "rescue:5x10": "rescue:25x50",
    "battle:m10v10": "battle:m50v50",
    "battle:w15v17": "battle:w75v85",
    "battle:zh10v10": "battle:zh50v50",
    "fleet:24": "fleet:120",
    "pursuit:4x2": "pursuit:20x10",
}
"""Five times the size."""


@pytest.mark.parametrize("name", shipped())
def test_masked_agents_are_left_out(name):
    policy, rng = muster.load(name), np.random.default_rng(0)
    slots = steps = 3
    if policy.spec.kind == "pem":  # slow
        pytest.importorskip("torch")
        slots = steps = 1
    home = str(policy.header["env"]).partition(",")[0]
    for name in (home, LARGER[home]):
        env = adapt(policy, muster.make(name, slots, seed=8))
        for _ in range(steps):
            observation = env.observe()
            some = observation.agent_alive & (rng.random(observation.agent_alive.shape) < 0.6)
            masked = replace(observation, agent_alive=some)
            # Routes are remembered: each decision here is a first one.
            together = policy.variant().decide(masked)
            for slot in range(slots):
                rest, left = living_agents(masked, slot)
                alone = policy.variant().decide(rest)
                if policy.spec.kind == "pem":
                    # Convolutions and products of torch round as their shapes demand.
                    assert together.scores[0][slot, left] == pytest.approx(alone.scores[0][0], abs=1e-4)
                    assert together.solution.objective[slot] == pytest.approx(alone.solution.objective[0], abs=1e-3)
                else:
                    assert together.assignment[slot, left].tolist() == alone.assignment[0].tolist()
            env.step(together.actions(env.reads_reasons))


@pytest.mark.parametrize("env", [Orders, "examples.warehouse:Warehouse", "fleet:24", "tests.learning.toy:Crews"])
def test_environments_are_checked_for_it(env, monkeypatch):
    check = {"masked": checks.masked_agents_change_nothing}
    assert check_env(env, check)[0].status == "passed"

    def by_slots(spec, observation, g):
        return g * np.float32(spec.trained_agents / observation.agent_features.shape[1])

    monkeypatch.setattr(decision, "scale_pairs", by_slots)
    found = check_env(env, check)[0]
    assert (found.status, "others are masked" in found.detail) == ("failed", True)
