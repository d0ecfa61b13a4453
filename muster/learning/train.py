"""Train a policy in a run's folder; interrupted at any moment, a run goes on bit for bit."""

from __future__ import annotations

import dataclasses
import inspect
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from muster.custom import text_of as custom_text
from muster.envs.registry import EnvLike, text_of
from muster.errors import InputError, MusterError
from muster.learning.learners import make_pool
from muster.learning.loop import Loop, Outcome, Report
from muster.learning.run import Run, stored_settings
from muster.learning.settings import TrainSettings, refuse_others
from muster.learning.speed import choose_sizes
from muster.learning.workers import closing
from muster.models.custom import FILLED, parameters_of
from muster.models.direct import Parameters
from muster.policy.learned import LearnedPolicy
from muster.settings import as_table, build, differences, overlaid
from muster.storage import sole_writer

LENGTH = ("minutes", "steps")
"""Settings that may change when a run is resumed, and are not taken from it."""
WITHOUT_EFFECT = ("workers", "cluster")
"""Settings that may change because they make no difference to the result."""


def train(
    env: EnvLike | Sequence[EnvLike],
    *,
    out: str | Path | None = None,
    resume: bool = False,
    report: Report | None = None,
    **settings: Any,
) -> LearnedPolicy:
    """Learn a policy on a small environment, or on several in turn, and return the best one.

    With `out` that is the best by validation, or the environment's prior where nothing learned is better; without, the
    best by training reward.

    `env` is an environment string, or a class whose module can be imported; `model`, `inference` and `learner` are
    names, or parts of your own: classes, functions or objects that can be imported (docs/research/extend.md). A run
    starts from the parameters of a model that is given as an object.
    The settings are the fields of `muster.learning.settings.TrainSettings`, where each is explained; those of a learner
    may be given as a dictionary: es={"sigma": 0.1}. With `out`, the run's folder keeps log, checkpoint
    and policies, and `resume` goes on with it as it was begun: only `minutes` or `steps`, `workers` and `cluster` may
    then be other than they were.
    `report` hears every row of the log (see `Report`). Ctrl-C ends the run after the update under way: its state is
    saved, and the best policy so far returned.
    """
    if isinstance(env, Sequence) and not isinstance(env, str):
        given = {"env": [text_of(one) for one in env], **settings}
    else:
        given = {"env": text_of(env), **settings}
    start = None
    for kind, filled in (("model", FILLED), ("inference", ()), ("learner", ("setup",))):
        own = given.get(kind)
        if own is not None and not isinstance(own, str):
            given[kind] = custom_text(kind, own, filled)
            start = parameters_of(own) if kind == "model" and not isinstance(own, type) else start
    if resume:
        if out is None:
            raise InputError("resume needs the folder of the run (out)")
        stored = as_table(stored_settings(Path(out)))
        given = overlaid({name: value for name, value in stored.items() if name not in LENGTH}, given)
    made = build(TrainSettings, given, "")
    refuse_others(made, ((name, name) for name in settings))
    return run_training(made, None if out is None else Path(out), resume, report, start=start).policy


def _show_settings() -> None:
    """Let help() and notebooks show every setting of `train`, each of which is written down once, in TrainSettings."""
    own = list(inspect.signature(train).parameters.values())[:-1]
    fields = inspect.signature(TrainSettings).parameters.values()
    more = [field.replace(kind=field.KEYWORD_ONLY) for field in fields if field.name != "env"]
    train.__signature__ = inspect.signature(train).replace(parameters=own + more)  # type: ignore[attr-defined]


_show_settings()


def run_training(
    settings: TrainSettings,
    out: Path | None = None,
    resume: bool = False,
    report: Report | None = None,
    announce: Callable[[str], None] | None = None,
    start: Parameters | None = None,
) -> Outcome:
    """Train as the settings say, in the folder `out` or in none; see `train`.

    `announce` hears, before the first update, how many to expect; `start` are other first parameters than the model's.
    """
    if out is None and resume:
        raise InputError("resume needs the folder of the run (out)")
    with sole_writer(out) if out else nullcontext():
        if out and resume:
            settings = _resumed(settings, out)
        else:
            if out:
                Run.refuse_another(out, settings)
            settings = _sized(settings, announce)
        with closing(make_pool(settings)) as pool:
            run = None if out is None else Run(out) if resume else Run.create(out, settings)
            try:
                loop = Loop(settings, run, pool, fresh=not resume)
            except MusterError:  # what was asked for cannot be: the next try may have the same folder
                if run and not resume:
                    run.undo()
                raise
            if start and not resume:
                loop.learner.start(start)
            return loop.go(report)


def _sized(settings: TrainSettings, announce: Callable[[str], None] | None) -> TrainSettings:
    """The settings with what they leave open chosen by measured speed; a warning where few updates are to come."""
    make_pool(dataclasses.replace(settings, cluster=None))  # what cannot be is refused before anything is timed
    sized, speed = choose_sizes(settings)
    if speed and announce:
        announce(speed.describe(sized))
    warning = speed and speed.warning(sized)
    if warning:
        print(f"muster: {warning}", file=sys.stderr, flush=True)
    return sized


def check_training(settings: TrainSettings) -> None:
    """Make learner and environments of a run, and drop them: raises InputError where no run can be made.

    No cluster is asked for: whether one answers says nothing about the settings.
    """
    with closing(make_pool(dataclasses.replace(settings, cluster=None))) as pool:
        Loop(settings, None, pool)


def _resumed(settings: TrainSettings, out: Path) -> TrainSettings:
    """The settings of the run in `out`, longer or shorter if asked; whatever else differs is refused."""
    stored = stored_settings(out)
    changed = [
        (name, was, now) for name, was, now in differences(stored, settings) if name not in LENGTH + WITHOUT_EFFECT
    ]
    if changed:
        told = "; ".join(f"{name} is {was!r} there, not {now!r}" for name, was, now in changed)
        raise InputError(f"{out} holds a run with other settings: {told}. Leave them out, or begin a run elsewhere")
    longer = settings.minutes is not None or settings.steps is not None
    return (
        settings
        if longer
        else dataclasses.replace(stored, **{name: getattr(settings, name) for name in WITHOUT_EFFECT})
    )
