"""Few pairs among many: the same answers as with arrays, prices that prove them, and no array of all pairs."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import muster
from muster import InputError
from muster.assign import Solver, solve
from muster.assign import sparse as tables
from muster.assign.sparse import SparseProblem, solve_sparse
from muster.data import Problem
from tests.assign.cases import Highs, enumerate_best


def make(n: int, m: int, k: int, seed: int, kind: str) -> tuple[SparseProblem, Problem]:
    """k random pairs for each agent, as pairs and as arrays."""
    rng = np.random.default_rng(seed)
    rows = np.repeat(np.arange(n), k)
    columns = np.concatenate([rng.choice(m, k, replace=False) for _ in range(n)])
    score = rng.normal(0.5, 1.0, n * k)
    if kind == "ties":
        score = rng.integers(-1, 3, n * k).astype(float)
    capacity, use = np.ones(m), np.ones(n * k)
    if kind == "slots":
        capacity, use = 2.0 * rng.integers(0, 4, m) + 0.5, np.full(n * k, 2.0)
    if kind == "unlimited":
        capacity = np.where(rng.random(m) < 0.3, np.inf, 1.0)
    if kind == "general":
        capacity, use = rng.uniform(0.5, 3.0, m), rng.uniform(0.2, 2.0, n * k)
    if kind == "zeros":
        capacity, use = rng.uniform(0.5, 3.0, m), rng.uniform(0.2, 2.0, n * k) * rng.integers(0, 2, n * k)
    h, mu = np.full((1, n, m), -np.inf), np.ones((1, n, m))
    h[0, rows, columns], mu[0, rows, columns] = score, use
    order = rng.permutation(n * k)
    pairs = SparseProblem.of(n, rows[order], columns[order], score[order], use[order], capacity)
    return pairs, Problem(h, contributions=mu, capacities=capacity[None])


def assert_feasible(found, dense: Problem) -> None:
    placed = np.flatnonzero(found.assignment >= 0)
    assert np.isfinite(dense.scores[0, placed, found.assignment[placed]]).all()
    loads = np.bincount(
        found.assignment[placed],
        dense.contributions[0, placed, found.assignment[placed]],
        minlength=dense.scores.shape[2],
    )
    np.testing.assert_allclose(found.loads, loads)
    assert (loads <= dense.capacities[0] * (1 + 1e-9)).all()
    assert found.objective == pytest.approx(dense.scores[0, placed, found.assignment[placed]].sum())


@pytest.mark.parametrize("assign_all", [False, True])
@pytest.mark.parametrize("kind", ["unit", "ties", "slots", "unlimited"])
@pytest.mark.parametrize("seed", range(8))
def test_whole_agents_are_solved_exactly(kind, seed, assign_all):
    pairs, dense = make(25, 18, 4, seed, kind)
    found = solve_sparse(pairs, Solver("lp", assign_all=assign_all))
    # Slots are integers, which the relaxation over arrays does not know.
    slots = np.floor(dense.capacities / dense.contributions.max()) * dense.contributions.max()
    same = solve(replace(dense, capacities=slots), "lp", assign_all=assign_all)
    assert same.status[0] == "optimal"
    assert_feasible(found, dense)
    assert (found.assignment >= 0).sum() == (same.assignment >= 0).sum() or not assign_all
    assert found.objective == pytest.approx(same.objective[0])
    assert (found.status, found.bound) == ("optimal", found.objective)
    if not assign_all:
        # By hand: what the prices prove is what was reached.
        unit = dense.contributions.max()
        charged = found.prices > 0
        proven = (slots[0, charged] * found.prices[charged]).sum()
        proven += np.maximum(0.0, (dense.scores[0] - unit * found.prices).max(1)).sum()
        assert (found.prices >= 0).all()
        assert proven == pytest.approx(found.objective)


@pytest.mark.parametrize("kind", ["general", "zeros"])
@pytest.mark.parametrize("seed", range(6))
def test_contributions_of_any_kind_have_a_bound(kind, seed):
    pairs, dense = make(60, 30, 5, seed, kind)
    found = solve_sparse(pairs, Solver("lp"))
    assert_feasible(found, dense)
    fits = dense.contributions <= dense.capacities[:, None] * (1 + 1e-11)
    relaxed = Highs().value(
        np.where(fits & np.isfinite(dense.scores), dense.scores, -1.0)[0], dense.contributions[0], dense.capacities[0]
    )
    assert found.bound >= relaxed - 1e-6
    assert found.bound <= 1.02 * relaxed
    assert found.objective >= 0.85 * relaxed
    assert found.status == "local_optimum"


@pytest.mark.parametrize("assign_all", [False, True])
@pytest.mark.parametrize("seed", range(10))
def test_small_ones_come_near_enumeration(seed, assign_all):
    pairs, dense = make(5, 4, 2, seed, "general")
    found = solve_sparse(pairs, Solver("lp", assign_all=assign_all))
    assert_feasible(found, dense)
    if not assign_all:
        best = enumerate_best(replace(dense, scores=np.maximum(dense.scores, -1e6)), 0)
        assert 0.8 * best <= found.objective <= best + 1e-9
        assert found.bound >= best - 1e-9


def test_amax_looks_at_no_capacity():
    pairs, dense = make(25, 18, 4, 1, "slots")
    found = solve_sparse(pairs, Solver("amax"))
    assert found.objective == pytest.approx(solve(dense, "amax").objective[0])
    assert (found.prices == 0).all()


@pytest.mark.parametrize("kind", ["unit", "slots", "general"])
def test_a_plan_before_is_never_worth_more(kind):
    for seed in range(10):
        pairs, dense = make(25, 18, 4, seed, kind)
        rng = np.random.default_rng(seed)
        before = solve_sparse(replace(pairs, score=pairs.score + 0.5 * rng.normal(size=pairs.score.size)), Solver("lp"))
        worth = dense.scores[0, np.arange(25), before.assignment][before.assignment >= 0].sum()
        changes = []
        for cost in (0.0, 0.2, 1.0, 9.0):
            problem = replace(pairs, previous=before.assignment, switch_cost=np.full(25, cost))
            found = solve_sparse(problem, Solver("lp"))
            assert found.objective >= worth - 1e-9
            changes.append(found.changes)
        assert changes[0] >= changes[-1] == 0


def test_of_plans_worth_the_same_the_one_before_is_kept():
    rows, columns = np.divmod(np.arange(25), 5)
    equal = SparseProblem.of(5, rows, columns, np.ones(25), np.ones(25), np.ones(5))
    before = np.array([3, 1, 4, 0, 2])
    found = solve_sparse(replace(equal, previous=before, switch_cost=np.zeros(5)), Solver("lp"))
    assert (found.assignment.tolist(), found.changes) == (before.tolist(), 0)


def test_reasons_are_given():
    pairs, _ = make(25, 4, 3, 0, "unit")
    found = solve_sparse(pairs, Solver("lp"))
    assert set(found.reasons) <= {"", "no capacity left", "negative scores", "better left out"}
    assert ((found.assignment < 0) == (found.reasons != "")).all()
    assert "no capacity left" in found.reasons


@pytest.fixture
def large_from(monkeypatch):
    monkeypatch.setattr("muster.assign.call.DENSE", 10)


def test_tables_of_pairs_take_this_way(large_from):
    frame = pd.DataFrame({"agent": list("aabbc"), "task": list("xyxzx"), "score": [3.0, 2.0, 2.5, 0.5, 1.0]})
    more = {"capacities": {"x": 1, "y": 1, "z": 1, "w": 2}}
    found = muster.assign(frame, **more)
    assert isinstance(found.problem, SparseProblem)
    assert found.plan == {"a": "y", "b": "x", "c": None}
    assert found.table()[1] == {"agent": "b", "task": "x", "score": 2.5, "contribution": 1.0, "reason": ""}
    assert found.capacities.tolist() == [1, 1, 1, 2]
    kept = muster.assign(
        frame, **more, previous={"a": "x", "b": "z"}, switch_cost=2.0, contributions=dict.fromkeys("abc", 1)
    )
    assert (kept.plan, kept.changes) == ({"a": "x", "b": "z", "c": None}, 0)
    matrix = sparse.csr_array(np.array([[3.0, 2.0, 0.0], [2.5, 0.0, 0.5], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]))
    assert muster.assign(matrix, method="lp").assignment.tolist() == [1, 0, -1, 2]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"task_scores": {("x", "y"): 1.0}}, "task_scores cannot be given with a table of pairs among 4 agents"),
        ({"method": "routes"}, "method 'routes' needs all scores in an array"),
        ({"contributions": [1.0]}, "contributions of a table with so many agents must be one number each, (4,)"),
        ({"contributions": [1.0] * 4}, "contributions were given without capacities"),
        ({"capacities": [1.0]}, "capacities must have shape (3,) to fit the scores, got (1,)"),
        ({"capacities": [1.0, 1.0, -1.0]}, "capacities must not be negative, got -1.0 at [2]"),
        ({"rounding": "original"}, "rounding 'original' is for dense problems"),
        ({"previous": {"a": "x"}, "switch_cost": -1.0}, "switch_cost must be finite and not negative, got -1.0"),
    ],
)
def test_a_table_of_pairs_refuses_arguments_that_need_every_pair(large_from, arguments, complaint):
    scores = {("a", "x"): 1.0, ("b", "y"): 1.0, ("c", "z"): 1.0, ("d", "x"): 2.0}
    with pytest.raises(InputError) as refused:
        muster.assign(scores, **{"method": "lp", **arguments})
    assert complaint in str(refused.value)
    with pytest.raises(InputError, match="can be solved, not explained or revised"):
        muster.assign(scores, method="lp").explain()
    with pytest.raises(InputError, match="check is for up to"):
        muster.check_plan({"scores": scores}, {"a": "x"}, method="lp")


def test_bad_scores_of_pairs_are_refused(large_from):
    with pytest.raises(InputError, match="scores must be within"):
        muster.assign({("a", "x"): 1e200, ("b", "y"): 1.0, ("c", "z"): 1.0, ("d", "x"): 2.0}, method="lp")


def test_a_time_limit_leaves_something_feasible():
    pairs, dense = make(2000, 1500, 12, 0, "unit")
    found = solve_sparse(pairs, Solver("lp", time_limit=1e-4))
    assert found.status in ("time_limit", "optimal")
    assert_feasible(found, dense)
    assert found.bound >= found.objective


LARGE = """
import time
import numpy as np
from scipy import sparse
import muster
rng = np.random.default_rng(0)
columns = np.concatenate([rng.choice(5000, 20, replace=False) for _ in range(5000)])
scores = sparse.csr_array((rng.random(100_000), columns, np.arange(0, 100_001, 20)), shape=(5000, 5000))
muster.assign(scores[:1001, :1001], method="lp")
began = time.process_time()
found = muster.assign(scores, method="lp")
took = time.process_time() - began
# Not getrusage: that remembers what the parent had.
peak = [line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")]
print(found.status, took, int(peak[0]) / 1024)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of memory from /proc")
def test_five_thousand_by_five_thousand():
    """100,000 pairs: proven, in well under a second and 300 MB with everything that Python loads."""
    # Compiled here, if need be: that would be most of the memory there.
    solve_sparse(make(5, 4, 2, 0, "unit")[0], Solver("lp"))
    done = subprocess.run([sys.executable, "-c", LARGE], capture_output=True, text=True, check=True)
    status, seconds, megabytes = done.stdout.split()
    assert status == "optimal"
    assert float(seconds) < 1.0
    assert float(megabytes) < 300.0


def test_the_limit_is_where_arrays_become_large():
    assert tables.DENSE == 1_000_000
