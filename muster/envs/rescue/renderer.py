"""How search and rescue is shown to people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from muster.data import Floats
from muster.envs.renderer import Renderer
from muster.envs.scene import RED, Look, Scene, Stage

if TYPE_CHECKING:
    from muster.envs.rescue.env import RescueEnv
    from muster.envs.vector import State

BOARD = 512
"""Pixels along the longer side of the grid, about."""
BANNER = 36
SMALLEST_CELL = 12
"""Pixels of a cell by which ambulances and victims are drawn, at least: on large grids they are larger than theirs."""
MOVES_A_STEP = 4
"""Pictures from one cell to the next."""
# Drawn at twice the size and shrunk: smooth edges without a drawing library.
OVERSAMPLING = 2

PAPER, LINES, INK = (250, 248, 243), (232, 228, 219), (62, 60, 56)
MUD = (226, 214, 193)
VICTIM, PICKED_UP, AMBULANCE, CROSS = (214, 69, 65), (190, 205, 188), (245, 250, 255), (214, 69, 65)
LOOKS = (Look("ambulances", "van", size=0.38), Look("victims", "person", RED, size=0.32, remains=True))
# One colour an ambulance, for its outline and its line; they repeat after eight.
COLOURS = (
    (31, 119, 180),
    (23, 144, 118),
    (148, 103, 189),
    (214, 130, 22),
    (54, 73, 147),
    (140, 86, 75),
    (108, 142, 35),
    (190, 70, 140),
)


class RescueRenderer(Renderer):
    """Ambulances, victims and mud on their grid."""

    env: RescueEnv

    def scene(self, slot: int) -> Scene:
        """Ambulances and victims for the viewer."""
        env = self.env
        height, width = env.settings.shape
        waiting = env.waiting[slot].copy()
        return Scene(
            agents=env.agent_cells[slot][:, ::-1] + 0.5,
            tasks=env.task_cells[slot][:, ::-1] + 0.5,
            task_alive=waiting,
            text=f"{int(waiting.sum())} of {env.n_tasks} waiting",
            stage=Stage(LOOKS, bounds=(0.0, 0.0, float(width), float(height)), grid=1.0),
        )

    def animate(self, before: State, slot: int) -> list[NDArray[np.uint8]]:
        """Pictures of the last step: the ambulances glide from the cells of `before` to theirs."""
        old, new = before["agent_cells"][slot], self.env.agent_cells[slot]
        between = [old + (new - old) * (k / MOVES_A_STEP) for k in range(1, MOVES_A_STEP)]
        return [*(self.draw(slot, cells, before["waiting"][slot]) for cells in between), self.draw(slot)]

    def draw(
        self, slot: int, agents: NDArray[Any] | None = None, waiting: NDArray[Any] | None = None
    ) -> NDArray[np.uint8]:
        """[height, width, 3]; ambulances at `agents` [N, 2] and victims in state `waiting` [M] if not as they are."""
        from PIL import Image, ImageDraw, ImageFont

        env = self.env
        height, width = env.settings.shape
        cell = OVERSAMPLING * max(4, BOARD // max(height, width))
        size = max(cell, OVERSAMPLING * SMALLEST_CELL)
        banner = OVERSAMPLING * BANNER
        image = Image.new("RGB", (width * cell, height * cell + banner), PAPER)
        pen = ImageDraw.Draw(image)
        for row, column in self._muddy_cells(slot):
            pen.rectangle(
                [column * cell, banner + row * cell, (column + 1) * cell - 1, banner + (row + 1) * cell - 1], MUD
            )
        if cell >= OVERSAMPLING * 6:
            for row in range(height + 1):
                pen.line([(0, banner + row * cell), (width * cell, banner + row * cell)], LINES, OVERSAMPLING)
            for column in range(width + 1):
                pen.line([(column * cell, banner), (column * cell, banner + height * cell)], LINES, OVERSAMPLING)

        agents = env.agent_cells[slot] if agents is None else agents
        waiting = env.waiting[slot] if waiting is None else waiting

        def centre(place: NDArray[np.generic]) -> tuple[float, float]:
            return (float(place[1]) + 0.5) * cell, banner + (float(place[0]) + 0.5) * cell

        def disc(at: tuple[float, float], radius: float, colour: tuple[int, int, int]) -> None:
            pen.ellipse([at[0] - radius, at[1] - radius, at[0] + radius, at[1] + radius], fill=colour)

        for place, waits in zip(env.task_cells[slot], waiting, strict=True):
            if not waits:
                disc(centre(place), 0.14 * size, PICKED_UP)
        for i, task in enumerate(env.assigned[slot]):
            if task >= 0 and waiting[task]:
                ends = [centre(agents[i]), centre(env.task_cells[slot, task])]
                pen.line(ends, COLOURS[i % len(COLOURS)], max(OVERSAMPLING, size // 14))
        for place, waits in zip(env.task_cells[slot], waiting, strict=True):
            if waits:
                x, y = centre(place)
                disc((x, y - 0.16 * size), 0.13 * size, VICTIM)
                pen.pieslice([x - 0.24 * size, y - 0.02 * size, x + 0.24 * size, y + 0.5 * size], 180, 360, fill=VICTIM)
        for i, place in enumerate(agents):
            x, y = centre(place)
            colour = COLOURS[i % len(COLOURS)]
            box = [x - 0.38 * size, y - 0.28 * size, x + 0.38 * size, y + 0.22 * size]
            pen.rounded_rectangle(box, 0.1 * size, AMBULANCE, colour, max(OVERSAMPLING, size // 12))
            for wheel in (-0.2, 0.2):
                disc((x + wheel * size, y + 0.25 * size), 0.1 * size, colour)
            pen.rectangle([x - 0.05 * size, y - 0.19 * size, x + 0.05 * size, y + 0.13 * size], CROSS)
            pen.rectangle([x - 0.16 * size, y - 0.08 * size, x + 0.16 * size, y + 0.02 * size], CROSS)

        text = f"step {int(env.steps[slot])}     {int(waiting.sum())} of {env.n_tasks} waiting"
        font = ImageFont.load_default(OVERSAMPLING * 18)
        pen.text((OVERSAMPLING * 10, banner // 2), text, INK, font, anchor="lm")
        small = image.resize((image.width // OVERSAMPLING, image.height // OVERSAMPLING), Image.Resampling.LANCZOS)
        return np.asarray(small, np.uint8)

    def _muddy_cells(self, slot: int) -> NDArray[Any]:
        """[K, 2] where the mud is, whatever it looks like to policies."""
        ground = self.env.ground
        return np.zeros((0, 2), np.int64) if ground is None else np.argwhere(ground.muddy[slot])

    def describe(self, slot: int) -> str:
        """A line a row: A ambulance (2 to 9 or + for several), x waiting victim, - picked-up one, ~ mud, . dry."""
        env = self.env
        height, width = env.settings.shape
        board = np.full((height, width), ".", "<U1")
        for row, column in self._muddy_cells(slot):
            board[row, column] = "~"
        for (row, column), waits in zip(env.task_cells[slot], env.waiting[slot], strict=True):
            board[row, column] = "x" if waits else "-"
        count = np.zeros((height, width), np.int64)
        for row, column in env.agent_cells[slot]:
            count[row, column] += 1
        for row, column in np.argwhere(count):
            several = str(count[row, column]) if count[row, column] < 10 else "+"
            board[row, column] = "A" if count[row, column] == 1 else several
        lines = [" ".join(row) for row in board]
        return "\n".join([f"step {int(env.steps[slot])}, {int(env.waiting[slot].sum())} waiting", *lines])

    def arrange(self, slot: int, agents: Floats, tasks: Floats) -> None:
        """Put ambulances and waiting victims into the cells of these places."""
        env = self.env
        last = np.array(env.settings.shape) - 1
        for cells, places in ((env.agent_cells, agents), (env.task_cells, tasks)):
            cells[slot] = np.clip(np.floor(np.asarray(places)[:, ::-1]), 0, last)
        env.waiting[slot] = True
