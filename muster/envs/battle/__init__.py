"""Battles of StarCraft: Brood War units, re-created (docs/environments/battle.md)."""

from muster.envs.battle.env import BattleEnv, from_options
from muster.envs.battle.settings import BattleSettings

__all__ = ["BattleEnv", "BattleSettings", "from_options"]
