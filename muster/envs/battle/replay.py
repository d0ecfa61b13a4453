"""Battles kept as replays that re-simulate to the same end, and as animated GIFs."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from muster.envs.base import Policy
from muster.envs.battle import from_options
from muster.envs.battle import layout as lay
from muster.envs.battle.dynamics import command_battle, play_frame
from muster.envs.battle.env import BattleEnv
from muster.envs.battle.layout import Int32s
from muster.envs.battle.render import TICKS_PER_SECOND, draw_battle, view_box
from muster.errors import InputError, UnknownNameError
from muster.rng import episode_seeds

FORMAT = "muster-battle-replay"
VERSION = 1


@dataclass(frozen=True, slots=True)
class Replay:
    """One battle as it can be played again: the environment, the seed, and every assignment."""

    env: str
    """Environment string, such as "battle:w15v17"."""
    policy: str
    seed: int
    assignments: list[list[int]]
    """[decisions][N]"""
    hash: str
    """Of the final state."""
    settings: dict[str, Any] = field(default_factory=dict)
    won: bool = False

    def save(self, path: str | Path) -> None:
        """Write JSON; of each assignment only what changed since the one before."""
        changes: list[list[int]] = []
        before: list[int] = []
        for now in self.assignments:
            flat: list[int] = []
            for i, task in enumerate(now):
                if not before or before[i] != task:
                    flat += [i, task]
            changes.append(flat)
            before = now
        document = {"format": FORMAT, "version": VERSION} | asdict(self)
        document["assignments"] = changes
        Path(path).write_text(json.dumps(document, separators=(",", ":")), encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Replay:
        """Read what `save` wrote."""
        try:
            document = json.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise InputError(f"cannot read the replay {str(path)!r}: {error}") from None
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise InputError(f"{str(path)!r} is not a battle replay")
        if document.get("version") != VERSION:
            raise InputError(f"{str(path)!r} is a replay of version {document.get('version')}; this reads {VERSION}")
        try:
            now: list[int] = []
            assignments = []
            n_agents = _environment(document["env"]).n_agents
            for flat in document["assignments"]:
                now = list(now) if now else [-1] * n_agents
                for i, task in zip(flat[::2], flat[1::2], strict=True):
                    now[i] = int(task)
                assignments.append(now)
            return cls(
                env=document["env"],
                policy=document["policy"],
                seed=int(document["seed"]),
                assignments=assignments,
                hash=document["hash"],
                settings=document["settings"],
                won=bool(document["won"]),
            )
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            raise InputError(f"{str(path)!r} is damaged: {type(error).__name__} {error}") from None

    def verify(self) -> bool:
        """Whether playing it again leads to the same final state."""
        env = self._begin()
        for assignment in self.assignments:
            env.step(np.array([assignment], dtype=np.int64))
        return state_hash(env) == self.hash

    def to_gif(self, path: str | Path, every: int = 3, speed: float = 1.0) -> None:
        """Write an animated GIF with one picture for `every` frames of the game, at `speed` times the game's pace."""
        env = self._begin()
        world = env.world
        moments: list[Int32s] = [world.units.copy()]
        for assignment in self.assignments:
            env.step(np.array([assignment], dtype=np.int64))
            moments.append(world.units.copy())
        box = view_box(np.concatenate(moments))
        env = self._begin()
        world = env.world
        pictures = [draw_battle(world, 0, box, self.policy)]
        for assignment in self.assignments:
            for moment in _frames(env, np.array([assignment], dtype=np.int64)):
                if moment % every == 0:
                    pictures.append(draw_battle(world, 0, box, self.policy))
        pictures += [draw_battle(world, 0, box, self.policy)] * 8
        flat = [picture.quantize(64, dither=Image.Dither.NONE) for picture in pictures]
        duration = max(int(1000 * every / TICKS_PER_SECOND / speed), 20)
        flat[0].save(path, save_all=True, append_images=flat[1:], duration=duration, loop=0, optimize=True)

    def _begin(self) -> BattleEnv:
        env = _environment(self.env)
        env.start(np.array([0]), episode_seeds(self.seed, np.array([0])))
        return env


def _frames(env: BattleEnv, assignment: Any) -> Any:
    """Carry out one decision of a single battle frame by frame, yielding the frame number after each."""
    world = env.world
    orders = env.resolve(assignment)
    counters = world.counters[0]
    if counters[lay.ENDED]:
        return
    started = int(counters[lay.FRAME])
    command_battle(world.units[0], world.params, counters, world.n_ours, orders[0])
    for _ in range(env.settings.decision_frames):
        play_frame(
            world.units[0], world.types, world.params, counters, world.bullets[0], world.field[0], world.n_ours,
            world.rng[:1], started,
        )  # fmt: skip
        yield int(counters[lay.FRAME])
        if counters[lay.N_OURS] == 0 or counters[lay.N_THEIRS] == 0:
            counters[lay.ENDED] = 1
            return


def state_hash(env: BattleEnv, slot: int = 0) -> str:
    """A hash of everything that makes up the battle in `slot`."""
    digest = hashlib.sha256()
    for name, array in sorted(env.get_state().items()):
        digest.update(name.encode())
        part = array[slot]
        if name == "bullets":
            # Beyond the live bullets the slots hold what was there before.
            part = part[: env.world.counters[slot, lay.N_BULLETS]]
        digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()


def _environment(text: str) -> BattleEnv:
    return from_options(text.removeprefix("battle:"), 1)


def record(env_text: str, policy: str | Policy, seed: int = 0) -> Replay:
    """Play one battle and keep it as a replay; `policy` is a policy or the name of a heuristic."""
    env = _environment(env_text)
    if isinstance(policy, str):
        makers = BattleEnv.baselines()
        if policy not in makers:
            raise UnknownNameError("battle heuristic", policy, makers)
        player: Policy = makers[policy](env)
    else:
        player = policy
    slots = np.array([0])
    seeds = episode_seeds(seed, slots)
    env.start(slots, seeds)
    player.begin(slots, seeds)
    assignments = []
    while not env.world.counters[0, lay.ENDED]:
        assignment = player.act(env.observe())
        assignments.append([int(task) for task in assignment[0]])
        env.step(assignment)
    return Replay(
        env=env.name,
        policy=player.name,
        seed=seed,
        assignments=assignments,
        hash=state_hash(env),
        settings=asdict(env.settings),
        won=bool(env.outcome()[0]),
    )
