from __future__ import annotations

import numpy as np
import pytest

import muster
from muster.envs.checks import check_env
from muster.envs.pursuit import PursuitEnv, PursuitSettings
from muster.envs.pursuit.env import FEATURE_NAMES
from muster.envs.renderer import draw_scene, scenes_between
from muster.errors import InputError
from muster.rng import episode_seeds
from tests.envs.pursuit.plain import Cell, Plain

TASK = {name: k for k, name in enumerate(FEATURE_NAMES["task"])}
PAIR = {name: k for k, name in enumerate(FEATURE_NAMES["pair"])}


def started(n_envs: int = 64, seed: int = 0, **settings: object) -> PursuitEnv:
    env = PursuitEnv(PursuitSettings(**settings), n_envs)  # type: ignore[arg-type]
    env.reset(np.arange(n_envs), episode_seeds(seed, np.arange(n_envs)))
    return env


def one_env(pursuers: list[Cell], evaders: list[Cell], n_envs: int = 1, **settings: object) -> PursuitEnv:
    """Environments with everyone where the test wants them."""
    env = started(n_envs, agents=len(pursuers), tasks=len(evaders), **settings)
    env.agent_cells[:] = pursuers
    env.task_cells[:] = evaders
    return env


def cells(array: np.ndarray) -> list[Cell]:
    return [(int(row), int(column)) for row, column in array]


@pytest.mark.parametrize("name", ["pursuit:4x2", "pursuit:5x3,walls=true,needed=3", "pursuit:3x4,grid=5x9"])
def test_every_check_passes(name):
    findings = check_env(name)
    assert {finding.check: finding.detail for finding in findings if finding.status not in ("passed", "measured")} == {}


@pytest.mark.parametrize("walls", [False, True])
@pytest.mark.parametrize("needed", [1, 2, 3])
@pytest.mark.parametrize("grid", [(5, 5), (6, 9), (2, 7), (1, 6)])
def test_every_step_follows_the_rules_in_plain_python(walls, needed, grid):
    env = started(
        40, agents=3, tasks=2, walls=walls, needed=needed, grid=grid, sight=3, speed=0.8, max_steps=12, seed=needed
    )
    plain = Plain(*grid, walls, needed, sight=3)
    rng = np.random.default_rng(0)
    running = np.ones(40, bool)
    moved = stayed = 0
    for _ in range(12):
        before, assignment = env.get_state(), rng.integers(-1, 2, (40, 3))
        result = env.step(assignment)
        after = env.get_state()
        for b in range(40):
            if not running[b]:
                assert all(np.array_equal(before[name][b], array[b]) for name, array in after.items())
                continue
            pursuers, evaders = cells(before["pursuers"][b]), cells(before["evaders"][b])
            free = [bool(x) for x in before["free"][b]]
            targets = plain.targets(assignment[b].tolist(), pursuers, evaders, free)
            assert after["targets"][b].tolist() == targets
            now = cells(after["pursuers"][b])
            for here, there, task in zip(pursuers, now, targets, strict=True):
                assert there in (plain.moves(here, evaders[task]) if task >= 0 else {here})
            caught = [free[j] and plain.is_caught(now, evaders[j]) for j in range(2)]
            still_free = [free[j] and not caught[j] for j in range(2)]
            assert after["free"][b].tolist() == still_free
            for j, there in enumerate(cells(after["evaders"][b])):
                if not still_free[j]:
                    assert there == evaders[j]
                elif there == evaders[j]:
                    stayed += 1
                else:
                    moved += 1
                    assert there in plain.safest(now, evaders[j])
            assert result.reward[b] == pytest.approx(sum(caught) / 2 - 0.01)
            assert result.terminated[b] == (not any(still_free))
            assert result.truncated[b] == (any(still_free) and after["steps"][b] == 12)
        running &= ~(result.terminated | result.truncated)
    assert not running.any()
    if needed == 3:
        assert moved > 20
        assert stayed > 20


def test_an_evader_moves_as_often_as_its_speed_says_and_breaks_ties_evenly():
    # The pursuer two rows above makes the row below safest; its three cells are as dangerous.
    env = one_env([(0, 5)], [(2, 5)], 6000, needed=1, speed=0.75, grid=11, walls=True)
    env.agent_cells[:] = (0, 5)
    env.step(np.full((6000, 1), -1))
    env_moves = env._moves[:, 0]
    still = (env_moves == 0).all(axis=1)
    assert still.mean() == pytest.approx(0.25, abs=0.025)
    assert (env_moves[~still, 0] == 1).all()
    counts = np.bincount(env_moves[~still, 1] + 1, minlength=3) / (~still).sum()
    assert counts == pytest.approx([1 / 3] * 3, abs=0.03)


