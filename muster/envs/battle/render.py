"""Seeing a battle: pictures, animated GIFs, and replays that re-simulate to the same end.

Ours are blue, theirs red. A bar above each unit is its health; a line leads to what it attacks, thicker and
brighter where several attack the same unit (focus fire), and an orange ring marks a unit whose attackers' next
hits add up to more than it has left (over-kill).
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

from muster.envs.base import Policy
from muster.envs.battle import from_options
from muster.envs.battle import layout as lay
from muster.envs.battle.dynamics import advance_frame, command
from muster.envs.battle.env import BattleEnv
from muster.envs.battle.layout import Int32s
from muster.envs.battle.world import World
from muster.errors import InputError, UnknownNameError
from muster.rng import episode_seeds

FORMAT = "muster-battle-replay"
VERSION = 1

_GROUND = (24, 28, 34)
_GRID_LINE = (33, 38, 46)
_OURS, _THEIRS = (88, 166, 255), (248, 81, 73)
_OURS_LINE, _THEIRS_LINE = (48, 92, 146), (140, 52, 50)
_TEXT, _SHOT, _OVERKILL = (201, 209, 217), (255, 223, 128), (255, 166, 40)
_SIZE = (840, 480)
_MARGIN = 48
_TICKS_PER_SECOND = 24

Box = tuple[float, float, float, float]


def view_box(units: Int32s) -> Box:
    """The part of the map (left, top, right, bottom, pixels) that shows all live units of all given moments."""
    alive = units[..., lay.ALIVE, :] != 0
    x = units[..., lay.PX, :][alive]
    y = units[..., lay.PY, :][alive]
    if x.size == 0:
        return 0.0, 0.0, float(_SIZE[0]), float(_SIZE[1])
    left, right = float(x.min()) - _MARGIN, float(x.max()) + _MARGIN
    top, bottom = float(y.min()) - _MARGIN, float(y.max()) + _MARGIN
    # Widen one side so that the picture's shape is kept.
    scale = max((right - left) / _SIZE[0], (bottom - top) / _SIZE[1])
    middle_x, middle_y = (left + right) / 2, (top + bottom) / 2
    half_x, half_y = scale * _SIZE[0] / 2, scale * _SIZE[1] / 2
    return middle_x - half_x, middle_y - half_y, middle_x + half_x, middle_y + half_y


def draw_battle(world: World, slot: int = 0, box: Box | None = None, title: str = "") -> Image.Image:
    """A picture of one battle as it is now; `box` fixes the part of the map that is shown."""
    units = world.units[slot]
    left, top, right, _ = box or view_box(units)
    scale = _SIZE[0] / (right - left)
    picture = Image.new("RGB", _SIZE, _GROUND)
    pen = ImageDraw.Draw(picture)

    def at(x: float, y: float) -> tuple[float, float]:
        return (x - left) * scale, (y - top) * scale

    _draw_grid(pen, left, top, scale)
    overkilled = _draw_targets(pen, world, units, at)
    for i in range(world.n_units):
        if units[lay.ALIVE, i] and units[lay.HP, i] > 0:
            _draw_unit(pen, world, units, i, at, scale)
    for j in overkilled:
        x, y = at(units[lay.PX, j], units[lay.PY, j])
        pen.ellipse([x - 15, y - 15, x + 15, y + 15], outline=_OVERKILL, width=2)
    bullets = world.bullets[slot, : world.counters[slot, lay.N_BULLETS]]
    for bullet in bullets[bullets[:, lay.B_STATE] == lay.FLYING]:
        x, y = at(bullet[lay.B_X] / 256, bullet[lay.B_Y] / 256)
        tail = np.array([bullet[lay.B_TX] - bullet[lay.B_X] / 256, bullet[lay.B_TY] - bullet[lay.B_Y] / 256])
        tail = tail / max(float(np.hypot(*tail)), 1.0) * 7
        pen.line([(x - tail[0], y - tail[1]), (x, y)], fill=_SHOT, width=2)
    counters = world.counters[slot]
    seconds = counters[lay.FRAME] / _TICKS_PER_SECOND
    pen.text((10, 8), f"{counters[lay.N_OURS]}", fill=_OURS)
    pen.text((34, 8), "v", fill=_TEXT)
    pen.text((48, 8), f"{counters[lay.N_THEIRS]}", fill=_THEIRS)
    pen.text((80, 8), f"{world.scenario.name}   {seconds:.1f} s   {title}", fill=_TEXT)
    return picture


def _draw_grid(pen: ImageDraw.ImageDraw, left: float, top: float, scale: float) -> None:
    step = 128
    for line in range(int(left // step) + 1, int((left + _SIZE[0] / scale) // step) + 1):
        pen.line([((line * step - left) * scale, 0), ((line * step - left) * scale, _SIZE[1])], fill=_GRID_LINE)
    for line in range(int(top // step) + 1, int((top + _SIZE[1] / scale) // step) + 1):
        pen.line([(0, (line * step - top) * scale), (_SIZE[0], (line * step - top) * scale)], fill=_GRID_LINE)


def _draw_targets(pen: ImageDraw.ImageDraw, world: World, units: Int32s, at: Any) -> list[int]:
    """Lines from attackers to targets; gives back the targets that are about to be over-killed."""
    n = world.n_units
    n_kinds = world.types.shape[0]
    attackers = [
        i
        for i in range(n)
        if units[lay.ALIVE, i]
        and units[lay.HP, i] > 0
        and units[lay.ORDER, i] == lay.ATTACK
        and units[lay.ALIVE, units[lay.ORDER_UNIT, i]]
    ]
    crowd = np.zeros(n, dtype=int)
    incoming = np.zeros(n, dtype=int)
    for i in attackers:
        target = units[lay.ORDER_UNIT, i]
        crowd[target] += 1
        incoming[target] += world.types[units[lay.TYPE, i], lay.TYPE_FIELDS + n_kinds + units[lay.TYPE, target]]
    frame = world.counters[0, lay.FRAME]
    for i in attackers:
        target = units[lay.ORDER_UNIT, i]
        color = _OURS_LINE if i < world.n_ours else _THEIRS_LINE
        fired = 0 <= frame - units[lay.FIRED_FRAME, i] <= 3 and units[lay.FIRED_FRAME, i] >= 0
        width = 1 + min(crowd[target] // 4, 2)
        start, end = at(units[lay.PX, i], units[lay.PY, i]), at(units[lay.PX, target], units[lay.PY, target])
        pen.line([start, end], fill=_SHOT if fired else color, width=width)
    return [j for j in range(n) if crowd[j] and incoming[j] >= _over((int(units[lay.HP, j]) + 255) >> 8)]


def _over(health: int) -> int:
    """Incoming damage from which a unit counts as over-killed: half as much again, and two hits or so at the end."""
    return health + max(health // 2, 10)


def _draw_unit(pen: ImageDraw.ImageDraw, world: World, units: Int32s, i: int, at: Any, scale: float) -> None:
    """One unit: a shape by type, an edge that shows its heading, a health bar."""
    kind = world.types[units[lay.TYPE, i]]
    name = world.scenario.unit_names[units[lay.TYPE, i]]
    color = _OURS if i < world.n_ours else _THEIRS
    x, y = at(units[lay.PX, i], units[lay.PY, i])
    half = max((kind[lay.T_LEFT] + kind[lay.T_RIGHT] + kind[lay.T_UP] + kind[lay.T_DOWN]) / 4 * scale * 0.6, 3.0)
    angle = units[lay.HEADING, i] * 2 * np.pi / 256
    ahead = np.array([np.sin(angle), -np.cos(angle)])
    aside = np.array([-ahead[1], ahead[0]])
    centre = np.array([x, y])
    if name == "wraith":
        corners = [centre + half * ahead * 1.3, centre - half * ahead + half * aside * 1.2, centre - half * ahead * 0.5,
                   centre - half * ahead - half * aside * 1.2]  # fmt: skip
        pen.polygon([tuple(c) for c in corners], fill=color, outline=_GROUND)
    elif name == "zergling":
        corners = [centre + half * ahead * 1.3, centre - half * ahead * 0.8 + half * aside * 0.8,
                   centre - half * ahead * 0.8 - half * aside * 0.8]  # fmt: skip
        pen.polygon([tuple(c) for c in corners], fill=color, outline=_GROUND)
    elif name == "hydralisk":
        pen.regular_polygon((x, y, half), 6, fill=color, outline=_GROUND)
    else:
        pen.ellipse([x - half, y - half, x + half, y + half], fill=color, outline=_GROUND)
    nose = centre + half * ahead * 1.25
    pen.line([(x, y), tuple(nose)], fill=_GROUND, width=1)
    fraction = float(units[lay.HP, i] / kind[lay.T_HP])
    bar = max(half * 2, 10)
    pen.rectangle([x - bar / 2, y - half - 5, x + bar / 2, y - half - 3], fill=(70, 70, 70))
    shade = (63, 185, 80) if fraction > 0.6 else (210, 153, 34) if fraction > 0.3 else (248, 81, 73)
    pen.rectangle([x - bar / 2, y - half - 5, x - bar / 2 + bar * fraction, y - half - 3], fill=shade)


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
        duration = max(int(1000 * every / _TICKS_PER_SECOND / speed), 20)
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
    command(world.units[0], world.params, counters, world.n_ours, orders[0])
    for _ in range(env.settings.decision_frames):
        advance_frame(
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


__all__ = ["Replay", "draw_battle", "record", "state_hash", "view_box"]
