"""Laws that hold in every battle, whatever the tactics."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest

from muster.compile import callable_from_python
from muster.envs.battle import from_options, geometry
from muster.envs.battle import layout as lay
from muster.envs.battle.env import BattleEnv
from muster.evaluation.replay import state_hash
from muster.rng import episode_seeds

from .conftest import begin, fight, frames

boxes_meet = callable_from_python(geometry.boxes_meet)
gap = callable_from_python(geometry.gap)

SCENARIOS = ["m6v6", "w7v7", "zh4v4"]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_an_episode_depends_on_its_seed_alone(scenario: str) -> None:
    alone = [state_hash(fight(begin(scenario, 1, first=k), "wcnoks", 60)) for k in range(3)]
    together = fight(begin(scenario, 3), "wcnoks", 60)
    assert [state_hash(together, k) for k in range(3)] == alone
    assert len(set(alone)) == 3


@pytest.mark.parametrize("scenario", ["m5v5", "zh3v3"])
def test_ground_units_never_overlap(scenario: str) -> None:
    def check(env: BattleEnv) -> None:
        units, types = env.engine.units[0], env.engine.types
        live = [i for i in range(env.engine.n_units) if units[lay.ALIVE, i]]
        for a, i in enumerate(live):
            for j in live[:a]:
                assert not boxes_meet(
                    types,
                    units[lay.TYPE, i],
                    units[lay.PX, i],
                    units[lay.PY, i],
                    units[lay.TYPE, j],
                    units[lay.PX, j],
                    units[lay.PY, j],
                )

    for seed in range(3):
        frames(begin(scenario, 1, seed), "c", check, 120)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_health_only_falls_except_for_regeneration(scenario: str) -> None:
    env = begin(scenario)
    last = env.engine.units[0, lay.HP].copy()

    def check(env: BattleEnv) -> None:
        nonlocal last
        now = env.engine.units[0, lay.HP].copy()
        allowed = env.engine.types[env.engine.units[0, lay.TYPE], lay.T_REGEN]
        assert (now <= last + allowed).all()
        assert (now <= env.engine.types[env.engine.units[0, lay.TYPE], lay.T_HP]).all()
        assert (now >= 0).all()
        last = now

    frames(env, "wc", check, 120)
    assert last.min() == 0  # somebody died, so the law was tested


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_attacks_respect_range_and_cooldown(scenario: str) -> None:
    env = begin(scenario)
    fired: dict[int, int] = {}
    shots = 0

    def check(env: BattleEnv) -> None:
        nonlocal shots
        units, types = env.engine.units[0], env.engine.types
        frame = env.engine.counters[0, lay.FRAME] - 1
        for i in np.flatnonzero((units[lay.FIRED_FRAME] == frame) & (units[lay.ALIVE] != 0)):
            kind = units[lay.TYPE, i]
            target = units[lay.ORDER_UNIT, i]
            # A blow may have killed the target, which then stands where it fell.
            assert gap(units, types, i, target) <= types[kind, lay.T_RANGE]
            if i in fired:
                assert frame - fired[i] >= types[kind, lay.T_COOLDOWN] - 1
            fired[i] = frame
            shots += 1

    frames(env, "c", check, 120)
    assert shots > 20


def test_bullets_never_exceed_the_limit() -> None:
    highest = 0

    def check(env: BattleEnv) -> None:
        nonlocal highest
        highest = max(highest, int(env.engine.counters[0, lay.N_BULLETS]))

    env = begin("w12v12,bullet_limit=9")
    frames(env, "c", check, 60)
    assert highest == 9
    assert env.engine.counters[0, lay.LOST_SHOTS] > 0


def test_flyers_are_counted_in_their_cells() -> None:
    def check(env: BattleEnv) -> None:
        units = env.engine.units[0]
        live = units[lay.ALIVE] != 0
        counts = np.bincount(units[lay.CELL, live], minlength=lay.CELLS**2)
        assert (env.engine.field[0] == counts).all()

    frames(begin("w8v8"), "wcnoks", check, 60)


@pytest.mark.parametrize("name", ["w9v9", "m7v7"])
def test_mirrored_armies_win_equally_often(name: str) -> None:
    """Both sides attack-move, nobody is updated first and the map is empty: neither side has an edge."""
    n = 300
    env = begin(f"{name},first_order=0,latency=0,opponent_first=true", n, seed=3)
    swapped = begin(f"{name},first_order=0,latency=0,opponent_first=false", n, seed=3)
    wins = [fight(e, "attack-move").outcome().mean() for e in (env, swapped)]
    # Updated first and last in turn, so that the average is 1/2 up to noise (about 2.9 % with draws).
    assert np.mean(wins) == pytest.approx(0.5, abs=0.09)


def test_more_units_win() -> None:
    assert fight(begin("m12v4", 20), "c").outcome().mean() == 1
    assert fight(begin("m4v12", 20), "c").outcome().mean() == 0


@pytest.mark.parametrize("scenario", ["m2v2", "w2v2", "zh1v1"])
def test_the_compiled_kernel_equals_its_python_form(scenario: str) -> None:
    program = (
        "from tests.envs.battle.conftest import begin, fight\n"
        "from muster.evaluation.replay import state_hash\n"
        f"print(state_hash(fight(begin({scenario!r}), 'wcnoks', 14)))"
    )
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    plain = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    ).stdout.strip()
    assert plain == state_hash(fight(begin(scenario), "wcnoks", 14))


def test_thread_count_does_not_matter() -> None:
    hashes = []
    for threads in (1, 3):
        env = begin("w6v6", 150)
        env.threads = threads
        fight(env, "wcnoks", 50)
        hashes.append([state_hash(env, k) for k in range(150)])
    assert hashes[0] == hashes[1]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_saved_states_go_on_bit_for_bit(scenario: str) -> None:
    env = fight(begin(scenario, 2), "wcnoks", 12)
    saved = env.get_state()
    end = [state_hash(fight(env, "wcnoks", 15), k) for k in range(2)]
    other = from_options(scenario, 2)
    other.set_state(saved)
    assert [state_hash(fight(other, "wcnoks", 15), k) for k in range(2)] == end


def test_a_finished_battle_stands_still(battle: Callable[..., BattleEnv]) -> None:
    env = fight(battle("m6v1"), "c")
    before = state_hash(env)
    step = env.step(np.zeros((1, 6), dtype=np.int64))
    assert state_hash(env) == before
    assert step.reward[0] == 0
    assert not step.terminated[0]
    assert not step.truncated[0]


def test_large_battles_work() -> None:
    for scenario in ("w80v82", "m200v200"):
        env = begin(scenario)
        units, counters, n_ours = env.engine.units[0], env.engine.counters[0], env.n_agents

        def apart(units=units, n_ours=n_ours) -> float:
            return float(units[lay.PX, n_ours:].mean() - units[lay.PX, :n_ours].mean())

        before = apart()
        fight(env, "wcnoks", 12)
        assert counters[lay.FRAME] == 12 * env.settings.decision_frames
        assert apart() < before - 100, "the armies have come nearer"
        lives = units[lay.ALIVE] != 0
        assert (counters[lay.N_OURS], counters[lay.N_THEIRS]) == (lives[:n_ours].sum(), lives[n_ours:].sum())
        assert sorted(units[lay.LIVE, : counters[lay.N_LIVE]]) == np.flatnonzero(lives).tolist()


def test_spawned_armies_face_each_other() -> None:
    env = begin("w15v17", 50)
    x = env.engine.units[:, lay.PX]
    assert abs(x[:, :15].mean() - 8 * 80) < 10
    assert abs(x[:, 15:].mean() - 8 * 170) < 10
    assert episode_seeds(0, np.arange(2)).shape == (2,)
