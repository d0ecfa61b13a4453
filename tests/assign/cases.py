"""Instances of every regime, and independent answers to compare with."""

from __future__ import annotations

from functools import cache

import numpy as np

from muster.data import Floats, Problem

SCORES = ("normal", "ties", "equal", "negative", "tiny", "huge", "mixed")
REGIMES = ("unit", "hits", "real", "agent-task", "pair", "few-values", "zeros", "closed", "lone-agent", "lone-task")
PULLS = ("random", "focus", "spread", "indefinite")


def make_scores(kind: str, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
    """h of the given kind."""
    normal = rng.normal(size=shape)
    return {
        "normal": normal,
        "ties": rng.integers(-2, 4, shape).astype(float),
        "equal": np.full(shape, 1.5),
        "negative": -np.abs(normal),
        "tiny": normal * 1e-6,
        "huge": normal * 1e6,
        "mixed": normal * 10.0 ** rng.integers(-3, 4, shape),
    }[kind]


def make_constraints(regime: str, batch: int, n: int, m: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Contributions and capacities of the given regime."""
    ones = np.ones((batch, n, m))
    real = rng.uniform(0.1, 4.0, (batch, m))
    if regime in ("unit", "lone-agent", "lone-task"):
        return ones, np.ones((batch, m))
    if regime == "hits":
        return 20.0 * ones, 20.0 * rng.integers(1, 7, (batch, m))
    if regime == "real":
        return ones * rng.uniform(0.1, 3.0, (batch, n, 1)), real
    if regime == "agent-task":
        return ones * rng.uniform(0.1, 3.0, (batch, n, 1)) * rng.uniform(0.5, 2.0, (batch, 1, m)), real
    if regime == "pair":
        return rng.uniform(0.1, 3.0, (batch, n, m)), real
    if regime == "few-values":
        return rng.choice([5.0, 7.0, 10.0], (batch, n, m)), 5.0 * rng.integers(1, 16, (batch, m))
    if regime == "zeros":
        return rng.uniform(0.1, 3.0, (batch, n, m)) * rng.integers(0, 2, (batch, n, m)), real
    if regime == "closed":
        return rng.uniform(0.1, 3.0, (batch, n, m)), real * rng.integers(0, 2, (batch, m))
    raise KeyError(regime)


def make_pulls(kind: str, batch: int, m: int, rng: np.random.Generator) -> Floats:
    """g of the given kind."""
    if kind == "random":
        return 0.1 * rng.normal(size=(batch, m, m))
    if kind == "focus":
        return np.einsum("bi,ij->bij", rng.uniform(0.1, 0.5, (batch, m)), np.eye(m))
    if kind == "spread":
        place = rng.uniform(0, 16, (batch, m, 2))
        return -0.5 * np.exp(-np.abs(place[:, :, None] - place[:, None]).max(-1) / 3)
    factors = rng.normal(size=(batch, m, 4))
    return 0.1 * np.einsum("bik,k,bjk->bij", factors, np.array([1.0, 1.0, -1.0, -1.0]), factors)


def make_problem(regime: str, scores: str, batch: int, n: int, m: int, seed: int, pulls: str | None = None) -> Problem:
    """A batch of instances of one size."""
    rng = np.random.default_rng(seed)
    n, m = (1 if regime == "lone-agent" else n), (1 if regime == "lone-task" else m)
    contributions, capacities = make_constraints(regime, batch, n, m, rng)
    h = make_scores(scores, (batch, n, m), rng)
    unit = {"tiny": 1e-6, "huge": 1e6}.get(scores, 1.0)
    g = None if pulls is None else unit * make_pulls(pulls, batch, m, rng)
    return Problem(h, g, contributions, capacities)


class Highs:
    """The relaxation's optimum by HiGHS, on scores scaled to 1 and with its tightest tolerances."""

    def __init__(self) -> None:
        import highspy

        self._lp_type = highspy.HighsLp
        self._matrix_format = highspy.MatrixFormat.kColwise
        self._sense = highspy.ObjSense.kMaximize
        self._solver = highspy.Highs()
        for option, value in (
            ("output_flag", False),
            ("primal_feasibility_tolerance", 1e-10),
            ("dual_feasibility_tolerance", 1e-10),
            ("presolve", "off"),
        ):
            self._solver.setOptionValue(option, value)

    def value(self, h: Floats, mu: Floats, u: Floats) -> float:
        """max h·b with b >= 0, sum_j b_ij <= 1, sum_i mu_ij b_ij <= u_j"""
        n, m = h.shape
        scale = float(np.abs(h).max()) or 1.0
        lp = self._lp_type()
        lp.num_col_, lp.num_row_ = n * m, n + m
        lp.col_cost_ = (h / scale).ravel()
        lp.col_lower_, lp.col_upper_ = np.zeros(n * m), np.ones(n * m)
        lp.row_lower_, lp.row_upper_ = np.full(n + m, -np.inf), np.concatenate([np.ones(n), u])
        lp.a_matrix_.format_ = self._matrix_format
        lp.a_matrix_.start_ = 2 * np.arange(n * m + 1)
        agents, tasks = np.divmod(np.arange(n * m), m)
        lp.a_matrix_.index_ = np.stack([agents, n + tasks], axis=1).ravel()
        lp.a_matrix_.value_ = np.stack([np.ones(n * m), mu.ravel()], axis=1).ravel()
        lp.sense_ = self._sense
        self._solver.passModel(lp)
        self._solver.run()
        return float(self._solver.getObjectiveValue()) * scale


@cache
def all_plans(n: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Every assignment of n agents to m tasks or to none (m) [K, n], and who is where [K, n, m]."""
    plans = np.indices((m + 1,) * n).reshape(n, -1).T
    return plans, plans[:, :, None] == np.arange(m)


@cache
def all_crowds(n: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Every way to spread n agents at most over m tasks [C, m], and which of them each assignment is [K]."""
    _, chosen = all_plans(n, m)
    crowds = chosen.sum(1)
    _, first, which = np.unique(crowds @ (n + 1) ** np.arange(m), return_index=True, return_inverse=True)
    return crowds[first].astype(float), which


def enumerate_best(problem: Problem, b: int, capacities: bool = True) -> float:
    """The best value of any assignment of instance b, by trying them all."""
    h, mu, u = problem.scores[b], problem.contributions[b], problem.capacities[b]
    n, m = h.shape
    plans, chosen = all_plans(n, m)
    values = sum((np.append(h[i], 0.0)[plans[:, i]] for i in range(n)), np.zeros(len(plans)))
    if problem.task_scores is not None:
        crowds, which = all_crowds(n, m)
        values += ((crowds @ problem.task_scores[b]) * crowds).sum(1)[which]
    if not capacities:
        return float(values.max())
    # The best first: the first that fits is the best of those that do.
    order = np.argsort(-values)
    for begin in range(0, len(order), 1000):
        some = order[begin : begin + 1000]
        fits = (np.einsum("kij,ij->kj", chosen[some], mu) <= u * (1 + 1e-9)).all(1)
        if fits.any():
            return float(values[some[fits.argmax()]])
    raise AssertionError("an empty plan always fits")
