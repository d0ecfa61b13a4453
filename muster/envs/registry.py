"""Environment strings: "rescue:2x4", "battle:w15v17", or "package.module:Class" for a user's own."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from muster.envs.base import BatchEnv
from muster.errors import InputError, MusterError, UnknownNameError
from muster.rng import episode_seeds


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """A world that comes with muster; its module has `from_options(text, n_envs)`."""

    module: str
    usage: str
    about: str


BUILT_IN = {
    "rescue": BuiltIn(
        "muster.envs.rescue",
        "rescue:AGENTSxTASKS[,setting=value…]",
        "ambulances on a grid pick up victims, such as rescue:2x4 or rescue:20x40,grid=32",
    ),
    "battle": BuiltIn(
        "muster.envs.battle",
        "battle:SCENARIO[,setting=value…]",
        "units choose whom to attack, such as battle:w15v17 or battle:m10v10",
    ),
}
EXAMPLES = ("rescue:2x4", "battle:w15v17")
OWN_USAGE = "package.module:Class"
OWN_ABOUT = "your own: a subclass of muster.envs.single.Env or muster.envs.base.BatchEnv"


def make(env: str, num_envs: int = 1, seed: int = 0) -> BatchEnv:
    """`num_envs` episodes of the world that `env` names, begun from the first episode seeds of `seed`."""
    if num_envs < 1:
        raise InputError(f"a batch needs at least 1 environment, got {num_envs}")
    world = _make(env, num_envs)
    slots = np.arange(num_envs)
    world.start(slots, episode_seeds(seed, slots))
    return world


def _make(env: str, n_envs: int) -> BatchEnv:
    family, colon, options = env.partition(":")
    if family in BUILT_IN:
        if not options:
            raise InputError(f"{env!r} does not say which {family}; write {BUILT_IN[family].usage}")
        return _built_in(family).from_options(options, n_envs)
    if not colon or not options.isidentifier() or not all(part.isidentifier() for part in family.split(".")):
        raise UnknownNameError("environment", family, BUILT_IN)
    return _own(family, options, n_envs)


def _built_in(family: str) -> Any:
    module = BUILT_IN[family].module
    try:
        return import_module(module)
    except ModuleNotFoundError as missing:
        if missing.name != module:
            raise
        raise MusterError(f"this installation of muster has no {family} environments ({module} is missing)") from None


def _own(module: str, name: str, n_envs: int) -> BatchEnv:
    from muster.envs.single import Env
    from muster.envs.singles import batched

    try:
        found = getattr(import_module(module), name)
    except ModuleNotFoundError as missing:
        if missing.name != module and not module.startswith(f"{missing.name}."):
            raise
        if "." not in module:
            raise UnknownNameError("environment or module", module, BUILT_IN) from None
        raise InputError(f"no module {module!r} can be imported from here") from None
    except AttributeError:
        raise UnknownNameError(f"class in {module}", name, vars(import_module(module))) from None
    if isinstance(found, type) and issubclass(found, BatchEnv):
        world: BatchEnv = found(n_envs=n_envs)  # type: ignore[call-arg]
    elif isinstance(found, type) and issubclass(found, Env):
        world = batched(found)(n_envs)
    else:
        raise InputError(f"{module}:{name} is not a subclass of muster.envs.single.Env or muster.envs.base.BatchEnv")
    world.name = f"{module}:{name}"
    return world
