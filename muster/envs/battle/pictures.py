"""Pictures of a battle.

Ours are blue, theirs red. A bar above a unit that is hurt is its health; a line leads to what it attacks, thicker and
brighter where several attack the same unit (focus fire), and an orange ring marks a unit whose attackers' next hits
add up to more than it has left (over-kill).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from muster.data import Floats
from muster.envs.battle import layout as lay
from muster.envs.battle.layout import Int32s, incoming_damage, shown_hit_points, targets_of

if TYPE_CHECKING:
    from muster.envs.battle.env import BattleEnv

Box = tuple[float, float, float, float]
"""A part of the map: left, top, right, bottom in pixels."""
ToPicture = Callable[[float, float], tuple[float, float]]

_GROUND = (24, 28, 34)
_GRID_LINE = (33, 38, 46)
_OURS, _THEIRS = (88, 166, 255), (248, 81, 73)
_OURS_LINE, _THEIRS_LINE = (48, 92, 146), (140, 52, 50)
_TEXT, _SHOT, _OVERKILL = (201, 209, 217), (255, 223, 128), (255, 166, 40)
_SIZE = (840, 480)
_MARGIN = 48
_NARROWEST = 420.0
"""Pixels of the game that a picture shows across, at least."""
_SMALLEST = 6.0
"""Half the size of a unit in a picture, at least."""
_STEPS = 6
"""Moments before and after over which the camera moves."""


def view_box(units: Int32s) -> Box:
    """The part of the map that shows all live units of all given moments."""
    alive = units[..., lay.ALIVE, :] != 0
    x = units[..., lay.PX, :][alive]
    y = units[..., lay.PY, :][alive]
    if x.size == 0:
        return 0.0, 0.0, float(_SIZE[0]), float(_SIZE[1])
    left, right = float(x.min()) - _MARGIN, float(x.max()) + _MARGIN
    top, bottom = float(y.min()) - _MARGIN, float(y.max()) + _MARGIN
    # Widen one side so that the picture's shape is kept.
    scale = max((right - left) / _SIZE[0], (bottom - top) / _SIZE[1], _NARROWEST / _SIZE[0])
    middle_x, middle_y = (left + right) / 2, (top + bottom) / 2
    half_x, half_y = scale * _SIZE[0] / 2, scale * _SIZE[1] / 2
    return middle_x - half_x, middle_y - half_y, middle_x + half_x, middle_y + half_y


def follow(units: Int32s) -> Floats:
    """[T, 4] what a camera shows at each of the moments [T, ., U]: it moves evenly, and never loses a live unit."""
    moments = len(units)
    near = [slice(max(0, t - _STEPS), t + _STEPS + 1) for t in range(moments)]
    # Each box shows all that is alive near its moment, so the mean of the boxes near a moment shows all of that moment.
    boxes = np.array([view_box(units[some]) for some in near])
    return np.array([boxes[some].mean(0) for some in near])


def draw_battle(env: BattleEnv, slot: int, box: Box | None, title: str) -> Image.Image:
    """A picture of one battle as it is now; `box` is the part of the map that is shown (None: all live units)."""
    units = env.units[slot]
    left, top, right, _ = box or view_box(units)
    scale = _SIZE[0] / (right - left)
    picture = Image.new("RGB", _SIZE, _GROUND)
    pen = ImageDraw.Draw(picture)

    def at(x: float, y: float) -> tuple[float, float]:
        return (x - left) * scale, (y - top) * scale

    _draw_grid(pen, left, top, scale)
    overkilled = _draw_targets(pen, env, slot, at)
    for i in range(env.n_units):
        if units[lay.ALIVE, i]:
            _draw_unit(pen, env, units, i, at, scale)
    for j in overkilled:
        x, y = at(units[lay.PX, j], units[lay.PY, j])
        pen.ellipse([x - 15, y - 15, x + 15, y + 15], outline=_OVERKILL, width=2)
    bullets = env.bullets[slot, : env.counters[slot, lay.N_BULLETS]]
    for bullet in bullets[bullets[:, lay.B_STATE] == lay.FLYING]:
        x, y = at(bullet[lay.B_X] / 256, bullet[lay.B_Y] / 256)
        tail = np.array([bullet[lay.B_TX] - bullet[lay.B_X] / 256, bullet[lay.B_TY] - bullet[lay.B_Y] / 256])
        tail = tail / max(float(np.hypot(*tail)), 1.0) * 7
        pen.line([(x - tail[0], y - tail[1]), (x, y)], fill=_SHOT, width=2)
    counters = env.counters[slot]
    seconds = counters[lay.FRAME] / lay.FRAMES_A_SECOND
    font, x = ImageFont.load_default(18), 12.0
    for text, colour in (
        (f"{counters[lay.N_OURS]}", _OURS),
        ("v", _TEXT),
        (f"{counters[lay.N_THEIRS]}", _THEIRS),
        (f"   {env.scenario.name}   {seconds:.1f} s   {title}", _TEXT),
    ):
        pen.text((x, 8), text, colour, font)
        x += pen.textlength(text, font) + 8
    return picture


def _draw_grid(pen: ImageDraw.ImageDraw, left: float, top: float, scale: float) -> None:
    step = 128
    for line in range(int(left // step) + 1, int((left + _SIZE[0] / scale) // step) + 1):
        pen.line([((line * step - left) * scale, 0), ((line * step - left) * scale, _SIZE[1])], fill=_GRID_LINE)
    for line in range(int(top // step) + 1, int((top + _SIZE[1] / scale) // step) + 1):
        pen.line([(0, (line * step - top) * scale), (_SIZE[0], (line * step - top) * scale)], fill=_GRID_LINE)


def _draw_targets(pen: ImageDraw.ImageDraw, env: BattleEnv, slot: int, at: ToPicture) -> list[int]:
    """Lines from attackers to targets; returns the targets that are about to be over-killed."""
    units, frame = env.units[slot], env.counters[slot, lay.FRAME]
    targets = targets_of(units)
    crowd = np.bincount(targets[targets >= 0], minlength=env.n_units)
    for i in np.flatnonzero(targets >= 0):
        target = targets[i]
        color = _OURS_LINE if i < env.n_agents else _THEIRS_LINE
        fired = 0 <= frame - units[lay.FIRED_FRAME, i] <= 3 and units[lay.FIRED_FRAME, i] >= 0
        width = 1 + min(int(crowd[target]) // 4, 2)
        start, end = at(units[lay.PX, i], units[lay.PY, i]), at(units[lay.PX, target], units[lay.PY, target])
        pen.line([start, end], fill=_SHOT if fired else color, width=width)
    health = shown_hit_points(units)
    # Half as much again, and two hits or so at the end.
    enough = health + np.maximum(health // 2, 10)
    return [int(j) for j in np.flatnonzero((crowd > 0) & (incoming_damage(env.types, units, targets) >= enough))]


def _draw_unit(pen: ImageDraw.ImageDraw, env: BattleEnv, units: Int32s, i: int, at: ToPicture, scale: float) -> None:
    """One unit: a shape by type, an edge that shows its heading, a health bar if it is hurt."""
    kind = env.types[units[lay.TYPE, i]]
    name = env.scenario.unit_names[units[lay.TYPE, i]]
    color = _OURS if i < env.n_agents else _THEIRS
    x, y = at(units[lay.PX, i], units[lay.PY, i])
    half = max((kind[lay.T_LEFT] + kind[lay.T_RIGHT] + kind[lay.T_UP] + kind[lay.T_DOWN]) / 4 * scale * 0.6, _SMALLEST)
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
    if fraction >= 1:
        return
    bar = max(half * 2, 10)
    pen.rectangle([x - bar / 2, y - half - 5, x + bar / 2, y - half - 3], fill=(70, 70, 70))
    shade = (63, 185, 80) if fraction > 0.6 else (210, 153, 34) if fraction > 0.3 else (248, 81, 73)
    pen.rectangle([x - bar / 2, y - half - 5, x - bar / 2 + bar * fraction, y - half - 3], fill=shade)
