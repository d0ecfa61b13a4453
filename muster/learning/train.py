"""`muster.train`: train a policy, in a folder from which an interrupted run resumes bit for bit."""

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
from muster.learning.learner import check_parameters
from muster.learning.learners import make_pool
from muster.learning.loop import Loop, Outcome, Report
from muster.learning.run import Run, stored_settings
from muster.learning.settings import TrainSettings, refuse_others
from muster.learning.speed import choose_sizes
from muster.learning.validation import try_env
from muster.learning.workers import closing
from muster.models.custom import FILLED, parameters_of
from muster.models.spec import Parameters
from muster.policy.learned import LearnedPolicy
from muster.settings import as_table, build, differences, overlaid
from muster.storage import sole_writer

LENGTH = ("minutes", "steps")
"""Settings that may differ when a run is resumed, and are not read from its folder."""
WITHOUT_EFFECT = ("workers", "cluster")
"""Settings that may differ because the result does not depend on them."""


def train(
    env: EnvLike | Sequence[EnvLike],
    *,
    out: str | Path | None = None,
    resume: bool = False,
    report: Report | None = None,
    **settings: Any,
) -> LearnedPolicy:
    """Train a policy on a small environment, or on several in turn, and return the best one.

    With `out` that is the best by validation, or the environment's prior where nothing learned is better; without, the
    best by training reward.

    `env` is an environment string, or a class whose module can be imported; `model`, `inference` and `learner` are
    names, or your own classes, functions or objects that can be imported (docs/research/extend.md). A model given as an
    object is trained from its own parameters.
    The settings are the fields of `muster.learning.settings.TrainSettings`, where each is explained; those of a learner
    may be given as a dictionary: es={"sigma": 0.1}. With `out`, the run's folder keeps log, checkpoint
    and policies, and `resume` continues the run with its own settings: only `minutes` or `steps`, `workers` and
    `cluster` may differ.
    `report(row, progress)` is called after every row of the log (see `muster.Report`). Ctrl-C ends the run after the
    present update: its state is saved, and the best policy so far returned.
    """
    names = [text_of(one) for one in env] if isinstance(env, Sequence) and not isinstance(env, str) else text_of(env)
    table = {"env": names, **settings}
    start = None
    for kind, filled in (("model", FILLED), ("inference", ()), ("learner", ("setup",))):
        part = table.get(kind)
        if part is not None and not isinstance(part, str):
            table[kind] = custom_text(kind, part, filled)
            if kind == "model" and not isinstance(part, type) and hasattr(part, "parameters"):
                start = parameters_of(part)
    if resume:
        if out is None:
            raise InputError("resume needs the folder of the run (out)")
        stored = as_table(stored_settings(Path(out)))
        table = overlaid({name: value for name, value in stored.items() if name not in LENGTH}, table)
    checked = build(TrainSettings, table, "")
    refuse_others(checked, ((name, name) for name in settings))
    return run_training(checked, None if out is None else Path(out), resume, report, start=start).policy


def _show_settings() -> None:
    """Show every field of TrainSettings in the signature of `train`, for help() and notebooks."""
    parameters = list(inspect.signature(train).parameters.values())[:-1]
    fields = inspect.signature(TrainSettings).parameters.values()
    parameters += [field.replace(kind=field.KEYWORD_ONLY) for field in fields if field.name != "env"]
    train.__signature__ = inspect.signature(train).replace(parameters=parameters)  # type: ignore[attr-defined]


_show_settings()


def run_training(
    settings: TrainSettings,
    out: Path | None = None,
    resume: bool = False,
    report: Report | None = None,
    announce: Callable[[str], None] | None = None,
    start: Parameters | None = None,
) -> Outcome:
    """Train by the settings, in the folder `out` or without one; see `train`.

    `announce` is called with a line on the updates to expect before the first, and on the validation before it begins;
    `start` replaces the model's initial parameters.
    """
    if out is None and resume:
        raise InputError("resume needs the folder of the run (out)")
    if settings.learner == "es" and settings.num_envs and not resume:
        raise InputError("num_envs is for the other learners: es runs es.episodes of each candidate side by side")
    if report is not None:
        try:
            inspect.signature(report).bind({}, 0.0)
        except TypeError as error:
            raise InputError(f"report must be a function of two arguments, report(row, progress): {error}") from None
    with sole_writer(out) if out else nullcontext():
        if out and resume:
            settings = _resumed(settings, out)
        else:
            if out:
                Run.refuse_another(out)
                for name in settings.envs:
                    try_env(settings, name)
            settings = _sized(settings, announce)
        with closing(make_pool(settings)) as pool:
            run = None if out is None else Run(out) if resume else Run.create(out, settings)
            try:
                loop = Loop(settings, run, pool, fresh=not resume)
            except MusterError:  # no run can be made of these settings: the folder stays free for the next try
                if run and not resume:
                    run.undo()
                raise
            if start and not resume:
                check_parameters(loop.learner.spec, start, f"the parameters of the object of {settings.model}")
                loop.learner.start(start)
            return loop.train(report, announce)


def _sized(settings: TrainSettings, announce: Callable[[str], None] | None) -> TrainSettings:
    """The settings with open sizes chosen by measured speed; warns of a run that is too short to learn much."""
    make_pool(dataclasses.replace(settings, cluster=None))  # refuses impossible settings before anything is timed
    sized, speed = choose_sizes(settings)
    if speed and announce:
        announce(speed.describe(sized))
    if speed and (warning := speed.warning(sized)):
        print(f"muster: {warning}", file=sys.stderr, flush=True)
    return sized


def check_training(settings: TrainSettings) -> None:
    """Raise InputError unless learner and environments can be made of the settings. Connects to no cluster."""
    with closing(make_pool(dataclasses.replace(settings, cluster=None))) as pool:
        Loop(settings, None, pool)


def _resumed(settings: TrainSettings, out: Path) -> TrainSettings:
    """The settings of the run in `out`, with another length if one is given; InputError where others differ."""
    stored = stored_settings(out)
    changed = [
        f"{name} is {before!r} there, not {now!r}"
        for name, before, now in differences(stored, settings)
        if name not in LENGTH + WITHOUT_EFFECT
    ]
    if changed:
        raise InputError(
            f"{out} holds a run with other settings: {'; '.join(changed)}. Leave them out, or begin a run elsewhere"
        )
    if settings.minutes is not None or settings.steps is not None:
        return settings
    return dataclasses.replace(stored, **{name: getattr(settings, name) for name in WITHOUT_EFFECT})
