"""How a pursuit is shown to people."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from muster.data import Floats, Ints
from muster.envs.pictures import SceneRenderer
from muster.envs.scene import BLUE, ORANGE, Look, Scene, Stage

if TYPE_CHECKING:
    from muster.envs.pursuit.env import PursuitEnv

LOOKS = (Look("pursuers", "diamond", BLUE, size=0.38), Look("evaders", "disc", ORANGE, size=0.34, remains=True))


class PursuitRenderer(SceneRenderer):
    """Pursuers and evaders on their grid."""

    env: PursuitEnv

    def scene(self, slot: int) -> Scene:
        """Pursuers and evaders for the viewer."""
        env, settings, state = self.env, self.env.settings, self.env.state
        free = state.free[slot].copy()
        bounds = (0.0, 0.0, float(settings.width), float(settings.height))
        return Scene(
            agents=state.pursuers[slot][:, ::-1] + 0.5,
            tasks=state.evaders[slot][:, ::-1] + 0.5,
            task_alive=free,
            text=f"step {int(state.steps[slot])}, {int(free.sum())} of {env.n_tasks} free",
            stage=Stage(LOOKS, bounds=bounds, grid=1.0, wraps=not settings.walls),
        )

    def targets(self, slot: int) -> Ints:
        """[N] the evader that each pursuer hunts."""
        return self.env.state.targets[slot]

    def describe(self, slot: int) -> str:
        """A line a row: P a pursuer (2 to 9 or + for several), e a free evader, x a caught one, . nothing."""
        env, state = self.env, self.env.state
        cells = np.full(env.settings.shape, ".", "<U1")
        for mark, wanted in (("x", False), ("e", True)):
            for row, column in state.evaders[slot][state.free[slot] == wanted]:
                cells[row, column] = mark
        count = np.zeros(env.settings.shape, np.int64)
        np.add.at(count, tuple(state.pursuers[slot].T), 1)
        for row, column in np.argwhere(count):
            several = str(count[row, column]) if count[row, column] < 10 else "+"
            cells[row, column] = "P" if count[row, column] == 1 else several
        lines = [" ".join(row) for row in cells]
        return "\n".join([f"step {int(state.steps[slot])}, {int(state.free[slot].sum())} free", *lines])

    def arrange(self, slot: int, agents: Floats, tasks: Floats) -> None:
        """Put pursuers and free evaders into the cells of these places."""
        env = self.env
        last = np.array(env.settings.shape) - 1
        for cells, places in ((env.state.pursuers, agents), (env.state.evaders, tasks)):
            cells[slot] = np.clip(np.floor(np.asarray(places)[:, ::-1]), 0, last)
        env.state.free[slot] = True
