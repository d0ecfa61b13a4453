"""A battle as numbers to draw: where every unit is, what it has left, whom it is after, who has just fired at whom."""

from __future__ import annotations

import numpy as np

from muster.data import Bools, Floats, Ints
from muster.envs.battle import layout as lay
from muster.envs.battle.layout import Int32s
from muster.envs.battle.spawn import HIGH, LOW
from muster.envs.battle.status import shown_damage, shown_hit_points
from muster.envs.battle.world import World
from muster.envs.scene import BLUE, RED, Look, Scene, Shape, Stage

SHAPES: dict[str, Shape] = {"wraith": "dart", "zergling": "triangle", "hydralisk": "hexagon"}
"""The others are discs."""


def scene(env: World, slot: int) -> Scene:
    """The battle in `slot` as it is now."""
    units, counters, n = env.units[slot], env.counters[slot], env.n_ours
    alive = (units[lay.ALIVE] != 0) & (units[lay.HP] > 0)
    places = np.stack([units[lay.PX], units[lay.PY]], axis=1)
    health = np.clip(units[lay.HP] / env.types[units[lay.TYPE], lay.T_HP], 0, 1)
    angles = units[lay.HEADING] / 256
    targets = _targets(units, alive)
    # Ours come first among the looks, a type each, then theirs.
    looks = units[lay.TYPE] + len(env.scenario.unit_names) * (np.arange(env.n_units) >= n)
    return Scene(
        agents=places[:n],
        tasks=places[n:],
        agent_alive=alive[:n],
        task_alive=alive[n:],
        agent_looks=looks[:n],
        task_looks=looks[n:],
        agent_health=health[:n],
        task_health=health[n:],
        agent_angles=angles[:n],
        task_angles=angles[n:],
        agent_load=_incoming(env, units, targets)[:n],
        task_targets=np.where(targets[n:] < n, targets[n:], -1),
        shots=_shots(env, slot, targets),
        text=f"{counters[lay.N_OURS]} v {counters[lay.N_THEIRS]}, {counters[lay.FRAME] / lay.FRAMES_A_SECOND:.1f} s",
        stage=_stage(env),
    )


def _stage(env: World) -> Stage:
    looks = []
    for side, colour in (("ours", BLUE), ("theirs", RED)):
        for name, kind in zip(env.scenario.unit_names, env.types, strict=True):
            size = 0.7 * float(kind[[lay.T_LEFT, lay.T_RIGHT, lay.T_UP, lay.T_DOWN]].sum()) / 4
            looks.append(Look(f"{name}s, {side}", SHAPES.get(name, "disc"), colour, size, remains=True))
    return Stage(looks, grid=128.0)


def _targets(units: Int32s, alive: Bools) -> Ints:
    """[U] whom each unit attacks, -1 for nobody."""
    wanted = units[lay.ORDER_UNIT].astype(np.int64)
    attacks = alive & (units[lay.ORDER] == lay.ATTACK) & (wanted >= 0)
    return np.where(attacks & alive[np.maximum(wanted, 0)], wanted, -1)


def _incoming(env: World, units: Int32s, targets: Ints) -> Floats:
    """[U] the next hits of all who attack a unit, as a share of what it has left."""
    damage = np.zeros(env.n_units)
    for i in np.flatnonzero(targets >= 0):
        damage[targets[i]] += shown_damage(env.types, units[lay.TYPE, i], units[lay.TYPE, targets[i]])
    return damage / np.maximum([shown_hit_points(int(hp)) for hp in units[lay.HP]], 1)


def _shots(env: World, slot: int, targets: Ints) -> Floats:
    """[K, 3] the shots of the last decision: from whom, at whom, and when in it."""
    units, counters = env.units[slot], env.counters[slot]
    frames, now = env.settings.decision_frames, int(counters[lay.FRAME])
    aimed = targets.copy()
    # Whoever killed its target has none any more, but ours remember what they were sent to.
    sent = units[lay.PREVIOUS, : env.n_ours].astype(np.int64)
    aimed[: env.n_ours] = np.where((aimed[: env.n_ours] < 0) & (sent >= 0), sent + env.n_ours, aimed[: env.n_ours])
    # A shot in the air, or showing its hit, knows better than orders that may have changed since.
    for bullet in env.bullets[slot, : counters[lay.N_BULLETS]]:
        if bullet[lay.B_UNIT] >= 0:
            aimed[bullet[lay.B_SOURCE]] = bullet[lay.B_UNIT]
    fired = units[lay.FIRED_FRAME].astype(np.int64)
    lately = (fired >= 0) & (fired >= now - frames) & (fired < now + 1) & (aimed >= 0) & (now > 0)
    who = np.flatnonzero(lately)
    when = np.clip((fired[who] - (now - frames)) / frames, 0, 1)
    return np.stack([who, aimed[who], when], axis=1).astype(np.float64)


def put_units(env: World, slot: int, places: Floats) -> None:
    """Move the units of a battle that has just begun to `places` [U, 2], wherever a unit keeps where it is."""
    units, flies = env.units[slot], env.types[env.units[slot, lay.TYPE], lay.T_FLYER] != 0
    at = np.clip(np.round(places), LOW, HIGH).astype(np.int32)
    for axis, whole, exact in (
        (0, (lay.PX, lay.TARGET_X, lay.WAY_X, lay.FACE_X), (lay.X, lay.OLD_X)),
        (1, (lay.PY, lay.TARGET_Y, lay.WAY_Y, lay.FACE_Y), (lay.Y, lay.OLD_Y)),
    ):
        units[list(whole)] = at[:, axis]
        units[list(exact)] = 256 * at[:, axis]
    cells = np.minimum(at // lay.CELL_SIZE, lay.CELLS - 1) @ np.array([1, lay.CELLS])
    units[lay.CELL] = np.where(flies, cells, units[lay.CELL])
    env.field[slot] = np.bincount(cells[flies], minlength=lay.CELLS * lay.CELLS)
