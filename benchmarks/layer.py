"""The differentiable assignment layer beside PyEPO: a linear predictor trained end to end, regret and CPU time.

PyEPO's own synthetic set (features through a random 0/1 matrix and a polynomial of degree 4, noise 0.5) in two
problems: its knapsack (items are agents, the knapsack is the one task), and the assignment of 10 agents to 10 tasks,
which PyEPO is given as a model that calls scipy. The same data, predictor, optimiser, epochs and samples for all.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment

from muster.assign.solver import Solver
from muster.data import Floats, Problem
from muster.evaluation.text import text_table
from muster.torch import assign_layer

FEATURES, TRAIN, TEST, DEGREE, NOISE = 5, 200, 500, 4, 0.5
BATCH, LEARNING_RATE, SAMPLES, SIGMA = 32, 1e-2, 16, 1.0


@dataclass(frozen=True)
class Task:
    """A problem whose scores are to be predicted."""

    name: str
    n_agents: int
    n_tasks: int
    limits: dict[str, Any]
    peer: Callable[[], Any]
    """PyEPO's model of it."""

    def solve(self, scores: Floats) -> Floats:
        """Indicators [B, N·M] of proven best assignments for scores [B, N·M]."""
        shaped = scores.reshape(-1, self.n_agents, self.n_tasks)
        limits = {name: np.broadcast_to(value, (len(shaped), *value.shape)) for name, value in self.limits.items()}
        assignment = Solver(method="lp", effort="exact")(Problem(shaped, **limits)).assignment
        return (assignment[..., None] == np.arange(self.n_tasks)).reshape(len(scores), -1).astype(np.float64)


def run(seeds: int = 3, epochs: int = 10) -> None:
    """Print mean regret over `seeds` data sets, as a share of the best value, and CPU seconds of training."""
    torch.set_num_threads(1)
    rows = []
    for task in (knapsack(), assignment()):
        for name, loss_of in LOSSES.items():
            found = [_train(task, loss_of, seed, epochs) for seed in range(seeds)]
            if found[0] is None:
                rows.append([task.name, name, "PyEPO or OR-Tools is not installed: pip install pyepo ortools", ""])
                continue
            regret, seconds = zip(*(one for one in found if one), strict=True)
            each = " ".join(f"{100 * value:.2f}" for value in regret)
            rows.append([task.name, name, f"{100 * np.mean(regret):.2f}  ({each})", f"{np.mean(seconds):.2f}"])
    print(text_table(["problem", "loss", "regret %  (by seed)", "CPU s"], rows, []))


def knapsack() -> Task:
    """32 items of weights 3 to 8, a knapsack for 20."""
    weights = np.random.RandomState(7).choice(range(300, 800), size=32) / 100

    def peer() -> Any:
        from pyepo.model.ort import knapsackModel

        return knapsackModel(weights[None], np.array([20.0]), solver="scip")

    limits = {"contributions": weights[:, None], "capacities": np.array([20.0])}
    return Task("knapsack of 32", 32, 1, limits, peer)


def assignment() -> Task:
    """Ten agents, ten tasks."""

    def peer() -> Any:
        from pyepo import EPO
        from pyepo.model.opt import optModel

        class Assignment(optModel):
            modelSense = EPO.MAXIMIZE  # noqa: N815

            def _getModel(self) -> tuple[None, list[int]]:  # noqa: N802
                return None, list(range(100))

            def setObj(self, c: Any) -> None:  # noqa: N802
                self.scores = np.asarray(c, np.float64).reshape(10, 10)

            def solve(self) -> tuple[Floats, float]:
                rows, columns = linear_sum_assignment(self.scores, maximize=True)
                found = np.zeros((10, 10), np.float32)
                found[rows, columns] = 1.0
                return found.ravel(), float(self.scores[rows, columns].sum())

        return Assignment()

    return Task("assignment 10x10", 10, 10, {}, peer)


