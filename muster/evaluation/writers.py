"""Write a replay as an animated GIF, an HTML page or JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from muster.envs.renderer import SceneRenderer, draw_scene, scenes_between
from muster.envs.scene import Bounds
from muster.envs.vector import BatchEnv
from muster.errors import InputError, MissingExtraError, UnknownNameError
from muster.evaluation.packing import LONGEST_SECONDS, bounds_of, pack
from muster.evaluation.replay import Film, Replay, film
from muster.evaluation.viewer import page
from muster.rng import episode_seeds
from muster.storage import check_parent, write_atomically

LAST_PICTURE_MILLISECONDS = 2000
"""Duration of a GIF's last frame."""
SHORTEST_PICTURE_MILLISECONDS = 40
COLOURS = 64
PALETTE_PICTURES = 12
"""Frames, spread over the episode, that a GIF's palette is made from."""

CAMERA_STEPS = 6
"""Moments before and after that the camera's motion is averaged over."""

Writer = Callable[[list[Replay], BatchEnv, Path], None]


def write_gif(replays: list[Replay], env: BatchEnv, path: Path) -> None:
    """Write an animated GIF that pauses on its last frame and loops."""
    from PIL import Image

    steps = pictures_of(_only(replays, path), env)
    pace = 1000 * env.renderer().seconds_per_step
    shown, durations = shortened([max(int(pace / len(step)), 20) for step in steps for _ in step])
    pictures = [picture for step in steps for picture in step]
    frames = [Image.fromarray(np.asarray(pictures[k])) for k in shown]
    # One palette for all frames, so that colours do not flicker; from many frames, since some colours are brief.
    some = frames[:: -(-len(frames) // PALETTE_PICTURES)]
    sheet = Image.new("RGB", (frames[0].width, frames[0].height * len(some)))
    for k, frame in enumerate(some):
        sheet.paste(frame, (0, k * frame.height))
    # Octree: median cut spends its colours on the background, and small agents and tasks lose theirs.
    palette = sheet.quantize(COLOURS, method=Image.Quantize.FASTOCTREE)
    flat = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    flat[0].save(path, save_all=True, append_images=flat[1:], duration=durations, loop=0, optimize=False)


def pictures_of(replay: Replay, env: BatchEnv) -> list[list[Any]]:
    """Frames of each step and of the end: interpolated scenes, or those of the environment's own `draw`."""
    renderer = env.renderer()
    if not isinstance(renderer, SceneRenderer):
        env.reset(np.arange(1), episode_seeds(replay.seed, np.arange(1)))
        return [[renderer.draw(0)], *([renderer.draw(0)] for _ in replay.steps(env))]
    shown = film(replay, env)
    scenes = [
        replace(moment.scene, stage=replace(moment.scene.stage, bounds=bounds))
        for moment, bounds in zip(shown.moments, follow(shown), strict=True)
    ]
    steps = [
        [draw_scene(scene, targets) for scene in scenes_between(old, new)]
        for (old, new), targets in zip(pairwise(scenes), replay.assignments, strict=True)
    ]
    return [*steps, [draw_scene(scenes[-1])]]


def follow(shown: Film) -> list[Bounds]:
    """Bounds of the camera at each moment: the stage's, or a square that smoothly follows the living."""
    stage, count = shown.moments[0].scene.stage, len(shown.moments)
    if stage.bounds is not None:
        return [stage.bounds] * count
    near = [slice(max(0, k - CAMERA_STEPS), k + CAMERA_STEPS + 1) for k in range(count)]
    # Each box covers all moments near its own, so the mean of the boxes near a moment still covers that moment.
    boxes = np.array([bounds_of(shown.moments[some]) for some in near])
    boxes = np.array([boxes[some].mean(0) for some in near])
    middle, half = (boxes[:, :2] + boxes[:, 2:]) / 2, (boxes[:, 2:] - boxes[:, :2]).max(1, keepdims=True) / 2
    return [(*low, *high) for low, high in zip((middle - half).tolist(), (middle + half).tolist(), strict=True)]


def shortened(durations: list[int]) -> tuple[list[int], list[int]]:
    """Indices of the frames to show, always with the last, and the milliseconds of each: at most 12 s in all."""
    most = int(1000 * LONGEST_SECONDS) - LAST_PICTURE_MILLISECONDS
    last = len(durations) - 1
    if sum(durations[:-1]) <= most:
        return list(range(last + 1)), [*durations[:-1], LAST_PICTURE_MILLISECONDS]
    count = min(last, most // SHORTEST_PICTURE_MILLISECONDS)
    ends = np.cumsum([0, *durations[:-1]])
    # Evenly in time; a GIF counts hundredths of a second.
    shown = np.searchsorted(ends, np.linspace(0, ends[-1], count, endpoint=False), side="right") - 1
    each = most // count // 10 * 10
    return [*shown.tolist(), last], [each] * count + [LAST_PICTURE_MILLISECONDS]


def write_html(replays: list[Replay], env: BatchEnv, path: Path) -> None:
    """Write a self-contained page with the viewer and the replays, two of one episode side by side."""
    write_atomically(path, page(pack([film(replay, env) for replay in replays])).encode())


def write_json(replays: list[Replay], env: BatchEnv, path: Path) -> None:
    """Write the replay as JSON."""
    del env
    write_atomically(path, (json.dumps(_only(replays, path).as_dict()) + "\n").encode())


WRITERS: dict[str, Writer] = {".gif": write_gif, ".html": write_html, ".json": write_json}


def writer(path: Path, policies: int = 1) -> Writer:
    """The writer for a file's suffix and number of policies; InputError if there is none."""
    if path.suffix not in WRITERS:
        raise UnknownNameError("replay format", path.suffix or path.name, WRITERS)
    if policies > 1 and path.suffix != ".html":
        raise InputError(f"two policies side by side need a page, such as replay.html; {path.name} shows one")
    check_parent(path)
    if path.suffix == ".gif" and find_spec("PIL") is None:
        raise MissingExtraError(path.name, "plot", f"write a page such as {path.stem}.html")
    return WRITERS[path.suffix]


def _only(replays: list[Replay], path: Path) -> Replay:
    if len(replays) != 1:
        raise InputError(f"{path.name} holds one replay, got {len(replays)}")
    return replays[0]
