from __future__ import annotations

import numpy as np
import pytest

from muster.envs.rescue import RescueEnv, RescueSettings
from muster.errors import InputError
from muster.rng import episode_seeds


def started(n_envs: int = 64, seed: int = 0, **settings: object) -> RescueEnv:
    env = RescueEnv(RescueSettings(**settings), n_envs)  # type: ignore[arg-type]
    env.reset(np.arange(n_envs), episode_seeds(seed, np.arange(n_envs)))
    return env


def one_env(agents: list[tuple[int, int]], victims: list[tuple[int, int]], **settings: object) -> RescueEnv:
    """A single environment with everyone where the test wants them."""
    env = started(1, agents=len(agents), tasks=len(victims), **settings)
    env.agent_cells[0] = agents
    env.task_cells[0] = victims
    env.unsolved[:] = True
    return env


def test_all_start_cells_are_distinct_by_default():
    env = started(500, agents=8, tasks=15)
    cells = np.concatenate([env.agent_cells, env.task_cells], axis=1) @ [16, 1]
    assert all(len(set(row)) == 23 for row in cells)


def test_a_full_grid_can_be_filled_with_distinct_cells():
    env = started(20, agents=2, tasks=4, grid=(2, 3))
    cells = np.concatenate([env.agent_cells, env.task_cells], axis=1) @ [3, 1]
    assert (np.sort(cells, axis=1) == np.arange(6)).all()


def test_distinct_within_type_lets_types_share_cells_only():
    env = started(2000, agents=3, tasks=3, grid=3, placement="distinct-within-type")
    agents, tasks = env.agent_cells @ [3, 1], env.task_cells @ [3, 1]
    assert all(len(set(row)) == 3 for row in agents)
    assert all(len(set(row)) == 3 for row in tasks)
    shared = (agents[:, :, None] == tasks[:, None]).any(axis=1)
    assert shared.any()
    assert (env.unsolved == ~shared).all(), "a victim under an ambulance is picked up at once"


def test_independent_cells_may_coincide():
    agents = started(500, agents=4, tasks=1, grid=3, placement="independent").agent_cells @ [3, 1]
    assert any(len(set(row)) < 4 for row in agents)


@pytest.mark.parametrize("placement", ["distinct", "distinct-within-type", "independent"])
def test_start_cells_are_uniform(placement):
    env = started(20_000, agents=1, tasks=1, grid=4, placement=placement)
    for cells in (env.agent_cells, env.task_cells):
        counts = np.bincount((cells[:, 0] @ [4, 1]), minlength=16)
        expected = 20_000 / 16
        assert ((counts - expected) ** 2 / expected).sum() < 37.7, "chi-square with 15 degrees, 0.1 %"


def test_ambulances_go_diagonally_first_and_then_straight():
    env = one_env([(0, 0)], [(2, 5)])
    seen = []
    for _ in range(5):
        env.step(np.zeros((1, 1), np.int64))
        seen.append(tuple(env.agent_cells[0, 0]))
    assert seen == [(1, 1), (2, 2), (2, 3), (2, 4), (2, 5)]


def test_an_episode_lasts_until_the_last_pick_up_and_costs_a_hundredth_a_step():
    env = one_env([(0, 0)], [(0, 3), (0, 5)])
    rewards = []
    for task in (0, 0, 0, 1, 1):
        result = env.step(np.array([[task]]))
        rewards.append(result.reward[0])
        assert not result.truncated[0]
        assert bool(result.terminated[0]) == (len(rewards) == 5)
    assert rewards == [-0.01] * 5
    assert env.outcome()[0] == 5


def test_whoever_reaches_a_victim_picks_it_up():
    env = one_env([(0, 0), (9, 9)], [(0, 1), (0, 2)])
    env.step(np.array([[1, -1]]))
    assert list(env.unsolved[0]) == [False, True], "victim 0 lay on the way to victim 1"