def draw(size: int, seed: int) -> tuple[Floats, Floats, Floats, Floats]:
    """Features and scores of the training set, and of the test set, as PyEPO's knapsack data are drawn."""
    rng = np.random.RandomState(seed)
    matrix = rng.binomial(1, 0.5, (size, FEATURES))
    features = rng.normal(0, 1, (TRAIN + TEST, FEATURES))
    scores = ((features @ matrix.T / np.sqrt(FEATURES) + 3) ** DEGREE + 1) * 5 / 3.5**DEGREE
    scores = np.ceil(scores * rng.uniform(1 - NOISE, 1 + NOISE, scores.shape))
    return features[:TRAIN], scores[:TRAIN], features[TRAIN:], scores[TRAIN:]


Loss = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
"""Of predicted scores, true scores and true solutions, all [B, N·M]."""


def ours(variant: Any, epsilon: float) -> Callable[[Task, int], Loss]:
    """The Fenchel-Young loss of our layer."""

    def make(task: Task, seed: int) -> Loss:
        layer = assign_layer(
            variant, epsilon=epsilon, **({"samples": SAMPLES, "seed": seed} if variant == "perturbed" else {})
        )

        def loss(predicted: torch.Tensor, true: torch.Tensor, best: torch.Tensor) -> torch.Tensor:
            shape = (len(true), task.n_agents, task.n_tasks)
            limits = {name: np.broadcast_to(value, (len(true), *value.shape)) for name, value in task.limits.items()}
            return layer.loss(predicted.reshape(shape), best.reshape(shape), **limits).mean()

        return loss

    return make


def theirs(which: str) -> Callable[[Task, int], Loss]:
    """A loss of PyEPO."""

    def make(task: Task, seed: int) -> Loss:
        from pyepo import func

        model = task.peer()
        if which == "SPO+":
            surrogate = func.SPOPlus(model, processes=1)
            return lambda predicted, true, best: surrogate(predicted, true, best, (true * best).sum(1, keepdim=True))
        perturbed = func.perturbedFenchelYoung(model, n_samples=SAMPLES, sigma=SIGMA, processes=1, seed=seed)
        return lambda predicted, true, best: perturbed(predicted, best)

    return make


LOSSES: dict[str, Callable[[Task, int], Loss] | None] = {
    "least squares (predict, then optimise)": None,
    "muster, perturbed": ours("perturbed", SIGMA),
    "muster, regularised": ours("regularised", SIGMA),
    "PyEPO, perturbed": theirs("perturbed"),
    "PyEPO, SPO+": theirs("SPO+"),
}


def _train(
    task: Task, loss_of: Callable[[Task, int], Loss] | None, seed: int, epochs: int
) -> tuple[float, float] | None:
    """Regret on the test set and CPU seconds; None where PyEPO is not installed."""
    features, scores, test_features, test_scores = draw(task.n_agents * task.n_tasks, seed)
    if loss_of is None:
        began = time.process_time()
        found = np.linalg.lstsq(_with_bias(features), scores, rcond=None)[0]
        return _regret(task, _with_bias(test_features) @ found, test_scores), time.process_time() - began
    try:
        loss_function = loss_of(task, seed)
    except ImportError:
        return None
    torch.manual_seed(seed)
    given = [torch.tensor(array, dtype=torch.float32) for array in (features, scores, task.solve(scores))]
    predictor = torch.nn.Linear(FEATURES, scores.shape[1])
    optimiser = torch.optim.Adam(predictor.parameters(), LEARNING_RATE)
    began = time.process_time()
    for _ in range(epochs):
        for rows in torch.randperm(TRAIN).split(BATCH):
            x, c, w = (tensor[rows] for tensor in given)
            optimiser.zero_grad()
            loss_function(predictor(x), c, w).backward()  # type: ignore[no-untyped-call]
            optimiser.step()
    seconds = time.process_time() - began
    with torch.no_grad():
        predicted = predictor(torch.tensor(test_features, dtype=torch.float32)).numpy().astype(np.float64)
    return _regret(task, predicted, test_scores), seconds


def _with_bias(features: Floats) -> Floats:
    return np.column_stack([features, np.ones(len(features))])


def _regret(task: Task, predicted: Floats, true: Floats) -> float:
    """What decisions by predicted scores lose, as a share of the best value."""
    best = (true * task.solve(true)).sum()
    return float(1.0 - (true * task.solve(predicted)).sum() / best)
