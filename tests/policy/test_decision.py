"""The spine: what an environment is told of the agents that have no task."""

from __future__ import annotations

import numpy as np

import muster
from muster.assign.settings import InferenceSettings
from muster.assign.solver import Solver
from muster.envs.vector import IDLE
from muster.policy.decision import decide


def decided(h, **given):
    """A decision on scores that were not learned, in battles of three against two."""
    env = muster.make("battle:m3v2", 1, 3)
    seen = env.observe()
    seen.capacities[:] = given.pop("capacities", 1e9)
    spec = muster.load("battle-m10v10-lp-dm").spec
    solver = Solver.of(InferenceSettings(method="lp"))
    return decide(seen, spec, lambda _: (np.array([h], np.float32), None), solver)


def test_who_had_rather_idle_is_told_from_who_found_no_room():
    hit = 6.0
    decision = decided([[2.0, 2.0], [-1.0, -1.0], [1.0, 1.0]], capacities=[[hit, 0.0]])
    assert decision.assignment.tolist() == [[0, -1, -1]]
    assert decision.actions(with_reasons=False).tolist() == [[0, -1, -1]]
    assert decision.actions(with_reasons=True).tolist() == [[0, IDLE, -1]]


def test_reasons_reach_a_battle_that_reads_them():
    # Where the enemies that a marine wants are full, another may still have room.
    plain, told = (
        muster.evaluate("battle-m10v10-lp-dm", f"battle:m10v10{more}", 4, seed=2) for more in ("", ",idle=reasons")
    )
    again = muster.evaluate("battle-m10v10-lp-dm", "battle:m10v10,idle=reasons", 4, seed=2)
    assert told.records.reward.tolist() == again.records.reward.tolist()
    assert told.records.reward.tolist() != plain.records.reward.tolist()
