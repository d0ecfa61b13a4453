"""What the environment shows, rewards and does with an assignment."""

from __future__ import annotations

import numpy as np
import pytest

from muster.envs.battle import from_options
from muster.envs.battle import layout as lay
from muster.envs.battle.env import BattleEnv
from muster.envs.vector import IDLE, Policy
from muster.errors import InputError
from muster.rng import episode_seeds

from .conftest import begin, fight


def test_shapes_and_masks() -> None:
    env = begin("zh2v3", 4)
    seen = env.observe()
    assert seen.agent_features.shape == (4, 4, 10)
    assert seen.task_features.shape == (4, 6, 10)
    assert seen.pair_features.shape == (4, 4, 6, 2)
    assert seen.task_pair_features.shape == (4, 6, 6, 0)
    assert seen.contributions.shape == (4, 4, 6)
    assert seen.capacities.shape == (4, 6)
    assert seen.agent_alive.all()
    assert seen.task_alive.all()
    assert begin("m2v2").observe().agent_features.shape == (1, 2, 8)


def test_features_of_a_unit_by_hand() -> None:
    env = begin("zh1v1")
    units = env.units[0]
    # Our zergling (unit 0) has lost some health, moves, and has half its cooldown left.
    units[lay.PX, 0], units[lay.PY, 0] = 640, 960
    units[lay.X, 0], units[lay.OLD_X, 0] = 1000, 1000 - 5 * 256
    units[lay.Y, 0], units[lay.OLD_Y, 0] = 1000, 1000
    units[lay.HP, 0] = 20 * 256 + 1
    units[lay.COOLDOWN, 0] = 4
    row = env.observe().agent_features[0, 0]
    # Types in alphabetical order: hydralisk, zergling.
    np.testing.assert_allclose(row, [0, -5, 0, 1, 0, 21 / 35, 0.5, 0, 0, 1], rtol=1e-6)
    hydralisk = env.observe().task_features[0, 1]
    assert hydralisk[0] == 1
    assert hydralisk[7] == pytest.approx(2.0)
    assert hydralisk[8:].tolist() == [1, 0]


def test_an_opponent_ordered_first_has_set_off_by_our_first_decision() -> None:
    # Slot 0 has been at it for a while; only the other one begins anew.
    env = fight(begin("w3v3,first_order=-5", 2), "c", 10)
    kept = env.units[0].copy()
    env.reset(np.array([1]), episode_seeds(1, np.array([0])))
    assert (env.units[0] == kept).all()
    assert env.counters[1, lay.FRAME] == 0
    orders = env.units[1, lay.ORDER]
    assert (orders[3:] == lay.ATTACK_MOVE).all()
    assert (orders[:3] != lay.ATTACK_MOVE).all()


def test_units_that_have_stood_look_at_their_orders_in_step() -> None:
    units = begin("w20v20,standing=3", 10).units
    # The order was looked at two frames ago, every ninth frame, and the target search set for 0 to 15 frames then.
    assert (units[:, lay.LOOK_TIMER] == 6).all()
    assert units[:, lay.MAIN_TIMER].min() == 0
    assert units[:, lay.MAIN_TIMER].max() == 13
    with pytest.raises(InputError, match="standing must be between 0 and 9"):
        begin("w2v2,standing=10")


def test_pair_features_are_distance_and_previous_target() -> None:
    env = begin("m2v2,raw_distance=true")
    units = env.units[0]
    units[lay.PX], units[lay.PY] = [80, 88, 160, 400], [80, 80, 80, 80]
    env.units[0, lay.PREVIOUS, :2] = [1, -1]
    pairs = env.observe().pair_features[0]
    assert pairs[:, :, 0].tolist() == [[10, 40], [9, 39]]
    assert pairs[:, :, 1].tolist() == [[0, 1], [0, 0]]


def test_capacity_by_hand() -> None:
    env = begin("m4v1")
    units = env.units[0]

    def capacity() -> float:
        return float(env.observe().capacities[0, 0])

    units[lay.HP, 4] = 40 * 256
    assert capacity() == 42  # 7 hits of 6
    units[lay.HP, 4] = 12 * 256
    units[lay.PREVIOUS, :4] = 0
    assert capacity() == 12  # two of the four attackers suffice
    units[lay.HP, 4] = 12 * 256 + 1
    assert capacity() == 18  # 13 shown: three of them
    units[lay.PREVIOUS, :2] = -1
    assert capacity() == 18  # the two left do not suffice: 3 hits of 6


def test_capacity_takes_the_least_damage_of_mixed_armies() -> None:
    env = begin("zh1v1")
    seen = env.observe()
    # On their hydralisk (80 hp) our zergling does 5 and our hydralisk 7; on their zergling (35 hp) both do 5.
    assert seen.contributions[0].tolist() == [[5, 5], [5, 7]]
    assert seen.capacities[0].tolist() == [35, 80]


def test_reward_is_the_difference_of_health_lost() -> None:
    env = begin("m5v5", 1, seed=2)
    total = 0.0
    policy = BattleEnv.baselines()["c"](env)
    policy.reset(np.array([0]), np.array([1], dtype=np.uint64))
    ended = False
    while not ended:
        before = env.counters[0, [lay.HEALTH_OURS, lay.HEALTH_THEIRS]].copy()
        step = env.step(policy.act(env.observe()))
        after = env.counters[0, [lay.HEALTH_OURS, lay.HEALTH_THEIRS]]
        assert step.reward[0] == pytest.approx(((before[1] - after[1]) - (before[0] - after[0])) / 200)
        total += step.reward[0]
        ended = bool(step.terminated[0] or step.truncated[0])
    left = env.counters[0, lay.HEALTH_OURS] - env.counters[0, lay.HEALTH_THEIRS]
    assert total == pytest.approx(left / 200)
    assert env.outcome()[0] == (left > 0)


