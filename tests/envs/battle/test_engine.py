"""What holds in every battle, whatever the tactics: the engine's physics, frame by frame."""

from __future__ import annotations

import numpy as np
import pytest

from muster.envs.battle import from_options
from muster.envs.battle import layout as lay
from muster.envs.battle.env import BattleEnv
from muster.evaluation.replay import state_hash
from muster.kernels import core
from muster.rng import episode_seeds

from .conftest import begin, fight, frames, gaps

SCENARIOS = ["m6v6", "w7v7", "zh4v4"]


class Before:
    """Slot 0 as it was one frame ago."""

    def __init__(self, env: BattleEnv) -> None:
        self.units = env.units[0].copy()

    def advance(self, env: BattleEnv) -> tuple[np.ndarray, np.ndarray]:
        """The units before and after this frame."""
        before, self.units = self.units, env.units[0].copy()
        return before, self.units


# Health


def damage_dealt(env: BattleEnv, before: np.ndarray, now: np.ndarray) -> np.ndarray:
    """[U] damage (1/256) of all shots that landed and all blows that fell in this frame."""
    dealt = np.zeros(env.n_units, dtype=np.int64)
    for bullet in env.bullets[0, : env.counters[0, lay.N_BULLETS]]:
        shooter = now[lay.TYPE, bullet[lay.B_SOURCE]]
        landed = bullet[lay.B_STATE] == lay.SHOWING and bullet[lay.B_TIMER] == env.types[shooter, lay.T_BULLET_FRAMES]
        if landed and not bullet[lay.B_MISS] and bullet[lay.B_UNIT] >= 0:
            dealt[bullet[lay.B_UNIT]] += env.types[shooter, lay.TYPE_FIELDS + now[lay.TYPE, bullet[lay.B_UNIT]]]
    melee = env.types[now[lay.TYPE], lay.T_SHOT] == lay.SHOT_MELEE
    # A blow falls in the frame whose number in the attack is the type's.
    time = env.types[now[lay.TYPE], lay.T_SHOT_FIRST]
    for i in np.flatnonzero(melee & (before[lay.ATTACK_TIME] <= time) & (now[lay.ATTACK_TIME] == time + 1)):
        target = now[lay.ORDER_UNIT, i]
        if target >= 0:
            dealt[target] += env.types[now[lay.TYPE, i], lay.TYPE_FIELDS + now[lay.TYPE, target]]
    return dealt


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_health_lost_is_damage_dealt(scenario: str) -> None:
    """Less what a dead unit no longer takes; a regenerating unit gains a little, at most up to its full health."""
    env = begin(scenario)
    last = Before(env)
    total = 0

    def check(env: BattleEnv) -> None:
        nonlocal total
        before, now = last.advance(env)
        dealt = damage_dealt(env, before, now)
        kinds = env.types[now[lay.TYPE]]
        left = before[lay.HP] - dealt
        assert (now[lay.HP] >= np.maximum(left, 0)).all()
        assert (now[lay.HP] <= np.clip(left + kinds[:, lay.T_REGEN], 0, kinds[:, lay.T_HP])).all()
        assert ((now[lay.HP] > 0) == (now[lay.ALIVE] != 0)).all()
        total += int(dealt.sum())

    frames(env, "c", check, 150)
    assert total > env.types[:, lay.T_HP].min()  # somebody died, so it was tested


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_dead_do_nothing(scenario: str) -> None:
    env = begin(scenario)
    last = Before(env)
    rows = [row for row in range(lay.UNIT_FIELDS) if row != lay.LIVE]
    deaths = 0

    def check(env: BattleEnv) -> None:
        nonlocal deaths
        before, now = last.advance(env)
        dead = np.flatnonzero(before[lay.ALIVE] == 0)
        assert (before[np.ix_(rows, dead)] == now[np.ix_(rows, dead)]).all()
        live = now[lay.LIVE, : env.counters[0, lay.N_LIVE]]
        assert sorted(live) == np.flatnonzero(now[lay.ALIVE]).tolist()
        deaths = int((now[lay.ALIVE] == 0).sum())

    frames(env, "wc", check, 150)
    assert deaths