def test_an_evader_that_sees_nobody_wanders_to_any_of_nine_cells():
    env = one_env([(0, 0)], [(8, 8)], 9000, needed=1, speed=1.0, sight=3, grid=16)
    env.step(np.full((9000, 1), -1))
    counts = np.bincount((env._moves[:, 0] + 1) @ [3, 1], minlength=9) / 9000
    assert counts == pytest.approx([1 / 9] * 9, abs=0.02)


def test_one_beside_an_evader_does_not_catch_it_and_two_do():
    env = one_env([(4, 3), (4, 9)], [(4, 4)], grid=16, walls=True, speed=0.0)
    result = env.step(np.array([[0, -1]]))
    assert env.unsolved.all()
    assert result.reward[0] == pytest.approx(-0.01)
    for _ in range(3):
        result = env.step(np.array([[0, 0]]))
        assert not result.terminated[0]
    result = env.step(np.array([[0, 0]]))
    assert result.terminated[0]
    assert result.reward[0] == pytest.approx(0.99)
    assert env.outcome()[0] == 5
    assert env.metrics()["caught"].tolist() == [1.0]


def test_whoever_is_not_needed_helps_with_the_nearest_but_stays_while_there_is_room():
    everyone = [(0, 0), (0, 1), (9, 9), (9, 0)]
    env = one_env(everyone, [(4, 4), (12, 12)], grid=20, walls=True, speed=0.0)
    env.step(np.array([[0, 0, -1, -1]]))
    assert env.targets[0].tolist() == [0, 0, -1, -1]
    env.step(np.array([[0, 0, 1, 1]]))
    env.unsolved[0, 1] = False
    env.step(np.array([[0, 0, 1, -1]]))
    assert env.targets[0].tolist() == [0, 0, 0, 0]


def test_without_walls_the_way_leads_round_the_edge():
    env = one_env([(0, 0), (8, 15)], [(15, 14)], grid=16, speed=0.0)
    assert env.observe().prior[0, :, 0].tolist() == [-2 / 8, -7 / 8]
    env.step(np.array([[0, 0]]))
    assert cells(env.agent_cells[0]) == [(15, 15), (9, 14)]
    walled = one_env([(0, 0), (8, 15)], [(15, 14)], grid=16, speed=0.0, walls=True)
    assert walled.observe().prior[0, :, 0].tolist() == [-15 / 8, -7 / 8]


def test_everyone_starts_on_a_cell_of_their_own_anywhere():
    env = started(400, agents=4, tasks=2, grid=(2, 3))
    both = np.concatenate([env.agent_cells, env.task_cells], axis=1) @ [3, 1]
    assert (np.sort(both, axis=1) == np.arange(6)).all()
    assert np.bincount(both[:, 0]) / 400 == pytest.approx([1 / 6] * 6, abs=0.07)


def test_the_default_grid_keeps_the_density():
    shapes = [PursuitSettings(agents=2 * m, tasks=m).shape for m in (2, 4, 8, 10, 20)]
    assert shapes == [(16, 16), (23, 23), (32, 32), (36, 36), (51, 51)]


def test_features_say_what_their_names_say():
    env = one_env([(5, 5), (5, 9), (1, 5)], [(5, 6), (9, 1)], grid=16, speed=0.0)
    env.step(np.array([[0, -1, 0]]))
    env._moves[0, 0] = (0, -1)
    seen = env.observe()
    assert seen.task_features[0, 0].tolist() == pytest.approx([0, 1 / 8, 3 / 8, 1 / 2, 2 / 2, 1, 1])
    assert seen.agent_features[0] == pytest.approx(np.array([[1, 3], [3, 3], [3, 3]]) / 8)
    row = seen.pair_features[0, 1, 0]
    assert row[[PAIR["dx"], PAIR["dy"], PAIR["|dx|"], PAIR["distance"]]] == pytest.approx(np.array([-3, 0, 3, 3]) / 8)
    assert row[PAIR["was my evader"]] == 0
    # It ran towards pursuer 0 and away from pursuer 1.
    assert row[PAIR["change of the distance by the evader's last move, in cells"]] == 1
    # Pursuer 1 is straight across, pursuer 2 as near but at a right angle: the most opposite counts.
    assert seen.pair_features[0, 0, 0, 5:].tolist() == pytest.approx([1, -1, 3 / 8, -1])
    assert seen.pair_features[0, 2, 0, 7:].tolist() == pytest.approx([1 / 8, 0])
    assert row[PAIR["distance of the nearest other pursuer from the evader"]] == pytest.approx(1 / 8)
    assert seen.previous[0].tolist() == [0, -1, 0]
    assert (seen.capacities == 2).all()
    env.unsolved[0, 0] = False
    seen = env.observe()
    assert seen.task_features[0, 0].tolist() == [1, 0, 0, 0, 0, 0, 0]
    assert not seen.pair_features[0, :, 0].any()
    assert not seen.task_alive[0, 0]


