"""How the trials of a study are printed and drawn."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from muster.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from muster.search.study import Study, Trial

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
    from muster.search.settings import JUDGED_BY
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

    from muster.search.settings import JUDGED_BY
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


def draw_study(figure: Any, axes: Any, folder: Path) -> None:
    """Parallel coordinates of all trials, colour by what they are judged by; under them which settings matter."""
    from muster.search.study import ranked

    study = open_study(folder, "muster plot search")
    trials = [trial for trial in ranked(study.trials(), study.better) if trial.value is not None]
    if len(trials) < 2:
        raise InputError(f"{folder} has {len(trials)} finished trials; a picture needs at least 2")
    weight = study.importances()
    figure.set_size_inches(1.6 * len(study.space.sampled) + 3, 6.4 if weight else 4.4)
    axes.remove()
    top, *below = figure.subplots(2 if weight else 1, 1, height_ratios=(3, 1) if weight else (1,), squeeze=False)[:, 0]
    _draw_lines(figure, top, study, trials[::-1])
    for bars in below:
        bars.barh([name.partition(".")[2] for name in weight][::-1], list(weight.values())[::-1], color="tab:blue")
        bars.set_xlabel("share in what told the better half from the rest (PED-ANOVA)")


def _draw_lines(figure: Any, axes: Any, study: Study, trials: list[Trial]) -> None:
    """One line a trial, best on top; every axis from its lowest to its highest value."""
    from matplotlib import cm, colors

    values = [study.better * trial.value for trial in trials if trial.value is not None]
    shade: Any = cm.ScalarMappable(colors.Normalize(min(values), max(values)), "viridis")
    names = list(study.space.sampled)
    for place, name in enumerate(names):
        what = study.space.sampled[name]
        axes.axvline(place, color="0.8", linewidth=0.8)
        for height, end in zip((0, 1), what.ends, strict=True):
            text = f"{end:g}" if isinstance(end, float) else str(end)
            axes.text(place, height, text, ha="center", va="top" if height == 0 else "bottom", fontsize=7)
    for trial, value in zip(trials, values, strict=True):
        heights = [_height(study.space.sampled[name], trial.settings[name]) for name in names]
        style = "-" if trial.state == "done" else ":"
        axes.plot(range(len(names)), heights, style, color=shade.to_rgba(value), linewidth=1.4)
    axes.set_xticks(range(len(names)), [name.partition(".")[2] for name in names], fontsize=8)
    axes.tick_params(axis="x", pad=12)
    axes.set_yticks([])
    axes.set_ylim(-0.08, 1.08)
    axes.spines[:].set_visible(False)
    bar = figure.colorbar(shade, ax=axes)
    bar.set_label(study.settings.judge + (" (negative)" if study.better < 0 else ""))
    axes.set_title(f"{' '.join(study.settings.env)}: {len(trials)} trials (dotted: ended early)", fontsize=9)


def _height(what: Any, value: Any) -> float:
    """Where on its axis a value lies, from 0 to 1."""
    from muster.search.space import Range

    if not isinstance(what, Range):
        return what.values.index(value) / max(len(what.values) - 1, 1)
    scale = math.log if what.log else float
    return (scale(value) - scale(what.low)) / (scale(what.high) - scale(what.low))
