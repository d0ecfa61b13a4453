"""Play the draws of a study: train each in its folder, end those that fall behind, note what they came to."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from optuna.trial import TrialState

from muster.errors import InputError
from muster.learning.rollouts import TrainingError
from muster.learning.settings import TrainSettings
from muster.learning.train import check_training, run_training
from muster.search.drawing import RUNGS
from muster.search.results import Draw
from muster.search.study import Claim, Study

Say = Callable[[str], None]


def play_draws(study: Study, say: Say = lambda line: None) -> bool:
    """Play draws until all are taken; False if interrupted, when the draw under way is left as a run to go on with."""
    while (claim := study.claim()) is not None:
        try:
            if not play(study, claim, say):
                return False
        finally:
            claim.let_go()
    return True


def play(study: Study, claim: Claim, say: Say = lambda line: None) -> bool:
    """Play one draw to its end; False if interrupted."""
    try:
        settings = study.settings.of_draw(study.space.settings(claim.values))
    except InputError as refusal:
        _fail(study, claim, str(refusal))
    else:
        try:
            if not _train(study, claim, settings):
                return False
            _tell(study, claim)
        except TrainingError as failure:
            _fail(study, claim, str(failure))
        except InputError:
            why = refusal_of(settings)
            if not why:  # a full disk, say: the next draw would fare no better
                raise
            _fail(study, claim, why)
    draw = study.draws()[claim.number]
    say(line_of(draw) + (" (taken up)" if claim.taken_up else ""))
    return True


def refusal_of(settings: TrainSettings) -> str:
    """Why no run can be made with these settings; empty where one can."""
    try:
        check_training(settings)
    except InputError as refusal:
        return str(refusal)
    return ""


def line_of(draw: Draw) -> str:
    """A draw in a line."""
    drawn = " ".join(f"{name.rpartition('.')[2]}={short(value)}" for name, value in draw.settings.items())
    figure = f" {draw.value:.4f}" if draw.value is not None else ""
    why = f" ({draw.why})" if draw.why else ""
    return f"draw {draw.number} {draw.state}{figure}{why}: {drawn}"


def short(value: Any) -> str:
    """A drawn value for people."""
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _train(study: Study, claim: Claim, settings: TrainSettings) -> bool:
    """Train in the draw's folder, from its last checkpoint if it has one, until the end or until it falls behind."""
    if "pruned_at" in claim.trial.user_attrs:
        return True  # ended, and killed before that was told
    reported = study.optuna.get_trials(deepcopy=False)[claim.number].intermediate_values
    best = max(reported.values(), default=-math.inf)
    told = set(reported)

    def hear(row: Mapping[str, Any], progress: float) -> bool:
        nonlocal best
        reward, rung = row.get("reward", math.nan), int(progress * RUNGS)
        if not math.isfinite(reward) or rung in told:
            return False
        # As in the run's own summary: but for the actor-critic, the last row is the one that counts.
        best = max(best, reward) if settings.learner == "a2c" else reward
        told.add(rung)
        claim.trial.report(best, rung)
        if rung < RUNGS and claim.trial.should_prune():
            claim.trial.set_user_attr("pruned_at", rung)
            return True
        return False

    return run_training(settings, claim.folder, (claim.folder / "config.toml").exists(), hear).finished


def _tell(study: Study, claim: Claim) -> None:
    """Write into the journal what a finished run came to."""
    summary = json.loads((claim.folder / "summary.json").read_text(encoding="utf-8"))
    value = summary["best_training_reward"]
    if study.settings.judge == "validation":
        value = _last_validation(claim.folder)
    if value is None:
        _fail(study, claim, "no episode ended before the draw did; give it longer")
        return
    _keep(claim, {"value": value, "minutes": round(summary["cpu_minutes"], 4), "steps": summary["steps"]})
    if "pruned_at" in claim.trial.user_attrs:
        study.optuna.tell(claim.trial, state=TrialState.PRUNED)
    else:
        study.optuna.tell(claim.trial, study.better * value)


def _last_validation(folder: Path) -> float | None:
    with (folder / "metrics.csv").open(newline="") as lines:
        found = [row["validation"] for row in csv.DictReader(lines) if row.get("validation")]
    return float(found[-1]) if found else None


def _fail(study: Study, claim: Claim, why: str) -> None:
    # As one ended early rather than Optuna's FAIL: its samplers then learn to keep away from there.
    _keep(claim, {"why": why})
    study.optuna.tell(claim.trial, state=TrialState.PRUNED)


def _keep(claim: Claim, figures: dict[str, Any]) -> None:
    for name, figure in figures.items():
        claim.trial.set_user_attr(name, figure)
