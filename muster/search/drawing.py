"""Who draws and who ends draws early: Optuna's samplers and pruners, as a study asks for them."""

from __future__ import annotations

from typing import Any
from zlib import crc32

import numpy as np
from optuna import Study, Trial
from optuna.distributions import BaseDistribution
from optuna.pruners import BasePruner, HyperbandPruner, MedianPruner, NopPruner
from optuna.samplers import BaseSampler, RandomSampler, TPESampler
from optuna.trial import FrozenTrial

from muster.search.settings import Pruner, Sampler
from muster.search.space import Choice, Range, Space

RUNGS = 20
"""Parts of a draw's length; after each it may be ended."""
FIRST_RUNG = 4
"""Nothing is ended by the median before this many."""


class NumberedSampler(BaseSampler):
    """Random numbers follow from the study's seed, a draw's number and the setting: not from who draws, nor when.

    So random draws are the same for any number of processes, and after any interruption.
    """

    def __init__(self, kind: Sampler, seed: int) -> None:
        self._kind, self._seed = kind, seed

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """None: every setting is drawn by itself."""
        return {}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Nothing."""
        return {}

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """The value of one setting."""
        words = np.random.SeedSequence([self._seed, trial.number, crc32(param_name.encode())]).generate_state(1)
        seed = int(words[0])
        # Draws under way elsewhere count as bad ones, so that processes spread out.
        drawer = RandomSampler(seed) if self._kind == "random" else TPESampler(seed=seed, constant_liar=True)
        return drawer.sample_independent(study, trial, param_name, param_distribution)


def make_pruner(kind: Pruner) -> BasePruner:
    """The one of that name."""
    if kind == "median":
        return MedianPruner(n_startup_trials=5, n_warmup_steps=FIRST_RUNG)
    if kind == "hyperband":
        return HyperbandPruner(min_resource=1, max_resource=RUNGS, reduction_factor=3)
    return NopPruner()


def draw_settings(trial: Trial, space: Space) -> dict[str, Any]:
    """Dotted name -> value; those that the trial already has stay."""
    return {name: _draw(trial, name, what) for name, what in space.drawn.items()}


def _draw(trial: Trial, name: str, what: Range | Choice) -> Any:
    if isinstance(what, Choice):
        return trial.suggest_categorical(name, what.values)
    if what.whole:
        return trial.suggest_int(name, int(what.low), int(what.high), log=what.log)
    return trial.suggest_float(name, what.low, what.high, log=what.log)
