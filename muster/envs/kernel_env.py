"""What envs share that are played by kernels: a state of named arrays, pictures drawn by a module of their own."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muster.envs.scene import Scene
from muster.envs.vector import BatchEnv, State


class KernelEnv(BatchEnv):
    """An environment whose kernels write to arrays in place."""

    @abstractmethod
    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """Everything that makes up the episodes under way, slot by slot."""

    @abstractmethod
    def picture(self) -> Any:
        """The module that draws: `scene`, `draw`, `animate` and `describe`. Imported only when asked for."""

    def get_state(self) -> State:
        """Copies of every array, by name."""
        return {name: array.copy() for name, array in self.arrays().items()}

    def set_state(self, state: State) -> None:
        """Go on from what `get_state` returned."""
        for name, array in self.arrays().items():
            array[...] = state[name]

    def scene(self, slot: int) -> Scene:
        """What there is to draw, as numbers."""
        scene: Scene = self.picture().scene(self, slot)
        return scene

    def draw(self, slot: int) -> NDArray[np.uint8]:
        """A picture of the episode as it is now."""
        image: NDArray[np.uint8] = self.picture().draw(self, slot)
        return image

    def animate(self, before: State, slot: int) -> list[NDArray[np.uint8]]:
        """The last step in small moves."""
        images: list[NDArray[np.uint8]] = self.picture().animate(self, before, slot)
        return images

    def describe(self, slot: int) -> str:
        """The episode in characters, for a terminal."""
        text: str = self.picture().describe(self, slot)
        return text