def test_a_picked_up_victim_takes_no_agent_unless_the_setting_allows_it():
    for allowed in (False, True):
        env = one_env([(0, 0)], [(0, 1), (5, 5)], solved_assignable=allowed)
        env.step(np.array([[0]]))
        env.agent_cells[0, 0] = (3, 3)
        assert list(env.observe().task_alive[0]) == [allowed, True]
        env.step(np.array([[0]]))
        assert tuple(env.agent_cells[0, 0]) == ((2, 2) if allowed else (3, 3))


def test_idle_ambulances_run_into_the_step_limit():
    env = started(4, max_steps=7)
    for step in range(7):
        result = env.step(np.full((4, 2), -1))
        assert result.truncated.all() == (step == 6)
    assert not result.terminated.any()
    assert (env.step(np.zeros((4, 2), np.int64)).reward == 0).all(), "ended environments stand still"
    assert (env.outcome() == 7).all()


def test_random_moves_always_come_nearer_and_differ():
    env = started(300, agents=1, tasks=1, random_moves=True)
    env.agent_cells[:] = (0, 0)
    env.task_cells[:] = (3, 9)
    env.unsolved[:] = True
    for distance in range(8, -1, -1):
        env.step(np.zeros((300, 1), np.int64))
        assert (np.abs(env.agent_cells - env.task_cells).max(axis=-1) == distance).all()
        assert env.agent_cells.min() >= 0
        if distance == 4:
            assert len(np.unique(env.agent_cells[:, 0, 0])) > 2
    assert not env.unsolved.any()


def test_a_random_move_straight_ahead_takes_each_of_three_ways_equally_often():
    env = started(9000, agents=1, tasks=1, random_moves=True)
    env.agent_cells[:] = (8, 0)
    env.task_cells[:] = (8, 9)
    env.step(np.zeros((9000, 1), np.int64))
    assert (env.agent_cells[:, 0, 1] == 1).all()
    assert np.bincount(env.agent_cells[:, 0, 0])[7:10] == pytest.approx([3000] * 3, abs=180)


def test_features_are_centred_coordinates_in_units_of_eight_cells():
    env = one_env([(0, 15)], [(15, 0), (0, 14)])
    env.step(np.array([[1]]))
    seen = env.observe()
    assert seen.agent_features[0] == pytest.approx(np.array([[6.5 / 8, -7.5 / 8]]))
    assert seen.task_features[0] == pytest.approx(np.array([[-7.5 / 8, 7.5 / 8, 0], [6.5 / 8, -7.5 / 8, 1]]))
    assert seen.pair_features[0, 0, 0] == pytest.approx(np.array([-14, 15, 14, 15, 15]) / 8)
    assert seen.task_pair_features[0, 1, 0] == pytest.approx(np.array([-14, 15, 14, 15, 15]) / 8)


def test_planes_show_waiting_victims_ambulances_and_coordinates():
    env = one_env([(2, 3)], [(4, 5), (2, 4)])
    env.show(planes=True)
    env.step(np.array([[1]]))
    planes = env.observe().planes[0]
    assert planes.shape == (4, 16, 16)
    assert np.argwhere(planes[0]).tolist() == [[4, 5]]
    assert np.argwhere(planes[1]).tolist() == [[2, 4]]
    assert planes[2:, 4, 5] == pytest.approx(np.array([-2.5 / 8, -3.5 / 8]))
    assert planes[2:, 2, 4] == pytest.approx(np.array([-3.5 / 8, -5.5 / 8]))
    assert np.count_nonzero(planes) == 2 + 4