def test_the_final_reward_is_optional() -> None:
    plain, extra = begin("m6v1"), begin("m6v1,final_reward=true")
    a = b = None
    for _ in range(200):
        assignment = np.zeros((1, 6), dtype=np.int64)
        a, b = plain.step(assignment), extra.step(assignment)
        if a.terminated[0]:
            break
        assert a.reward[0] == b.reward[0]
    assert a is not None
    assert b is not None
    assert b.reward[0] - a.reward[0] == pytest.approx(plain.counters[0, lay.HEALTH_OURS] / 240)


def resolved(env: BattleEnv, *assignment: int) -> list[int]:
    return [int(order) for order in env.resolve(np.array([assignment]))[0]]


def test_an_agent_that_could_have_fitted_stops() -> None:
    env = begin("m2v2")
    assert resolved(env, 0, -1) == [0, lay.HOLD]


def test_an_agent_that_fits_nowhere_keeps_its_target_or_takes_the_closest() -> None:
    env = begin("m3v2")
    units = env.units[0]
    units[lay.PX], units[lay.PY] = [80, 80, 80, 160, 400], [80, 80, 80, 80, 80]
    units[lay.HP, 3:] = 5 * 256  # one hit each: both enemies are spoken for
    units[lay.PREVIOUS, 2] = 1
    assert resolved(env, 0, 1, -1) == [0, 1, 1]
    units[lay.PREVIOUS, 2] = -1
    assert resolved(env, 0, 1, -1) == [0, 1, 0]


def test_who_stops_can_be_left_to_the_policys_reasons() -> None:
    env = begin("m2v2,idle=reasons")
    assert env.reads_reasons
    assert IDLE == lay.HOLD
    # There is capacity left, but the policy does not say that it wants to idle.
    env.units[0, lay.PREVIOUS, 1] = 1
    assert resolved(env, 0, -1) == [0, 1]
    assert resolved(env, 0, IDLE) == [0, lay.HOLD]


def test_the_last_enemy_is_attacked_by_the_unassigned() -> None:
    env = begin("m3v2")
    env.units[0, lay.ALIVE, 3] = 0
    assert resolved(env, -1, -1, 1) == [1, 1, 1]


def test_a_dead_enemy_counts_as_no_assignment() -> None:
    env = begin("m2v3")
    env.units[0, lay.ALIVE, 2] = 0
    assert resolved(env, 0, 1) == [lay.HOLD, 1]


def test_explicit_orders_bypass_the_rules() -> None:
    env = begin("m2v1")
    assert resolved(env, lay.HOLD, lay.MARCH) == [lay.HOLD, lay.MARCH]


@pytest.mark.parametrize(
    "assignment",
    [np.zeros((1, 3), np.int64), np.zeros((1, 2)), np.full((1, 2), 2), np.full((1, 2), -4), np.zeros(2, np.int64)],
)
def test_impossible_assignments_are_refused(assignment: np.ndarray) -> None:
    with pytest.raises(InputError, match="assignment must"):
        begin("m2v2").step(assignment)


def test_a_unit_told_to_stop_never_fires() -> None:
    env = begin("m1v1")
    for _ in range(60):
        env.step(np.array([[lay.HOLD]]))
    assert env.units[0, lay.FIRED_FRAME, 0] == -1
    assert env.units[0, lay.HP, 0] < 40 * 256


def test_slots_can_be_restarted_one_by_one() -> None:
    env = fight(begin("m3v3", 3), "c", 20)
    before = env.get_state()
    env.reset(np.array([1]), np.array([77], dtype=np.uint64))
    after = env.get_state()
    for name in before:
        assert (before[name][[0, 2]] == after[name][[0, 2]]).all()
    assert after["counters"][1, lay.FRAME] == 0


def test_planes_hold_each_unit_at_its_cell() -> None:
    env = begin("w3v3,planes=true")
    seen = env.observe()
    assert seen.planes is not None
    assert seen.agent_cells is not None
    assert seen.task_cells is not None
    assert seen.planes.shape == (1, 16, 100, 100)
    assert seen.planes[0, 5].sum() == pytest.approx(3)  # our health
    row, column = seen.task_cells[0, 0]
    assert seen.planes[0, 8, row, column] >= 1  # an enemy stands there


def test_every_baseline_is_a_policy_that_can_play() -> None:
    for name, make in BattleEnv.baselines().items():
        env = begin("w3v2", 2)
        policy = make(env)
        assert isinstance(policy, Policy)
        assert policy.name == name
        fight(env, name, 40)


def test_environment_describes_itself() -> None:
    env = from_options("w15v17", 2)
    assert (env.name, env.metric, env.n_agents, env.n_tasks) == ("battle:w15v17", "win_rate", 15, 17)
    assert env.max_steps == 833


def test_observation_is_not_touched_by_later_steps() -> None:
    env = begin("m3v3")
    seen = env.observe()
    copy = seen.agent_features.copy()
    fight(env, "c", 20)
    assert (seen.agent_features == copy).all()


def test_a_battle_shows_what_a_model_asks_for() -> None:
    env = begin("w3v3")
    bare = env.observe()
    assert bare.planes is None
    env.show(pair_features=False, planes=True)
    seen = env.observe()
    assert seen.pair_features.shape == (1, 3, 3, 0)
    assert seen.planes is not None
    assert seen.planes.shape == (1, 16, 100, 100)
    env.show(pair_features=True, planes=False)
    assert env.observe().planes is None
    assert (env.observe().pair_features == bare.pair_features).all()
    asked = begin("w3v3,planes=true")
    asked.show(pair_features=True, planes=False)
    assert asked.observe().planes is not None, "what the environment string asks for stays"
