"""Pictures of the documentation, made again by their names.

    python docs/pictures.py            # all of the cookbook, from what the code of its pages computes
    python docs/pictures.py shifts     # one of them
    python docs/pictures.py pursuit    # an episode, docs/images/pursuit.gif; also rescue, w30v34-quad, w30v34-c
    python docs/pictures.py fleet      # a moment of an hour, docs/images/fleet.png
    python docs/pictures.py watch      # pages in a browser, docs/images/watch.png; also watch-battle (make browser)

A test draws those of the cookbook again when it has run the page, and compares.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

DOCS = Path(__file__).parent
IMAGES = DOCS / "images/cookbook"
BLOCK = re.compile(r"^```(\w+)(?: title=\"([\w./-]+)\")?\n(.*?)^```", re.MULTILINE | re.DOTALL)
BLUE, ORANGE, GREEN, PURPLE, GREY, PALE = "#3f51b5", "#f4511e", "#2e7d32", "#8e24aa", "#9e9e9e", "#e0e0e0"
PAPER, INK = "#ffffff", "#222222"

Point = Sequence[float]
Names = Mapping[str, Any]


class Drawing:
    """An SVG of a given size, white and with a margin of its own; coordinates are pixels, y down."""

    def __init__(self, width: float, height: float) -> None:
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
            f'font-family="sans-serif" font-size="13">',
            f'<rect width="{width:g}" height="{height:g}" rx="8" fill="{PAPER}"/>',
        ]

    def rect(self, x: float, y: float, width: float, height: float, fill: str) -> None:
        """A filled rectangle from its upper left corner."""
        self.parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{fill}"/>')

    def disc(self, at: Point, radius: float, fill: str) -> None:
        """A filled circle."""
        self.parts.append(f'<circle cx="{at[0]:.1f}" cy="{at[1]:.1f}" r="{radius:g}" fill="{fill}"/>')

    def square(self, at: Point, half: float, fill: str) -> None:
        """A filled square around a point."""
        self.rect(at[0] - half, at[1] - half, 2 * half, 2 * half, fill)

    def line(self, points: Iterable[Point], colour: str, width: float = 2, dashed: bool = False) -> None:
        """A line through points."""
        way = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        dashes = ' stroke-dasharray="4 4"' if dashed else ""
        self.parts.append(f'<polyline points="{way}" fill="none" stroke="{colour}" stroke-width="{width:g}"{dashes}/>')

    def text(self, at: Point, words: object, anchor: str = "middle", fill: str = INK) -> None:
        """Words whose vertical middle is at a point."""
        place = f'x="{at[0]:.1f}" y="{at[1] + 4.5:.1f}" text-anchor="{anchor}"'
        self.parts.append(f'<text {place} fill="{fill}">{words}</text>')

    def __str__(self) -> str:
        return "\n".join([*self.parts, "</svg>\n"])


def two_columns(
    pairs: Mapping[tuple[str, str], object], plan: Mapping[str, str | None], before: Mapping[str, str] | None = None
) -> Drawing:
    """Agents left, tasks right, lines for pairs: thick with its number in the plan, dashed in the plan before."""
    agents, tasks = list(dict.fromkeys(a for a, _ in pairs)), list(dict.fromkeys(t for _, t in pairs))
    height = 44.0 * max(len(agents), len(tasks)) + 20
    drawing = Drawing(420, height)
    left = {name: (90.0, height * (i + 0.5) / len(agents)) for i, name in enumerate(agents)}
    right = {name: (330.0, height * (j + 0.5) / len(tasks)) for j, name in enumerate(tasks)}
    for one, other in pairs:
        chosen = plan.get(one) == other
        drawing.line([left[one], right[other]], BLUE if chosen else PALE, 3 if chosen else 1.5)
    for one, other in (before or {}).items():
        drawing.line([left[one], right[other]], ORANGE, 2, dashed=True)
    for (one, other), number in pairs.items():
        if plan.get(one) == other:
            (x, y), (u, v) = left[one], right[other]
            middle = (x + 0.25 * (u - x), y + 0.25 * (v - y))
            drawing.square(middle, 9, PAPER)
            drawing.text(middle, number, fill=BLUE)
    for name, at in left.items():
        drawing.square(at, 6, BLUE)
        drawing.text((at[0] - 14, at[1]), name, "end")
    for name, at in right.items():
        drawing.disc(at, 7, ORANGE)
        drawing.text((at[0] + 14, at[1]), name, "start")
    return drawing


def on_map(points: np.ndarray, scale: float, margin: float = 20) -> np.ndarray:
    """Coordinates as pixels."""
    return margin + scale * np.asarray(points, float)


# -- The pages ---------------------------------------------------------------------------------------------------------


def vans(names: Names) -> Drawing:
    """Minutes of the pairs, and the plan."""
    pairs = {(van, job): minutes for van, jobs in names["minutes"].items() for job, minutes in jobs.items()}
    return two_columns(pairs, names["plan"].plan)


def replanning(names: Names) -> Drawing:
    """The new plan over the previous one."""
    pairs = {(van, job): minutes for van, jobs in names["minutes"].items() for job, minutes in jobs.items()}
    return two_columns(pairs, names["free"].plan, names["before"])


def shifts(names: Names) -> Drawing:
    """The roster of the fair week."""
    colours = {"early": "#ffe082", "late": "#90caf9", "night": "#9fa8da", None: "#f5f5f5"}
    people, week = list(names["wishes"]), names["week"]
    drawing = Drawing(80 + 62 * len(week), 46 + 26 * len(people))
    for day, roster in enumerate(week):
        drawing.text((101 + 62 * day, 20), f"day {day + 1}")
        for row, name in enumerate(people):
            drawing.rect(72 + 62 * day, 36 + 26 * row, 58, 22, colours[roster[name]])
            drawing.text((101 + 62 * day, 47 + 26 * row), roster[name] or "free")
    for row, name in enumerate(people):
        drawing.text((62, 47 + 26 * row), name, "end")
    return drawing


def couriers(names: Names) -> Drawing:
    """The tours of the plan: courier, kitchen, doors."""
    scale = 30.0
    drawing = Drawing(340, 340)
    homes, kitchens, doors = (on_map(names[kind], scale) for kind in ("couriers", "kitchens", "doors"))
    for courier, bundle in enumerate(names["plan"].assignment):
        if bundle >= 0:
            stops = [homes[courier], *on_map(names["best_tour"](courier, names["bundles"][bundle])[1], scale)]
            drawing.line(stops, (BLUE, GREEN, PURPLE, INK)[courier % 4], 2.5)
    for at in doors:
        drawing.disc(at, 6, ORANGE)
    for at in kitchens:
        drawing.square(at, 8, INK)
    for at in homes:
        drawing.square(at, 6, BLUE)
    for row, (words, fill) in enumerate((("courier", BLUE), ("kitchen", INK), ("customer", ORANGE))):
        drawing.text((10, 14 + 16 * row), words, "start", fill)
    return drawing


def warehouse(names: Names) -> Drawing:
    """A moment: robots, orders, and where the plan sends whom."""
    scale = 300.0
    drawing = Drawing(340, 340)
    robots, orders = on_map(names["robots"], scale), on_map(names["orders"], scale)
    for robot, order in enumerate(names["plan"].assignment):
        if order >= 0:
            drawing.line([robots[robot], orders[order]], BLUE, 2.5)
    for at, value, left in zip(orders, names["value"], names["left"], strict=True):
        drawing.disc(at, 4 + 1.5 * value, ORANGE)
        drawing.text((at[0], at[1] - 16), int(left), fill=GREY)
    for at in robots:
        drawing.square(at, 8, BLUE)
    return drawing


def weapons(names: Names) -> Drawing:
    """Chances of the pairs, and who fires at what."""
    chance, shots = names["chance"], names["shots"].assignment
    labels = [f"worth {worth:g}" for worth in names["worth"]]
    pairs = {(f"weapon {i + 1}", labels[j]): chance[i, j] for i, j in np.ndindex(chance.shape)}
    return two_columns(pairs, {f"weapon {i + 1}": labels[j] for i, j in enumerate(shots)})


def coverage(names: Names) -> Drawing:
    """The floor, what is covered, and the ways of the robots."""
    scale, floor = 12.0, names["floor"]
    drawing = Drawing(20 + 12 * floor.shape[1], 20 + 12 * floor.shape[0])
    covered = np.zeros(floor.shape, bool)
    plan = names["spread"].assignment
    covered[tuple(names["cells"][names["sees"][plan].any(axis=0)].T)] = True
    kinds = np.where(floor, covered, 2)
    for y, row in enumerate(kinds):
        ends = [0, *(np.flatnonzero(np.diff(row)) + 1), len(row)]
        for x, end in pairwise(ends):  # neighbours that look alike are one rectangle
            drawing.rect(10 + scale * x, 10 + scale * y, scale * (end - x), scale, ("#f5f5f5", "#bbdefb", INK)[row[x]])
    robots, sites = (16 + scale * names[kind][:, ::-1] for kind in ("robots", "sites"))
    for at in sites:
        drawing.disc(at, 3, ORANGE)
    for robot, site in enumerate(plan):
        drawing.line([robots[robot], sites[site]], BLUE, 2)
        drawing.disc(sites[site], 5, BLUE)
    for at in robots:
        drawing.square(at, 4, BLUE)
    return drawing


def satellites(names: Names) -> Drawing:
    """A row for each satellite: the target that it looks at in each minute."""
    plans = np.array(names["plans"]).T
    drawing = Drawing(560, 30 + 24 * len(plans))
    for satellite, row in enumerate(plans):
        drawing.text((62, 24 + 24 * satellite), satellite, "end")
        ends = [0, *(np.flatnonzero(np.diff(row)) + 1), len(row)]
        for begin, end in pairwise(ends):
            if row[begin] >= 0:
                hue = 360 * row[begin] / len(names["target"])
                drawing.rect(70 + 8 * begin, 14 + 24 * satellite, 8 * (end - begin) - 1, 20, f"hsl({hue:.0f},60%,78%)")
                drawing.text((70 + 4 * (begin + end), 24 + 24 * satellite), row[begin])
    return drawing


def bars(rows: Mapping[str, float], top: float, form: str) -> Drawing:
    """A bar for each row, with its number."""
    drawing = Drawing(420, 20 + 32 * len(rows))
    for row, (name, value) in enumerate(rows.items()):
        drawing.text((150, 26 + 32 * row), name, "end")
        drawing.rect(160, 15 + 32 * row, 200 * value / top, 22, BLUE if row == len(rows) - 1 else GREY)
        drawing.text((366 - 200 * (1 - value / top), 26 + 32 * row), format(value, form), "start")
    return drawing


def past_decisions(names: Names) -> Drawing:
    """How often each decides as the dispatcher does."""
    return bars({name: round(share, 2) for name, share in names["agreement"].items()}, 1.0, ".0%")


PICTURES: dict[str, Callable[[Names], Drawing]] = {
    "vans": vans,
    "replanning": replanning,
    "shifts": shifts,
    "couriers": couriers,
    "warehouse": warehouse,
    "weapons": weapons,
    "coverage": coverage,
    "satellites": satellites,
    "past-decisions": past_decisions,
}
"""Page of the cookbook -> its picture, from the names that its code defines."""


def run_page(page: Path, folder: Path) -> dict[str, Any]:
    """The names that the Python of a page defines, run in `folder`; titled blocks are files there."""
    names: dict[str, Any] = {}
    for language, file, code in BLOCK.findall(page.read_text(encoding="utf-8")):
        if file:
            (folder / file).write_text(code, encoding="utf-8")
        elif language == "python":
            exec(compile(code, page.name, "exec"), names)
    return names


EPISODES = {
    "w30v34-quad": ("battle-w15v17-quad-dm", "battle:w30v34", 1),
    "w30v34-c": ("c", "battle:w30v34", 1),
    "rescue": ("topline", "rescue:5x10", 2),
    "pursuit": ("pursuit-4x2-quad-dm", "pursuit:8x4", 1),
    "fleet": ("fleet-24-lp-dm", "fleet:24,city=small", 1),
}
"""Picture -> policy, environment and seed of its episode."""
MOST_FRAMES = 90


def draw_episode(name: str) -> None:
    """An episode as a GIF of few frames and colours; of the fleet the frame in the middle, as PNG."""
    from PIL import Image

    policy, env, seed = EPISODES[name]
    with tempfile.TemporaryDirectory() as folder:
        film = write_replay([policy], env, seed, Path(folder) / "film.gif")
        with Image.open(film) as gif:
            frames, times = [], []
            for number in range(gif.n_frames):
                gif.seek(number)
                frames.append(gif.convert("RGB"))
                times.append(gif.info["duration"])
    if name == "fleet":
        return frames[len(frames) // 2].save(DOCS / "images/fleet.png", optimize=True)
    every = -(-len(frames) // MOST_FRAMES)
    shown = [*range(0, len(frames) - 1, every), len(frames) - 1]
    ends = [*shown[1:], len(frames)]
    palette = drawing_colours()
    flat = [frames[k].quantize(palette=palette, dither=Image.Dither.NONE) for k in shown]
    durations = [sum(times[k:end]) for k, end in zip(shown, ends, strict=True)]
    flat[0].save(DOCS / f"images/{name}.gif", save_all=True, append_images=flat[1:], duration=durations, loop=0)


def write_replay(policies: Sequence[str], env: str, seed: int, path: Path) -> Path:
    """The file that `muster replay` writes of these policies."""
    import muster
    from muster.evaluation.replay import record
    from muster.evaluation.writers import writer

    batch_env = muster.make(env)
    writer(path, len(policies))([record(policy, batch_env, seed=seed) for policy in policies], batch_env, path)
    return path


def drawing_colours() -> Any:
    """A palette of the colours that scenes are drawn with, and of each halfway to the background, for edges."""
    from PIL import Image, ImageColor

    from muster.envs import renderer, scene

    used = [renderer.LINES, renderer.INK, renderer.QUIET, renderer.GONE, renderer.SHOT, renderer.HEALTHY, renderer.HURT]
    used += [*renderer.COLOURS, scene.RED, scene.BLUE, scene.GREEN, scene.ORANGE, scene.VIOLET]
    paper, *colours = (np.array(ImageColor.getrgb(colour)) for colour in (renderer.PAPER, *used))
    palette = Image.new("P", (1, 1))
    palette.putpalette(np.concatenate([paper, *colours, *((paper + colour) // 2 for colour in colours[1:])]).tolist())
    return palette


def draw_watch() -> None:
    """The page of the service with an agent selected."""
    command = [sys.executable, "-m", "muster", "serve", "--port", "8765"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as service:
        try:
            wait_for_port(8765)
            photograph("http://127.0.0.1:8765/#watch?step=1", "watch", lambda page: page.keyboard.press("a"))
        finally:
            service.terminate()


def draw_watch_battle() -> None:
    """The page of a replay in the middle of a battle."""
    with tempfile.TemporaryDirectory() as folder:
        film = write_replay(["battle-w15v17-quad-dm", "c"], "battle:w30v34", 1, Path(folder) / "film.html")
        photograph(film.as_uri(), "watch-battle", lambda page: [page.keyboard.press("ArrowRight") for _ in range(24)])


def wait_for_port(port: int) -> None:
    """Return as soon as something listens there."""
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.1)


def photograph(address: str, name: str, act: Callable[[Any], object]) -> None:
    """A page of the viewer as docs/images/NAME.png, after `act` on it."""
    from PIL import Image
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 860}, reduced_motion="reduce")
        page.goto(address)
        page.locator(".player").wait_for()
        act(page)
        page.wait_for_load_state("networkidle")
        picture = Image.open(io.BytesIO(page.screenshot()))
        picture.convert("RGB").quantize(256, Image.Quantize.FASTOCTREE).save(DOCS / f"images/{name}.png", optimize=True)
        browser.close()


PAGES = {"watch": draw_watch, "watch-battle": draw_watch_battle}


def main(pages: Sequence[str]) -> None:
    """Draw the pictures of these names, or of the whole cookbook."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    for page in pages or PICTURES:
        if page in EPISODES:
            draw_episode(page)
            continue
        if page in PAGES:
            PAGES[page]()
            continue
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            names = run_page(DOCS / f"cookbook/{page}.md", Path(folder))
        (IMAGES / f"{page}.svg").write_text(str(PICTURES[page](names)), encoding="utf-8")


if __name__ == "__main__":
    sys.path.insert(0, str(DOCS.parent))
    main(sys.argv[1:])
