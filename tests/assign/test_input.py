"""Bad input gets a typed error that names the entry; odd but meaningful input gets an answer."""

import inspect
import subprocess
import sys

import numpy as np
import pytest

import muster
from muster import InputError
from muster.assign import Solver, solve
from muster.data import Problem

GOOD = [[3.0, 2.0], [2.5, 0.5]]


@pytest.mark.parametrize("method", ["amax", "lp", "quad"])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scores": [[1.0, float("nan")]]}, r"scores must be numbers, got nan at \[0, 1\]"),
        ({"scores": [[1.0], [float("inf")]]}, r"scores may be -inf but not this, got inf at \[1, 0\]"),
        ({"scores": [[1e308, 1.0]]}, r"scores must be within ±1e\+100, got 1e\+308 at \[0, 0\]"),
        ({"scores": [[-1e308, 1.0]]}, r"scores must be within ±1e\+100, got -1e\+308 at \[0, 0\]"),
        ({"scores": [[1.0, 2.0], [3.0]]}, "row 0 has 2 entries but row 1 has 1"),
        ({"scores": [[1.0, "x"]]}, r"got 'x' at \[0, 1\]"),
        ({"scores": [1.0, 2.0]}, r"scores must have 2 dimensions, got 1"),
        ({"scores": 3.0}, "scores must have 2 dimensions, got 0"),
        ({"scores": [[1j]]}, "scores must be a rectangular array of real numbers"),
        ({"scores": None}, "scores must be a rectangular array of real numbers, got NoneType"),
        ({"capacities": [1.0, -2.0]}, r"capacities must not be negative, got -2.0 at \[1\]"),
        ({"capacities": [1.0]}, r"capacities must have shape \(2,\) to fit the scores, got \(1,\)"),
        ({"capacities": [1.0, float("nan")]}, r"capacities must be numbers, got nan at \[1\]"),
        ({"contributions": [[1.0, -1.0], [1.0, 1.0]], "capacities": [1.0, 1.0]}, r"got -1.0 at \[0, 1\]"),
        ({"contributions": [1.0, 2.0, 3.0], "capacities": [1.0, 1.0]}, r"contributions must have shape \(2, 2\) or"),
        ({"contributions": [[1.0, 1.0], [1.0, 1e-200]], "capacities": [1.0, 1.0]}, "must be 0 or at least 1e-100"),
        ({"contributions": [[1.0, 1.0], [1.0, float("inf")]], "capacities": [1.0, 1.0]}, "must be finite, got inf"),
        ({"contributions": [1.0, 2.0]}, "contributions were given without capacities"),
        ({"task_scores": [[1.0]]}, r"task_scores must have shape \(2, 2\) to fit the scores, got \(1, 1\)"),
    ],
)
def test_errors_name_the_entry(arguments, message, method):
    with pytest.raises(InputError, match=message):
        muster.assign(**{"scores": GOOD, "method": method, **arguments})


def test_bad_task_scores_are_named_where_they_count():
    with pytest.raises(InputError, match=r"task_scores must be numbers, got nan at \[1, 0\]"):
        muster.assign(GOOD, task_scores=[[0.0, 0.0], [float("nan"), 0.0]])


def test_an_error_in_a_batch_names_its_instance():
    scores = np.zeros((5, 2, 3))
    scores[3, 1, 2] = np.nan
    with pytest.raises(InputError, match=r"\[1, 2 of instance 3\]"):
        solve(Problem(scores), "lp")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "qaud"}, "no method 'qaud'; did you mean 'quad'"),
        ({"effort": "quick"}, "no effort 'quick'"),
        ({"rounding": "strikt"}, "did you mean 'strict'"),
        ({"time_limit": 0.0}, "time_limit must be a positive number"),
        ({"steps": -1}, "steps must not be negative"),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(InputError, match=message):
        Solver(**settings)


@pytest.mark.parametrize("method", ["amax", "lp", "quad"])
@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0)])
def test_no_agents_or_no_tasks_is_an_answer(shape, method):
    solution = muster.assign(np.zeros(shape), method=method)
    assert solution.assignment.tolist() == [-1] * shape[0]
    assert solution.objective == 0.0
    assert solution.loads.shape == (shape[1],)


def test_tables_of_no_agents_or_no_tasks_are_there():
    for shape in ((0, 3), (2, 0)):
        found = muster.assign(np.zeros(shape), method="lp")
        assert [row["task"] for row in found.table()] == [None] * shape[0]


