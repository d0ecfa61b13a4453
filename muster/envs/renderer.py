"""How episodes are shown to people: as numbers for the viewer, as pictures, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from muster.data import Floats
from muster.envs.scene import Scene, scene_of
from muster.errors import MusterError

if TYPE_CHECKING:
    from muster.envs.vector import BatchEnv


class Renderer:
    """Shows the episodes of one environment object; this one knows what can be told from observations."""

    seconds_per_step: float = 0.4
    """How long a moving picture shows one step."""

    def __init__(self, env: BatchEnv) -> None:
        self.env: Any = env

    def scene(self, slot: int) -> Scene:
        """What there is to draw of the episode in `slot`, as numbers."""
        return scene_of(self.env.observe(), slot, self.env.positions)

    def draw(self, slot: int) -> Any:
        """A picture of the episode in `slot`: an array [height, width, 3] of uint8, or what numpy makes one of."""
        raise MusterError(f"{self.env.name} has no picture of itself")

    def describe(self, slot: int) -> str:
        """The episode in `slot` as text, for terminals."""
        raise MusterError(f"{self.env.name} has no description of itself")

    def arrange(self, slot: int, agents: Floats, tasks: Floats) -> None:
        """Put all agents [N, 2] and tasks [M, 2] of an episode that was just reset where a scene would show them."""
        del slot, agents, tasks
        raise MusterError(f"{self.env.name} cannot be arranged by hand")

    def can(self, method: str) -> bool:
        """Whether it has a `method` ("draw", "describe", "arrange") of its own."""
        return getattr(type(self), method) is not getattr(Renderer, method)