def test_counters_agree_with_the_units() -> None:
    env = begin("zh4v4")

    def check(env: BattleEnv) -> None:
        units, counters, n = env.units[0], env.counters[0], env.n_agents
        alive = units[lay.ALIVE] != 0
        shown = np.where(alive, (units[lay.HP] + 255) >> 8, 0)
        assert (counters[lay.N_OURS], counters[lay.N_THEIRS]) == (alive[:n].sum(), alive[n:].sum())
        assert (counters[lay.HEALTH_OURS], counters[lay.HEALTH_THEIRS]) == (shown[:n].sum(), shown[n:].sum())
        assert bool(counters[lay.ENDED]) == (not alive[:n].any() or not alive[n:].any())

    frames(env, "c", check, 150)


# Movement


@pytest.mark.parametrize("scenario", ["m5v5", "zh3v3"])
def test_ground_units_never_overlap(scenario: str) -> None:
    def check(env: BattleEnv) -> None:
        x, y = gaps(env)
        apart = (x >= 0) | (y >= 0) | np.eye(env.n_units, dtype=bool)
        alive = env.units[0, lay.ALIVE] != 0
        assert apart[np.ix_(alive, alive)].all()

    for seed in range(3):
        frames(begin(scenario, 1, seed), "c", check, 120)


def test_units_never_start_on_top_of_each_other() -> None:
    for seed in range(5):
        env = begin("m40v40", 1, seed)
        x, y = gaps(env)
        assert ((x >= 0) | (y >= 0) | np.eye(env.n_units, dtype=bool)).all()


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_speed_acceleration_and_turns_are_limited(scenario: str) -> None:
    env = begin(scenario)
    last = Before(env)
    still, push = 192, 128
    fastest = 0.0

    def check(env: BattleEnv) -> None:
        nonlocal fastest
        before, now = (units.astype(np.int64) for units in last.advance(env))
        kinds = env.types[now[lay.TYPE]]
        flies = kinds[:, lay.T_FLYER] != 0
        walk = kinds[:, lay.T_WALK : lay.T_WALK + lay.MAX_WALK].max(axis=1)
        top = np.maximum(kinds[:, lay.T_TOP], walk) + np.where(flies, push, 0)
        moved = np.hypot(now[lay.X] - before[lay.X], now[lay.Y] - before[lay.Y])
        # Unit vectors are rounded to 1/256.
        assert (moved <= top * 1.005 + 2).all()
        faster = np.abs(now[lay.SPEED] - before[lay.SPEED])
        halted = (now[lay.SPEED] == 0) & (before[lay.SPEED] < still)
        assert (~flies | halted | (faster <= kinds[:, lay.T_ACCEL])).all()
        turned = np.abs((now[lay.HEADING] - before[lay.HEADING] + 128) % 256 - 128)
        assert (turned <= kinds[:, lay.T_TURN]).all()
        fastest = max(fastest, float(moved.max()))

    frames(env, "wcnoks", check, 120)
    assert fastest > 256


def test_flyers_are_counted_in_their_cells() -> None:
    def check(env: BattleEnv) -> None:
        live = env.units[0, lay.ALIVE] != 0
        counts = np.bincount(env.units[0, lay.CELL, live], minlength=lay.CELLS**2)
        assert (env.cells[0] == counts).all()

    frames(begin("w8v8"), "wcnoks", check, 60)


