"""Battles of StarCraft: Brood War units, re-created (docs/environments/battle.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from muster.settings import options_of, read_options

if TYPE_CHECKING:
    from muster.envs.battle.env import BattleEnv


def from_options(text: str, n_envs: int) -> BattleEnv:
    """The environment that the string after `battle:` describes: "w15v17" or "w15v17,latency=3,planes=true"."""
    from muster.envs.battle.env import BattleEnv
    from muster.envs.battle.settings import BattleOptions, BattleSettings

    name, *rest = [part.strip() for part in text.split(",")]
    engine, shown = options_of(BattleSettings), options_of(BattleOptions)
    given = read_options(engine | shown, rest, "battle option")
    return BattleEnv(
        name,
        n_envs,
        BattleSettings(**{key: value for key, value in given.items() if key in engine}),
        BattleOptions(**{key: value for key, value in given.items() if key in shown}),
        name=f"battle:{text}",
    )
