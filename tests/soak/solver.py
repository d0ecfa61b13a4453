"""Random instances for every procedure: extreme scales, ties, closed tasks; each answer is checked by other code."""

from __future__ import annotations

import itertools
import time
import warnings
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import muster
from muster.errors import MusterError

SECONDS = 5.0
TOLERANCE = 1e-7
MOST_PLANS = 3000
"""Plans up to which all are tried, to catch an answer that is called optimal and is not."""


@dataclass
class Report:
    """What came of the instances."""

    counts: Counter[str] = field(default_factory=Counter)
    bad: list[str] = field(default_factory=list)
    slowest: float = 0.0


def campaign(count: int, seed: int = 0) -> Report:
    """Solve `count` instances; each is told by `seed` and its number."""
    report = Report()
    for number in range(count):
        try_one(report, seed, number)
    return report


def make(seed: int, number: int) -> dict[str, Any]:
    """One call of `muster.assign`."""
    rng = np.random.default_rng([seed, number])
    n, m = int(rng.integers(1, 8)), int(rng.integers(1, 8))
    scale = 10.0 ** rng.integers(-9, 10)
    scores = rng.normal(size=(n, m)) * scale
    if rng.random() < 0.3:
        scores = rng.integers(-2, 3, (n, m)) * scale
    if rng.random() < 0.2:
        scores *= 10.0 ** rng.integers(-4, 5, (n, m))
    if rng.random() < 0.2:
        scores[rng.random((n, m)) < 0.3] = -np.inf
    method = str(rng.choice(["amax", "lp", "quad"]))
    call: dict[str, Any] = {
        "scores": scores,
        "method": method,
        "effort": str(rng.choice(["paper", "fast", "best", "exact"])),
        "assign_all": bool(rng.random() < 0.3),
    }
    if method == "quad":
        pull = rng.normal(size=(m, m)) * scale * 10.0 ** rng.integers(-2, 2)
        call["task_scores"] = np.rint(pull) if rng.random() < 0.2 else pull
    if rng.random() < 0.6:
        size = 10.0 ** rng.integers(-6, 7)
        call["contributions"] = size * rng.choice([0.0, 1.0, 1.0, 2.0, 1 / 3], (n, m))
        capacity = size * rng.choice([0.0, 1.0, 2.0, 2.5, 1e-9], m)
        call["capacities"] = np.where(rng.random(m) < 0.2, np.inf, capacity)
    if rng.random() < 0.2:
        call["allowed"] = rng.random((n, m)) < 0.7
    if rng.random() < 0.2:
        call["previous"] = rng.integers(-1, m, n)
        call["switch_cost"] = float(scale * rng.random())
    if method == "quad" and "contributions" in call and rng.random() < 0.5:
        call["task_scores_on"] = "load"
    if method == "lp" and rng.random() < 0.3 and not {"allowed", "previous"} & set(call):
        call["sparse"] = True
    return call


def try_one(report: Report, seed: int, number: int) -> None:
    """Solve one and look at the answer."""
    call = make(seed, number)
    asked = dict(call)
    if asked.pop("sparse", False):
        from scipy import sparse

        pairs = np.isfinite(call["scores"])
        asked["scores"] = sparse.coo_array((call["scores"][pairs], np.nonzero(pairs)), call["scores"].shape)
    began = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.filterwarnings("ignore", "no agent is assigned")
            found = muster.assign(**asked)
        complaint = complain(call, found)
        report.counts[f"{call['method']} {found.status}"] += 1
    except MusterError as refusal:
        report.counts["refused"] += 1
        complaint = "" if "sparse" in call else f"refused: {refusal}"
    except Exception as error:
        complaint = f"{type(error).__name__}: {error}"
    took = time.process_time() - began
    report.slowest = max(report.slowest, took)
    if took > SECONDS:
        complaint = complaint or f"took {took:.1f} s"
    if complaint:
        report.bad.append(f"instance {number} of seed {seed} ({call['method']} {call['effort']}): {complaint}")


def complain(call: dict[str, Any], found: Any) -> str:
    """What is wrong with an answer; nothing if all is well."""
    plan = np.asarray(found.assignment)
    worth, loads = value(call, plan)
    if np.isnan(worth):
        return "a pair that is forbidden"
    size = scale_of(call)
    capacity = call.get("capacities", np.ones(call["scores"].shape[1]))
    if call["method"] != "amax" and (loads > capacity * (1 + 1e-6)).any():
        return f"capacities exceeded: {loads} of {capacity}"
    if abs(found.objective - worth) > TOLERANCE * size:
        return f"worth {worth}, not {found.objective}"
    bound = float(found.bound)
    whole = not (call["assign_all"] and (plan < 0).any())
    if np.isfinite(bound) and whole and worth > bound + TOLERANCE * size:
        return f"worth {worth}, above its bound {bound}"
    n, m = call["scores"].shape
    if found.status == "optimal" and whole and call["method"] != "amax" and (m + 1) ** n <= MOST_PLANS:
        best = best_value(call)
        if best > worth + TOLERANCE * size:
            return f"called optimal with {worth}, though {best} can be had"
    return ""


def scale_of(call: dict[str, Any]) -> float:
    """The largest number that a value is made of."""
    heaviest = np.max(call["contributions"]) if "task_scores_on" in call else 1.0
    pulls = np.abs(np.ravel(call.get("task_scores", 0.0))) * heaviest**2
    parts = [np.abs(call["scores"][np.isfinite(call["scores"])]), pulls]
    n = len(call["scores"])
    return float(max(part.max(initial=0.0) for part in parts)) * n * n + 1e-300


def value(call: dict[str, Any], plan: Any) -> tuple[float, Any]:
    """What a plan is worth (NaN if it has a forbidden pair), and the loads of the tasks."""
    scores = call["scores"]
    n, m = scores.shape
    use = call.get("contributions", np.ones((n, m)))
    loads, counts, total = np.zeros(m), np.zeros(m), 0.0
    before = call.get("previous")
    for i, j in enumerate(plan):
        if j < 0:
            continue
        allowed = call.get("allowed")
        if scores[i, j] == -np.inf or (allowed is not None and not allowed[i, j]):
            return float("nan"), loads
        total += scores[i, j]
        if before is not None and before[i] >= 0 and before[i] != j:
            total -= call["switch_cost"]
        loads[j] += use[i, j]
        counts[j] += 1
    if call["method"] == "quad":
        counted = loads if "task_scores_on" in call else counts
        total += counted @ call["task_scores"] @ counted
    return float(total), loads


def best_value(call: dict[str, Any]) -> float:
    """The best of all feasible plans; with assign_all, of those that leave no agent out."""
    n, m = call["scores"].shape
    capacity = call.get("capacities", np.ones(m))
    best = -np.inf
    for plan in itertools.product(range(0 if call["assign_all"] else -1, m), repeat=n):
        worth, loads = value(call, plan)
        if worth > best and (loads <= capacity).all():
            best = worth
    return best
