"""What the training loop asks of a learner, whatever it learns from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from numpy.typing import NDArray

from muster.assign.settings import InferenceSettings
from muster.envs.vector import BatchEnv
from muster.learning.tally import Figures
from muster.models.direct import Parameters
from muster.models.spec import ModelSpec
from muster.policy.learned import LearnedPolicy


class HasEnv(Protocol):
    """An environment of the run, with whatever the learner keeps beside it."""

    env: BatchEnv


class Learner(Protocol):
    """Plays and learns, an update at a time; its state can be saved between two updates."""

    spec: ModelSpec
    inference: InferenceSettings
    steps: int
    """Environment steps so far."""
    last_is_best: bool
    """Whether the last policy stands for the run, rather than the one with the best row of the log."""

    @property
    def worlds(self) -> Sequence[HasEnv]:
        """The environments that it learns on."""

    def update(self, progress: float = 0.0) -> Figures:
        """Play and learn once; `progress` in [0, 1] is how far the run has come."""

    def policy(self) -> LearnedPolicy:
        """The policy as it stands."""

    def start(self, parameters: Parameters) -> None:
        """Begin with these numbers in the scoring model."""

    def advice(self) -> str | None:
        """What a user should hear, if anything."""

    def counts(self) -> Mapping[str, int]:
        """What the log should say of the run so far, if anything."""

    def get_state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Everything needed to go on bit for bit: arrays, and plain values."""

    def set_state(self, arrays: dict[str, NDArray[Any]], plain: dict[str, Any]) -> None:
        """Go on from what `get_state` returned."""
