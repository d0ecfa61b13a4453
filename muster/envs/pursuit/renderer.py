"""How a pursuit is shown to people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from muster.data import Floats
from muster.envs.renderer import Renderer
from muster.envs.scene import BLUE, ORANGE, Look, Scene, Stage

if TYPE_CHECKING:
    from PIL import Image

    from muster.envs.pursuit.env import PursuitEnv
    from muster.envs.pursuit.settings import PursuitSettings
    from muster.envs.vector import State

BOARD = 512
"""Pixels along the longer side of the grid, about."""
BANNER = 36
MOVES_A_STEP = 3
"""Pictures of the pursuers' move, and as many of the evaders'."""
# Drawn at twice the size and shrunk: smooth edges without a drawing library.
OVERSAMPLING = 2

PAPER, LINES, WALL, INK = (250, 248, 243), (232, 228, 219), (120, 114, 104), (62, 60, 56)
PURSUER, HUNT = (31, 99, 160), (143, 176, 206)
EVADER, BESIDE, CAUGHT = (226, 126, 30), (250, 222, 184), (196, 192, 184)

LOOKS = (Look("pursuers", "diamond", BLUE, size=0.38), Look("evaders", "disc", ORANGE, size=0.34, remains=True))

Points = list[tuple[float, float]]


class PursuitRenderer(Renderer):
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
            text=f"{int(free.sum())} of {env.n_tasks} free",
            stage=Stage(LOOKS, bounds=bounds, grid=1.0, wraps=not settings.walls),
        )

    def animate(self, before: State, slot: int) -> list[NDArray[np.uint8]]:
        """Pictures of the last step: the pursuers glide, caught evaders fade, the others glide away."""
        settings, state = self.env.settings, self.env.state
        old_pursuers: Any = before["pursuers"][slot]
        old_evaders: Any = before["evaders"][slot]
        old_free: Any = before["free"][slot]

        hunting = _way(old_pursuers, state.pursuers[slot], settings)
        fleeing = _way(old_evaders, state.evaders[slot], settings)
        shares = [k / MOVES_A_STEP for k in range(1, MOVES_A_STEP + 1)]
        first = [self.draw(slot, old_pursuers + hunting * share, old_evaders, old_free) for share in shares]
        moved = old_pursuers + hunting
        return (
            first + [self.draw(slot, moved, old_evaders + fleeing * share) for share in shares[:-1]] + [self.draw(slot)]
        )

    def draw(
        self,
        slot: int,
        pursuers: NDArray[Any] | None = None,
        evaders: NDArray[Any] | None = None,
        free: NDArray[Any] | None = None,
    ) -> NDArray[np.uint8]:
        """[height, width, 3]; pursuers [N, 2], evaders [M, 2] and who is free [M] as given, or else as they are."""
        from PIL import Image, ImageDraw

        settings, state = self.env.settings, self.env.state
        pursuers = state.pursuers[slot] if pursuers is None else pursuers
        evaders = state.evaders[slot] if evaders is None else evaders
        free = state.free[slot] if free is None else free
        cell = OVERSAMPLING * max(4, BOARD // max(settings.height, settings.width))
        width, height = settings.width * cell, settings.height * cell
        board = Image.new("RGB", (width, height), PAPER)
        pen = ImageDraw.Draw(board)
        for row in range(settings.height + 1):
            pen.line([(0, row * cell), (width, row * cell)], LINES, OVERSAMPLING)
        for column in range(settings.width + 1):
            pen.line([(column * cell, 0), (column * cell, height)], LINES, OVERSAMPLING)

        def centre(place: NDArray[Any]) -> tuple[float, float]:
            return (float(place[1]) + 0.5) * cell, (float(place[0]) + 0.5) * cell

        def everywhere(points: Points) -> Iterator[Points]:
            """Without walls, once more beyond each edge: what sticks out there comes in on the other side."""
            for x in (0,) if settings.walls else (-width, 0, width):
                for y in (0,) if settings.walls else (-height, 0, height):
                    moved = [(a + x, b + y) for a, b in points]
                    if any(-cell < a < width + cell and -cell < b < height + cell for a, b in moved):
                        yield moved

        def disc(place: NDArray[Any], radius: float, colour: tuple[int, int, int]) -> None:
            for [(x, y)] in everywhere([centre(place)]):
                box = [x - radius * cell, y - radius * cell, x + radius * cell, y + radius * cell]
                pen.ellipse(box, fill=colour)

        for place, still_free in zip(evaders, free, strict=True):
            if still_free:
                for [(x, y)] in everywhere([centre(place)]):
                    pen.rectangle([x - 1.5 * cell, y - 1.5 * cell, x + 1.5 * cell, y + 1.5 * cell], BESIDE)
            else:
                disc(place, 0.16, CAUGHT)
        for i, task in enumerate(state.targets[slot]):
            if task >= 0 and free[task]:
                there = pursuers[i] + _way(pursuers[i], evaders[task], settings)
                for ends in everywhere([centre(pursuers[i]), centre(there)]):
                    pen.line(ends, HUNT, max(OVERSAMPLING, cell // 12))
        for place, still_free in zip(evaders, free, strict=True):
            if still_free:
                disc(place, 0.34, EVADER)
        for place in pursuers:
            for [(x, y)] in everywhere([centre(place)]):
                r = 0.36 * cell
                pen.polygon([(x, y - r), (x + r, y), (x, y + r), (x - r, y)], PURSUER, PAPER)
        if settings.walls:
            pen.rectangle([0, 0, width - 1, height - 1], outline=WALL, width=3 * OVERSAMPLING)

        text = f"step {int(state.steps[slot])}     {int(free.sum())} of {self.env.n_tasks} free"
        return _under_banner(board, text)

    def describe(self, slot: int) -> str:
        """A line a row: P a pursuer (2 to 9 or + for several), e a free evader, x a caught one, . nothing."""
        env, state = self.env, self.env.state
        board = np.full(env.settings.shape, ".", "<U1")
        for mark, wanted in (("x", False), ("e", True)):
            for row, column in state.evaders[slot][state.free[slot] == wanted]:
                board[row, column] = mark
        count = np.zeros(env.settings.shape, np.int64)
        np.add.at(count, tuple(state.pursuers[slot].T), 1)
        for row, column in np.argwhere(count):
            several = str(count[row, column]) if count[row, column] < 10 else "+"
            board[row, column] = "P" if count[row, column] == 1 else several
        lines = [" ".join(row) for row in board]
        return "\n".join([f"step {int(state.steps[slot])}, {int(state.free[slot].sum())} free", *lines])

    def arrange(self, slot: int, agents: Floats, tasks: Floats) -> None:
        """Put pursuers and free evaders into the cells of these places."""
        env = self.env
        last = np.array(env.settings.shape) - 1
        for cells, places in ((env.state.pursuers, agents), (env.state.evaders, tasks)):
            cells[slot] = np.clip(np.floor(np.asarray(places)[:, ::-1]), 0, last)
        env.state.free[slot] = True


def _under_banner(board: Image.Image, text: str) -> NDArray[np.uint8]:
    """The board in its final size, with a line of text above it."""
    from PIL import Image, ImageDraw, ImageFont

    banner = OVERSAMPLING * BANNER
    image = Image.new("RGB", (board.width, board.height + banner), PAPER)
    image.paste(board, (0, banner))
    font = ImageFont.load_default(OVERSAMPLING * 18)
    ImageDraw.Draw(image).text((OVERSAMPLING * 10, banner // 2), text, INK, font, anchor="lm")
    small = image.resize((image.width // OVERSAMPLING, image.height // OVERSAMPLING), Image.Resampling.LANCZOS)
    return np.asarray(small, np.uint8)


def _way(here: Any, there: Any, settings: PursuitSettings) -> NDArray[Any]:
    """[..., 2] rows and columns from cells to others; without walls the shorter way round."""
    size = np.array([settings.height, settings.width])
    straight = np.asarray(there) - here
    return straight if settings.walls else straight - size * np.round(straight / size)