# Attacks and orders


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_attacks_respect_range_sight_and_cooldown(scenario: str) -> None:
    env = begin(scenario)
    fired: dict[int, int] = {}
    shots = 0

    def check(env: BattleEnv) -> None:
        nonlocal shots
        units, types = env.units[0], env.types
        frame = int(env.counters[0, lay.FRAME]) - 1
        x, y = gaps(env)
        for i in np.flatnonzero((units[lay.FIRED_FRAME] == frame) & (units[lay.ALIVE] != 0)):
            kind, target = units[lay.TYPE, i], units[lay.ORDER_UNIT, i]
            # A blow may have killed the target, which then stands where it fell.
            way = core.battle.length(max(int(x[i, target]), 0), max(int(y[i, target]), 0))
            assert way <= types[kind, lay.T_RANGE]
            assert units[lay.SEEN, target]
            assert units[lay.SIDE, i] != units[lay.SIDE, target]
            assert frame - fired.get(i, -100) >= types[kind, lay.T_COOLDOWN] - 1
            fired[i] = frame
            shots += 1

    frames(env, "c", check, 120)
    assert shots > 20


@pytest.mark.parametrize("latency", [0, 2, 5])
def test_a_command_takes_effect_after_the_latency(latency: int) -> None:
    env = begin(f"m2v2,latency={latency}")
    before = env.get_state()
    for count in range(1, lay.DECISION_FRAMES + 1):
        env.set_state(before)
        env.kernel.run_frames(np.array([[1, lay.HOLD]]), count, 0, 1)
        attacks = env.units[0, lay.ORDER, 0] == lay.ATTACK and env.units[0, lay.ORDER_UNIT, 0] == 3
        assert attacks == (count > latency)


def test_what_has_been_seen_stays_seen() -> None:
    assert begin("m4v4,fog=false").units[0, lay.SEEN].all()
    env = begin("m4v4")
    assert not env.units[0, lay.SEEN].any()
    last = Before(env)

    def check(env: BattleEnv) -> None:
        before, now = last.advance(env)
        assert (now[lay.SEEN] >= before[lay.SEEN]).all()

    frames(env, "c", check, 60)
    assert last.units[lay.SEEN].any()


def test_bullets_never_exceed_the_limit() -> None:
    highest = 0

    def check(env: BattleEnv) -> None:
        nonlocal highest
        highest = max(highest, int(env.counters[0, lay.N_BULLETS]))

    env = begin("w70v70")
    frames(env, "c", check, 50)
    assert highest == lay.BULLET_LIMIT
    assert env.counters[0, lay.LOST_SHOTS] > 0


# Whole battles


@pytest.mark.parametrize("name", ["w9v9", "m7v7"])
def test_mirrored_armies_win_equally_often(name: str) -> None:
    """Both sides attack-move, neither is always updated first and the map is empty: neither side has an edge."""
    n = 300
    env = begin(f"{name},first_order=0,latency=0,opponent_first=true", n, seed=3)
    swapped = begin(f"{name},first_order=0,latency=0,opponent_first=false", n, seed=3)
    wins = [fight(e, "attack-move").outcome().mean() for e in (env, swapped)]
    # Updated first and last in turn, so that the average is 1/2 up to noise (about 2.9 % with draws).
    assert np.mean(wins) == pytest.approx(0.5, abs=0.09)


def test_more_units_win() -> None:
    assert fight(begin("m12v4", 20), "c").outcome().mean() == 1
    assert fight(begin("m4v12", 20), "c").outcome().mean() == 0


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_an_episode_depends_on_its_seed_alone(scenario: str) -> None:
    alone = [state_hash(fight(begin(scenario, 1, first=k), "wcnoks", 60)) for k in range(3)]
    together = fight(begin(scenario, 3), "wcnoks", 60)
    assert [state_hash(together, k) for k in range(3)] == alone
    assert len(set(alone)) == 3


def test_the_number_of_threads_does_not_matter() -> None:
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


def test_a_finished_battle_stands_still() -> None:
    env = fight(begin("m6v1"), "c")
    before = state_hash(env)
    step = env.step(np.zeros((1, 6), dtype=np.int64))
    assert state_hash(env) == before
    assert step.reward[0] == 0
    assert not step.terminated[0]
    assert not step.truncated[0]


