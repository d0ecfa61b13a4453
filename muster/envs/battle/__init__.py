"""Battles of StarCraft: Brood War units, re-created (docs/worlds/battle.md)."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from muster.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    from muster.envs.battle.env import BattleEnv


def from_options(text: str, n_envs: int) -> BattleEnv:
    """The environment that the string after `battle:` describes: "w15v17" or "w15v17,latency=3,planes=true"."""
    from muster.envs.battle.env import BattleEnv, BattleOptions
    from muster.envs.battle.settings import BattleSettings

    name, *rest = [part.strip() for part in text.split(",")]
    kinds: dict[type, dict[str, Any]] = {
        owner: {field.name: field.type for field in fields(owner)} for owner in (BattleSettings, BattleOptions)
    }
    given: dict[type, dict[str, Any]] = {BattleSettings: {}, BattleOptions: {}}
    for part in rest:
        key, equals, value = part.partition("=")
        if not equals:
            raise InputError(f"an option is key=value, got {part!r} in 'battle:{text}'")
        owner = next((cls for cls, names in kinds.items() if key in names), None)
        if owner is None:
            raise UnknownNameError("battle option", key, [*kinds[BattleSettings], *kinds[BattleOptions]])
        given[owner][key] = _value(key, value, kinds[owner][key] == "bool")
    return BattleEnv(
        name,
        n_envs,
        BattleSettings(**given[BattleSettings]),
        BattleOptions(**given[BattleOptions]),
        name=f"battle:{text}",
    )


def _value(key: str, text: str, is_flag: bool) -> bool | int:
    if is_flag:
        if text.lower() in ("true", "1", "yes"):
            return True
        if text.lower() in ("false", "0", "no"):
            return False
        raise InputError(f"{key} must be true or false, got {text!r}")
    try:
        return int(text)
    except ValueError:
        raise InputError(f"{key} must be a whole number, got {text!r}") from None
