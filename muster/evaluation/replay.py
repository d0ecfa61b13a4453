"""One episode to look at: recorded, then written as a moving picture, a page or plain data."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from muster.data import Ints
from muster.envs.base import BatchEnv, Policy
from muster.errors import InputError, UnknownNameError
from muster.rng import episode_seeds

Picture = NDArray[np.uint8]

MILLISECONDS_A_STEP = 400
LAST_PICTURE_MILLISECONDS = 2000


@dataclass(frozen=True, slots=True)
class Replay:
    """An episode: its seed and assignments determine it; the pictures show it."""

    env: str
    policy: str
    seed: int
    """Names the set of episodes, of which this is the first."""
    assignments: Ints
    """[T, N]"""
    rewards: list[float]
    outcome: float
    metric: str
    truncated: bool
    pictures: list[list[Picture]]
    """The start, then the pictures of each step; empty if none were asked for."""

    def as_dict(self) -> dict[str, object]:
        """What a .json replay holds: enough to play the episode again."""
        return {
            "format": "muster-replay-1",
            "env": self.env,
            "policy": self.policy,
            "seed": self.seed,
            "metric": self.metric,
            "outcome": self.outcome,
            "truncated": self.truncated,
            "assignments": self.assignments.tolist(),
            "rewards": self.rewards,
        }


def record(policy: Policy, env: BatchEnv, seed: int = 0, pictures: bool = True) -> Replay:
    """Play the first episode of the set that `seed` names, in slot 0."""
    slots, seeds = np.arange(1), episode_seeds(seed, np.arange(1))
    env.start(slots, seeds)
    policy.begin(slots, seeds)
    drawn = [[env.draw(0)]] if pictures else []
    assignments, rewards = [], []
    truncated = False
    for _ in range(env.max_steps):
        assignment = policy.act(env.observe())
        before = env.get_state() if pictures else {}
        result = env.step(assignment)
        assignments.append(assignment[0])
        rewards.append(float(result.reward[0]))
        if pictures:
            drawn.append(env.animate(before, 0))
        if result.terminated[0] or result.truncated[0]:
            truncated = bool(result.truncated[0])
            break
    return Replay(
        env=env.name,
        policy=policy.name,
        seed=seed,
        assignments=np.array(assignments),
        rewards=rewards,
        outcome=float(env.outcome()[0]),
        metric=env.metric,
        truncated=truncated,
        pictures=drawn,
    )


def write_gif(replay: Replay, path: Path) -> None:
    """A moving picture that rests on its last frame and starts again."""
    from PIL import Image

    frames = [Image.fromarray(np.asarray(picture)) for step in replay.pictures for picture in step]
    durations = [MILLISECONDS_A_STEP // len(step) for step in replay.pictures for _ in step]
    durations[-1] = LAST_PICTURE_MILLISECONDS
    # One palette for all, of the middle frame, so that colours do not flicker.
    palette = frames[len(frames) // 2].quantize(64)
    flat = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    flat[0].save(path, save_all=True, append_images=flat[1:], duration=durations, loop=0, optimize=False)


def write_html(replay: Replay, path: Path) -> None:
    """One page that needs nothing else: a picture a step, with play, pause and a slider."""
    page = files("muster.evaluation.viewer").joinpath("replay.html").read_text(encoding="utf-8")
    pictures = [_png(step[-1]) for step in replay.pictures]
    data = {**replay.as_dict(), "pictures": pictures, "milliseconds": MILLISECONDS_A_STEP}
    # "</" would end the script element early.
    text = json.dumps(data).replace("</", "<\\/")
    path.write_text(page.replace("/*REPLAY*/null", text), encoding="utf-8")


def write_json(replay: Replay, path: Path) -> None:
    """The episode as data."""
    path.write_text(json.dumps(replay.as_dict()) + "\n", encoding="utf-8")


WRITERS: dict[str, Callable[[Replay, Path], None]] = {".gif": write_gif, ".html": write_html, ".json": write_json}


def writer(path: Path) -> Callable[[Replay, Path], None]:
    """How to write a replay to a file of that name; raises InputError where it cannot be."""
    if path.suffix not in WRITERS:
        raise UnknownNameError("replay format", path.suffix or path.name, WRITERS)
    if not path.parent.is_dir():
        raise InputError(f"there is no folder {str(path.parent)!r} to write {path.name} to")
    return WRITERS[path.suffix]


def _png(picture: Picture) -> str:
    from PIL import Image

    data = io.BytesIO()
    Image.fromarray(np.asarray(picture)).quantize(64).save(data, "PNG", optimize=True)
    return base64.b64encode(data.getvalue()).decode("ascii")