def test_large_battles_work() -> None:
    for scenario in ("w80v82", "m200v200"):
        env = begin(scenario)
        units, counters, n_ours = env.units[0], env.counters[0], env.n_agents

        def apart(units: np.ndarray = units, n_ours: int = n_ours) -> float:
            return float(units[lay.PX, n_ours:].mean() - units[lay.PX, :n_ours].mean())

        before = apart()
        fight(env, "wcnoks", 12)
        assert counters[lay.FRAME] == 12 * lay.DECISION_FRAMES
        assert apart() < before - 100, "the armies have come nearer"


def test_spawned_armies_face_each_other() -> None:
    x = begin("w15v17", 50).units[:, lay.PX]
    assert abs(x[:, :15].mean() - 8 * 80) < 10
    assert abs(x[:, 15:].mean() - 8 * 170) < 10


# The arrays


def test_python_and_the_engine_agree_on_where_things_are() -> None:
    """Rows from the first to the last of `units`, as a battle begins and after its first decisions."""
    env = begin("zh2v2", seed=1)
    units, counters = env.units[0], env.counters[0]
    assert units[lay.TYPE].tolist() == [1, 1, 0, 0] * 2
    assert units[lay.SIDE].tolist() == [0] * 4 + [1] * 4
    assert (units[lay.HP] == env.types[units[lay.TYPE], lay.T_HP]).all()
    assert sorted(units[lay.LIVE]) == list(range(8))
    for exact, whole in ((lay.X, lay.PX), (lay.OLD_X, lay.TARGET_X), (lay.Y, lay.WAY_Y), (lay.OLD_Y, lay.FACE_Y)):
        assert (units[exact] == 256 * units[whole]).all()
    assert (units[lay.ORDER] == lay.IDLE).all()
    assert (units[[lay.QUEUED, lay.PENDING]] == lay.NO_ORDER).all()
    assert (units[[lay.TARGET_UNIT, lay.HIT_UNIT, lay.ORDER_UNIT, lay.AUTO, lay.PREVIOUS, lay.FIRED_FRAME]] == -1).all()
    assert counters[[lay.FRAME, lay.N_LIVE, lay.N_OURS, lay.N_THEIRS, lay.ENDED]].tolist() == [0, 8, 4, 4, 0]
    fight(env, "c", 3)
    assert counters[[lay.FRAME, lay.STEPS]].tolist() == [3 * lay.DECISION_FRAMES, 3]
    assert (units[lay.ORDER, :4] == lay.ATTACK).all()
    assert (units[lay.ORDER, 4:] == lay.ATTACK_MOVE).all()
    assert (units[lay.ORDER_UNIT, :4] == 4 + units[lay.PREVIOUS, :4]).all()
    assert (units[lay.PX] == units[lay.X] >> 8).all()


@pytest.mark.parametrize("row", ["units", "counters", "bullets", "cells", "rng"])
def test_arrays_of_another_layout_are_refused(row: str) -> None:
    env = begin("m2v2", 3)
    arrays = dict(env.arrays())
    arrays[row] = arrays[row][:2].copy()
    fixed = (env.types, env.scenario.roster(), 2, 2, 1, 3, 0, True, True)
    with pytest.raises(ValueError, match="numbers of battles"):
        core.battle.Battles(*arrays.values(), *fixed)


def test_slots_and_shares_beyond_the_batch_are_refused() -> None:
    env = begin("m2v2", 3)
    with pytest.raises(ValueError, match="no such slot"):
        env.reset(np.array([3]), episode_seeds(0, np.array([0])))
    with pytest.raises(ValueError, match="no such range"):
        env.kernel.run_frames(np.zeros((3, 2), np.int64), 6, 0, 4)
    with pytest.raises(ValueError, match="number of agents"):
        env.kernel.run_frames(np.zeros((3, 1), np.int64), 6, 0, 3)