def test_relations_do_not_depend_on_where_on_the_grid_they_are():
    env, moved = started(50, agents=4, tasks=3), started(50, agents=4, tasks=3)
    shift, size = np.array([5, 11]), moved.settings.shape[0]
    moved.agent_cells[:] = (env.agent_cells + shift) % size
    moved.task_cells[:] = (env.task_cells + shift) % size
    half = size / 16
    for one, other in zip(
        (env.observe().task_features, env.observe().prior, env.observe().agent_features),
        (moved.observe().task_features, moved.observe().prior, moved.observe().agent_features),
        strict=True,
    ):
        assert np.array_equal(one, other)
    a, b = env.observe().pair_features, moved.observe().pair_features
    # Half way round, left and right are the same.
    unique = np.abs(a[..., :2]) != half
    assert np.array_equal(a[..., :2][unique], b[..., :2][unique])
    assert np.array_equal(a[..., 2:8], b[..., 2:8])


def test_walls_are_seen_up_to_eight_cells_away():
    env = one_env([(5, 5), (5, 9)], [(2, 20), (15, 15)], grid=31, walls=True)
    near_side, near_end = TASK["cells to the nearer side wall, at most 8"], len(TASK) - 1
    assert env.observe().task_features[0, :, [near_side, near_end]].tolist() == [[1, 1], [2 / 8, 1]]


def test_threads_do_not_change_an_episode():
    one, many = started(300, agents=8, tasks=4, threads="one"), started(300, agents=8, tasks=4, threads="all")
    many.threads = 3
    rng = np.random.default_rng(0)
    for _ in range(20):
        assignment = rng.integers(-1, 4, (300, 8))
        for a, b in zip(one.step(assignment), many.step(assignment), strict=True):
            assert np.array_equal(a, b)
    assert all(np.array_equal(a, b) for a, b in zip(one.arrays().values(), many.arrays().values(), strict=True))


def test_pictures_show_the_step_and_move():
    env = started(1, agents=4, tasks=2, seed=3)
    renderer = env.renderer()
    before = renderer.scene(0)
    env.step(np.array([[0, 0, 1, 1]]))
    pictures = [draw_scene(scene, renderer.targets(0)) for scene in scenes_between(before, renderer.scene(0))]
    pictures.append(renderer.draw(0))
    assert all(picture.shape == (556, 512, 3) for picture in pictures)
    assert len({picture.tobytes() for picture in pictures}) > 3


def test_the_description_counts_who_is_where():
    env = one_env([(0, 0), (0, 0), (1, 2)], [(2, 1), (2, 2)], grid=3)
    env.unsolved[0, 1] = False
    assert env.renderer().describe(0) == "step 0, 1 free\n2 . .\n. . P\n. e x"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("pursuit:four", "pursuit takes pursuers x evaders, such as pursuit:4x2"),
        ("pursuit:0x2", "agents must be at least 1, got 0"),
        ("pursuit:4x2,needed=5", "needed=5 pursuers to catch an evader, but there are 4 pursuers"),
        ("pursuit:4x2,gird=9", "no pursuit setting 'gird'; did you mean 'grid'?"),
        ("pursuit:4x2,speed=2", "speed must be between 0 and 1"),
        ("pursuit:4x2,speed=fast", "speed must be a number, got 'fast'"),
        ("pursuit:4x2,sight=0", "sight must be between 1 and 16"),
        ("pursuit:4x2,walls=perhaps", "walls must be true or false, got 'perhaps'"),
        ("pursuit:4x2,grid=2", "6 distinct start cells do not fit on the 4 cells of a 2x2 grid"),
        ("pursuit:4x2,grid=0", "at least 1 row and 1 column, got 0x0"),
    ],
)
def test_wrong_settings_get_one_clear_sentence(name, message):
    with pytest.raises(InputError, match=message.replace("?", "[?]")):
        muster.make(name)


def test_an_environment_is_made_again_from_its_name():
    settings = PursuitSettings(agents=6, tasks=3, grid=(9, 12), walls=True, needed=3, speed=0.5)
    assert settings.name == "pursuit:6x3,grid=9x12,walls=true,needed=3,speed=0.5"
    assert muster.make(settings.name).settings == settings


def test_an_assignment_that_does_not_fit_is_refused():
    env = started(2)
    with pytest.raises(InputError, match=r"shape \(2, 4\), got \(2, 3\)"):
        env.step(np.zeros((2, 3), int))
    with pytest.raises(InputError, match="tasks are -1 to 1, got -2 for agent 3 of slot 1"):
        env.step(np.array([[0, 0, 0, 0], [0, 0, 0, -2]]))
    with pytest.raises(InputError, match="has no feature planes"):
        env.show(planes=True)
