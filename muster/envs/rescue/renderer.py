"""How search and rescue is shown to people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from muster.data import Floats, Ints
from muster.envs.pictures import SceneRenderer
from muster.envs.scene import RED, Look, Scene, Stage, Zone

if TYPE_CHECKING:
    from muster.envs.rescue.env import RescueEnv

SQUARE = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
"""Corners of a cell."""
LOOKS = (Look("ambulances", "van", size=0.38), Look("victims", "person", RED, size=0.32, remains=True))


class RescueRenderer(SceneRenderer):
    """Ambulances, victims and mud on their grid."""

    env: RescueEnv

    def scene(self, slot: int) -> Scene:
        """Ambulances and victims for the viewer."""
        env = self.env
        height, width = env.settings.shape
        waiting = env.waiting[slot].copy()
        mud = tuple(Zone(cell[::-1] + SQUARE, 1.0) for cell in self._muddy_cells(slot))
        return Scene(
            agents=env.agent_cells[slot][:, ::-1] + 0.5,
            tasks=env.task_cells[slot][:, ::-1] + 0.5,
            task_alive=waiting,
            text=f"step {int(env.steps[slot])}, {int(waiting.sum())} of {env.n_tasks} waiting",
            stage=Stage(LOOKS, bounds=(0.0, 0.0, float(width), float(height)), grid=1.0, zones=mud),
        )

    def targets(self, slot: int) -> Ints:
        """[N] the victim that each ambulance is on its way to."""
        return self.env.assigned[slot]

    def _muddy_cells(self, slot: int) -> NDArray[Any]:
        """[K, 2] where the mud is, whatever it looks like to policies."""
        ground = self.env.ground
        return np.zeros((0, 2), np.int64) if ground is None else np.argwhere(ground.muddy[slot])

    def describe(self, slot: int) -> str:
        """A line a row: A ambulance (2 to 9 or + for several), x waiting victim, - picked-up one, ~ mud, . dry."""
        env = self.env
        height, width = env.settings.shape
        cells = np.full((height, width), ".", "<U1")
        for row, column in self._muddy_cells(slot):
            cells[row, column] = "~"
        for (row, column), waits in zip(env.task_cells[slot], env.waiting[slot], strict=True):
            cells[row, column] = "x" if waits else "-"
        count = np.zeros((height, width), np.int64)
        for row, column in env.agent_cells[slot]:
            count[row, column] += 1
        for row, column in np.argwhere(count):
            several = str(count[row, column]) if count[row, column] < 10 else "+"
            cells[row, column] = "A" if count[row, column] == 1 else several
        lines = [" ".join(row) for row in cells]
        return "\n".join([f"step {int(env.steps[slot])}, {int(env.waiting[slot].sum())} waiting", *lines])

    def arrange(self, slot: int, agents: Floats, tasks: Floats) -> None:
        """Put ambulances and waiting victims into the cells of these places."""
        env = self.env
        last = np.array(env.settings.shape) - 1
        for cells, places in ((env.agent_cells, agents), (env.task_cells, tasks)):
            cells[slot] = np.clip(np.floor(np.asarray(places)[:, ::-1]), 0, last)
        env.waiting[slot] = True