@pytest.mark.parametrize("solved_assignable", [False, True])
def test_a_step_is_what_the_rules_say(solved_assignable):
    """The dynamics written again, with numpy: king's moves, then pick-ups, until none waits or the limit comes."""
    env = started(40, agents=5, tasks=6, grid=7, max_steps=12, solved_assignable=solved_assignable)
    agents, waiting, ended = env.agent_cells.copy(), env.unsolved.copy(), np.zeros(40, bool)
    rng = np.random.default_rng(0)
    endings = set()
    for count in range(1, 14):
        assignment = rng.integers(-1, 6, (40, 5))
        result = env.step(assignment)
        sent = (assignment >= 0) & (solved_assignable | np.take_along_axis(waiting, assignment, 1)) & ~ended[:, None]
        goals = np.take_along_axis(env.task_cells, assignment[:, :, None], 1)
        agents += np.sign(goals - agents) * sent[:, :, None]
        reached = (agents[:, :, None] == env.task_cells[:, None]).all(-1).any(1)
        waiting &= ~(reached & ~ended[:, None])
        terminated = ~waiting.any(1) & ~ended
        truncated = ~terminated & ~ended & (count >= 12)
        assert np.array_equal(env.agent_cells, agents)
        assert np.array_equal(env.unsolved, waiting)
        assert np.array_equal(result.reward, np.where(ended, 0.0, -0.01))
        assert np.array_equal(result.terminated, terminated)
        assert np.array_equal(result.truncated, truncated)
        ended |= terminated | truncated
        endings |= ({"terminated"} if terminated.any() else set()) | ({"truncated"} if truncated.any() else set())
    assert endings == {"terminated", "truncated"}


def test_threads_change_nothing():
    states = []
    for threads in ("one", "all"):
        env = started(200, agents=3, tasks=5, random_moves=True, threads=threads)
        rng = np.random.default_rng(0)
        for step in range(20):
            if threads == "all":
                env.threads = 1 + step % 3
            env.step(rng.integers(-1, 5, (200, 3)))
        states.append(env.get_state())
    assert all(np.array_equal(array, states[1][name]) for name, array in states[0].items())


@pytest.mark.parametrize(
    ("assignment", "complaint"),
    [
        (np.array([[4, 0]]), "tasks are -1 to 3, got 4 for agent 0 of slot 0"),
        (np.array([[0, -2]]), "tasks are -1 to 3, got -2 for agent 1 of slot 0"),
        (np.array([0, 1]), r"must have shape \(1, 2\), got \(2,\)"),
    ],
)
def test_a_wrong_assignment_is_refused_and_changes_nothing(assignment, complaint):
    env = started(1)
    before = env.get_state()
    with pytest.raises(InputError, match=complaint):
        env.step(assignment)
    assert all(np.array_equal(array, before[name]) for name, array in env.get_state().items())


@pytest.mark.parametrize(
    "text",
    ["2x4", "20x40,grid=32", "3x6,grid=8x20,placement=independent,random_moves=true,max_steps=50", "1x1,mud=0.5"],
)
def test_the_name_of_an_environment_makes_it_again(text):
    settings = RescueSettings.from_text(text)
    assert settings.name == f"rescue:{text}"
    assert RescueSettings.from_text(settings.name.removeprefix("rescue:")) == settings


def test_the_text_picture_shows_everyone():
    env = one_env([(0, 0), (0, 0)], [(1, 1), (2, 2)], grid=3)
    env.unsolved[0, 1] = False
    assert env.renderer().describe(0).splitlines() == ["step 0, 1 waiting", "2 . .", ". x .", ". . -"]


def test_the_picture_has_a_colour_for_every_ambulance():
    picture = started(1, agents=3, tasks=3).renderer().draw(0)
    assert picture.dtype == np.uint8
    assert picture.shape[2] == 3
    assert len(np.unique(picture.reshape(-1, 3), axis=0)) > 10


@pytest.mark.parametrize("slots", [[-1], [3], [0, 1]])
def test_slots_that_do_not_exist_or_have_no_seed_are_refused(slots):
    env = started(3)
    before = env.get_state()
    with pytest.raises((IndexError, ValueError), match="slot"):
        env.reset(np.array(slots), np.zeros(1, np.uint64))
    assert all(np.array_equal(array, before[name]) for name, array in env.get_state().items())