@pytest.mark.parametrize("method", ["amax", "lp", "quad"])
@pytest.mark.parametrize("assign_all", [False, True])
def test_who_may_do_nothing_is_not_said_to_have_negative_scores(method, assign_all):
    scores, allowed = [[-np.inf, -np.inf], [1.0, -np.inf], [-1.0, 3.0]], [[True, True], [True, True], [True, False]]
    found = muster.assign(scores, allowed=allowed, capacities=[2, 2], method=method, assign_all=assign_all)
    assert found.reasons.tolist() == ["nothing allowed", "", "" if assign_all else "negative scores"]
    assert found.explain().agents[0]["reason"] == "nothing allowed"
    assert muster.assign(np.zeros((1, 0)), method=method).reasons.tolist() == ["nothing allowed"]


def test_a_solver_says_what_it_takes():
    with pytest.raises(InputError, match=r"a solver takes a muster\.Problem, got ndarray"):
        muster.Solver("lp")(np.zeros((1, 2, 2)))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int8, np.int64, np.uint8, np.bool_])
def test_other_number_types_are_taken(dtype):
    scores = np.array([[3, 2], [1, 0]]).astype(dtype)
    assert muster.assign(scores, method="amax").assignment[0] == 0


def test_arrays_need_not_be_contiguous():
    scores = np.random.default_rng(0).normal(size=(8, 10))
    for view in (scores.T, scores[::2, ::3], scores[::-1, ::-1]):
        expected = muster.assign(view.copy(), method="lp")
        assert (muster.assign(view, method="lp").assignment == expected.assignment).all()


def test_read_only_arrays_are_taken():
    arrays = np.ones((3, 2)), np.zeros((2, 2)), np.ones((3, 2)), np.ones(2)
    expected = muster.assign(*(array.copy() for array in arrays))
    for array in arrays:
        array.flags.writeable = False
    alive = np.broadcast_to(np.True_, (1, 3))
    assert (muster.assign(*arrays).assignment == expected.assignment).all()
    found = solve(Problem(*(array[None] for array in arrays), agent_alive=alive))
    assert (found.assignment[0] == expected.assignment).all()


def test_muster_assign_assigns_whatever_was_imported_before():
    code = "import muster.assign.solver, muster; print(muster.assign([[1.0]], method='lp').assignment)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[0]\n"
    assert "scores" in inspect.signature(muster.assign).parameters


def test_input_is_not_changed():
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=(4, 5)), rng.normal(size=(5, 5)), rng.uniform(1, 2, (4, 5)), rng.uniform(1, 3, 5)]
    copies = [array.copy() for array in arrays]
    muster.assign(*arrays)
    for array, copy in zip(arrays, copies, strict=True):
        assert (array == copy).all()


def test_forbidden_pairs_and_unlimited_tasks():
    solution = muster.assign([[-np.inf, 1.0], [2.0, 5.0], [1.0, 4.0]], capacities=[1.0, np.inf], method="lp")
    assert solution.assignment.tolist() == [1, 1, 1]
    assert solution.status == "optimal"
    idle = muster.assign([[-np.inf, -np.inf]], method="quad", assign_all=True)
    assert idle.assignment.tolist() == [-1]


def test_one_instance_in_one_instance_out():
    solution = muster.assign(GOOD, method="lp")
    assert solution.assignment.shape == (2,)
    assert isinstance(solution.objective, float)
    assert isinstance(solution.relaxed_objective, float)
    assert isinstance(solution.status, str)
    assert solution.convergence_gap == 0.0


def test_contributions_by_agent_alone():
    by_agent = muster.assign(GOOD, contributions=[2.0, 1.0], capacities=[2.0, 3.0], method="lp")
    by_pair = muster.assign(GOOD, contributions=[[2.0, 2.0], [1.0, 1.0]], capacities=[2.0, 3.0], method="lp")
    assert (by_agent.assignment == by_pair.assignment).all()


@pytest.mark.parametrize("method", ["lp", "quad", "amax"])
def test_a_single_one_spread_over_all_pairs_is_what_ones_are(method):
    rng = np.random.default_rng(0)
    scores, pulls, capacities = rng.normal(size=(20, 6, 5)), rng.normal(size=(20, 5, 5)), rng.integers(0, 3, (20, 5))
    given = {"scores": scores, "task_scores": pulls, "capacities": capacities.astype(float)}
    plain = solve(Problem(contributions=np.ones((20, 6, 5)), **given), method)
    spread = solve(Problem(contributions=np.broadcast_to(np.ones(()), (20, 6, 5)), **given), method)
    assert (plain.assignment == spread.assignment).all()
    with pytest.raises(InputError, match="contributions must have shape"):
        solve(Problem(contributions=np.broadcast_to(np.ones(()), (20, 5, 6)), **given), method)


@pytest.mark.parametrize("method", ["amax", "lp", "quad"])
def test_a_previous_plan_where_no_tasks_are_left(method):
    found = muster.assign(np.zeros((2, 0)), method=method, previous=[None, None], switch_cost=1.0)
    assert found.assignment.tolist() == [-1, -1]
    assert found.changes == 0
