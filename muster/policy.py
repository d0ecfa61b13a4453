"""What a policy is: observation in, assignment out."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from muster.data import Ints, Observation


@runtime_checkable
class Policy(Protocol):
    """Turns what is seen of B worlds into one assignment for each."""

    name: str

    def begin(self, slots: Ints, seeds: NDArray[np.uint64]) -> None:
        """New episodes start in these batch slots; any randomness of the policy follows from `seeds`.

        A policy with neither memory nor randomness ignores it.
        """
        ...

    def act(self, observation: Observation) -> Ints:
        """Assignment [B, N]: a task index for each agent, -1 for none."""
        ...
