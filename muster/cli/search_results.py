"""How the trials of a study are printed and drawn."""

from __future__ import annotations

import warnings
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from muster.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from muster.search.study import Study

ROWS = 20
"""Trials that the table shows; --json has all."""


def open_study(folder: Path, feature: str) -> Study:
    """The study in a folder, as it is."""
    need_optuna(feature)
    from muster.search.study import Study

    return Study.open(folder, None)


def need_optuna(feature: str) -> None:
    """Say how to install what `feature` stands on, where it is missing."""
    try:
        import optuna  # noqa: F401
    except ImportError:
        raise MissingExtraError(feature, "search") from None


def as_json(study: Study) -> dict[str, Any]:
    """All that a study came to."""
    from muster.search.space import JUDGED_BY
    from muster.search.study import best_of, ranked

    settings, trials = study.settings, study.trials()
    best = best_of(trials, study.better)
    return {
        "study": str(study.folder),
        "env": list(settings.env),
        "space": settings.space_name,
        "sampler": settings.sampler,
        "pruner": settings.pruner,
        "judge": settings.judge,
        "judged_by": JUDGED_BY[settings.judge],
        "minutes": settings.minutes,
        "steps": settings.steps,
        "seed": settings.seed,
        "trials": settings.trials,
        **{state: sum(trial.state == state for trial in trials) for state in ("done", "pruned", "failed", "running")},
        "best": None if best is None else asdict(best),
        "importance": study.importances(),
        "results": [asdict(trial) for trial in ranked(trials, study.better)],
    }


def print_table(study: Study) -> None:
    """The trials, best first, and which settings matter."""
    from rich.console import Console
    from rich.table import Table

    from muster.search.space import JUDGED_BY
    from muster.search.study import ranked, short

    settings = study.settings
    trials = ranked(study.trials(), study.better)
    length = f"{settings.minutes:g} CPU minutes" if settings.minutes is not None else f"{settings.steps:,} steps"
    count = sum(trial.state in ("done", "pruned", "failed") for trial in trials)
    title = f"{' '.join(settings.env)}: {count} of {settings.trials} trials of {length}, space {settings.space_name}"
    grid: Any = Table(title=title, caption=f"judged by {JUDGED_BY[settings.judge]}; no test episode was looked at")
    names = list(study.space.sampled)
    for column in ("trial", "", settings.judge, "minutes", *(name.partition(".")[2] for name in names)):
        grid.add_column(column, justify="right")
    for trial in trials[:ROWS]:
        results = [f"{trial.value:.4f}" if trial.value is not None else "–"]
        results.append(f"{trial.minutes:.2f}" if trial.minutes is not None else "–")
        sampled = [short(trial.settings[name]) if name in trial.settings else "–" for name in names]
        grid.add_row(str(trial.number), trial.state, *results, *sampled)
    console = Console(width=max(120, Console().width))
    console.print(grid)
    if len(trials) > ROWS:
        console.print(f"and {len(trials) - ROWS} more (--json has all)")
    for trial in trials:
        if trial.why:
            console.print(f"trial {trial.number} failed: {trial.why}", soft_wrap=True)
    weight = study.importances()
    if weight:
        told = ", ".join(f"{name} {share:.2f}" for name, share in weight.items())
        console.print(f"what told the better half from the rest (PED-ANOVA): {told}", soft_wrap=True)


def draw_study(folder: Path) -> Any:
    """Optuna's parallel coordinates of all trials, as a matplotlib figure."""
    study = open_study(folder, "muster plot search")
    finished = sum(trial.state == "done" for trial in study.trials())
    if finished < 2:
        raise InputError(f"{folder} has {finished} finished trials; a picture needs at least 2")
    from optuna.visualization.matplotlib import plot_parallel_coordinate

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it is experimental
        axes = plot_parallel_coordinate(study.optuna, target_name=study.settings.judge)
    axes.set_title(f"{' '.join(study.settings.env)}: {finished} trials")
    figure: Any = axes.figure
    figure.set_size_inches(1.6 * len(study.space.sampled) + 3, 4.4)
    return figure
