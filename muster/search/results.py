"""What the draws of a study came to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from optuna import Study
from optuna.trial import FrozenTrial, TrialState

State = Literal["done", "pruned", "failed", "running", "waiting"]
FEWEST = 10
"""Finished draws below which nothing is said about which settings matter."""


@dataclass(frozen=True, slots=True)
class Draw:
    """One draw."""

    number: int
    state: State
    """done; pruned: ended early, the figure is of what there was; failed: its settings do not go together, or a number
    was not finite."""
    value: float | None
    """What it is judged by, as the environment counts it (steps: fewer is better)."""
    settings: dict[str, Any]
    """Dotted name -> what was drawn."""
    minutes: float | None
    steps: int | None
    why: str
    """Of a failed one."""
    folder: str
    """Of its run, inside the study's."""


def folder_of(number: int) -> str:
    """Where a draw's run is kept, inside the study's folder."""
    return f"draws/{number:04d}"


def read_draws(study: Study) -> list[Draw]:
    """All of them, by number."""
    return [_read(trial) for trial in study.get_trials(deepcopy=False)]


def _read(trial: FrozenTrial) -> Draw:
    said = trial.user_attrs
    state: State = "waiting"
    if trial.state.is_finished():
        state = "failed" if "why" in said else "pruned" if trial.state == TrialState.PRUNED else "done"
    elif trial.state == TrialState.RUNNING:
        state = "running"
    return Draw(
        trial.number,
        state,
        said.get("value"),
        dict(trial.params),
        said.get("minutes"),
        said.get("steps"),
        said.get("why", ""),
        folder_of(trial.number),
    )


def ranked(draws: Sequence[Draw], better: int) -> list[Draw]:
    """Finished draws best first, then those ended early, then the rest. `better`: 1 if more is better, -1 if less."""
    order = {"done": 0, "pruned": 1, "failed": 2, "running": 3, "waiting": 4}

    def key(draw: Draw) -> tuple[int, float, int]:
        return order[draw.state], -better * draw.value if draw.value is not None else math.inf, draw.number

    return sorted(draws, key=key)


def best_of(draws: Sequence[Draw], better: int) -> Draw | None:
    """The best finished draw; None before there is one."""
    first = ranked(draws, better)[:1]
    return first[0] if first and first[0].state == "done" else None


def importances(study: Study) -> dict[str, float]:
    """Share of each setting in what tells the better half of the draws from the rest (PED-ANOVA), largest first.

    Empty while fewer than `FEWEST` draws are finished.
    """
    from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances

    finished = [t for t in study.get_trials(deepcopy=False) if t.state == TrialState.COMPLETE]
    if len(finished) < FEWEST or len({t.value for t in finished}) < 2:
        return {}
    evaluator = PedAnovaImportanceEvaluator(target_quantile=0.5, region_quantile=1.0)
    return get_param_importances(study, evaluator=evaluator)


def as_json(draw: Draw | None) -> dict[str, Any] | None:
    """A draw as plain values."""
    return None if draw is None else asdict(draw)
