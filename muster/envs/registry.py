"""Environment strings: "rescue:2x4", "battle:w15v17", or "package.module:Class,option=value" for a user's own."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from muster import custom
from muster.envs.env import Env
from muster.envs.grid import GridSettings
from muster.envs.singles import BatchOfSingles, batched
from muster.envs.vector import BatchEnv
from muster.errors import InputError, MusterError, UnknownNameError, in_words
from muster.rng import episode_seeds
from muster.settings import NO_DEFAULT, Option, accept, options_of, read_options, to_text

OWN = "package.module:Class for your own"
EnvLike = str | type[Env] | type[BatchEnv]
"""An environment string, or a class of one's own."""
EXAMPLES = ("rescue:2x4", "battle:w15v17", "pursuit:4x2", "fleet:24,city=small")
OWN_USAGE = "package.module:Class[,option=value…]"
OWN_ABOUT = "your own, with options for its constructor (muster new NAME writes one to begin with)"
SHARE = 0.5
"""Of the machine's memory that one batch of environments may take."""


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """An environment that comes with muster; its module has `from_options(text, n_envs)`."""

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
    "pursuit": BuiltIn(
        "muster.envs.pursuit",
        "pursuit:PURSUERSxEVADERS[,setting=value…]",
        "pursuers gather round evaders that flee, such as pursuit:4x2 or pursuit:40x20",
    ),
    "fleet": BuiltIn(
        "muster.envs.fleet",
        "fleet:VEHICLES,city=small|large or fleet:VEHICLES,trips=FOLDER,set=training|validation|test",
        "vehicles take the minute's requests, such as fleet:24,city=small; or a folder of recorded trips",
    ),
    "log": BuiltIn(
        "muster.envs.logs",
        "log:FILE[,set=all|training|validation]",
        "situations and decisions from a file, without a simulator: worth is agreeing with what was done",
    ),
}


def make(env: EnvLike, num_envs: int = 1, seed: int = 0, **options: Any) -> BatchEnv:
    """`num_envs` episodes of an environment, begun from the first episode seeds of `seed`.

    `env` is an environment string, or a class of your own (an Env or a BatchEnv); `options` are further settings, as
    they could stand in the string: `make("rescue:2x4", grid=32)`, `make(Warehouse, n_agents=20)`.
    """
    if not isinstance(num_envs, (int, np.integer)) or num_envs < 1:
        raise InputError(f"a batch needs at least 1 environment, got {num_envs!r}")
    if isinstance(env, str):
        made = _make(env, int(num_envs), options)
    elif isinstance(env, type):
        single = env.single if issubclass(env, BatchOfSingles) else env
        made = _of_class(single, f"{single.__module__}:{single.__qualname__}", int(num_envs), options)
    else:
        raise InputError(f"make takes an environment string such as 'rescue:2x4', or a class; got {env!r}")
    made.made_by = lambda count: make(env, count, **options)
    slots = np.arange(num_envs)
    made.reset(slots, episode_seeds(seed, slots))
    return made


def another(env: BatchEnv, num_envs: int) -> BatchEnv:
    """Another batch of the same environment, of another size."""
    return env.made_by(num_envs) if env.made_by else make(env.name, num_envs)


def text_of(env: EnvLike) -> str:
    """The environment string that makes this environment: what a run's folder and a policy's file keep of it."""
    return full_env(custom.text_of("environment", env))


def full_env(env: str) -> str:
    """The environment string with package.module:Class in place of the name of an entry point."""
    return custom.full_name("environment", env, [*BUILT_IN, OWN])


def kind_of(env: str) -> str:
    """What environments of one policy have in common: "rescue", or module and class of a custom one."""
    family = env.partition(":")[0]
    return family if family in BUILT_IN else env.partition(",")[0]


def baselines_of(env: str) -> list[str]:
    """The names of the baselines of an environment."""
    return list(_make(env, 1, {}).baselines())


def all_baselines() -> dict[str, str]:
    """Every baseline of the environments that come with muster, with an environment that has it."""
    return {name: example for example in reversed(EXAMPLES) for name in _make(example, 1, {}).baselines()}


def _make(env: str, n_envs: int, options: dict[str, Any]) -> BatchEnv:
    env = full_env(env)
    family, _, rest = env.partition(":")
    if family in BUILT_IN:
        if not rest:
            raise InputError(f"{env!r} does not say which {family}; write {BUILT_IN[family].usage}")
        text = ",".join([rest, *written(options)])
        size = size_of(family, text)
        if size is not None:
            check_memory(env, size, n_envs)
        return _built_in(family).from_options(text, n_envs)
    family, name, texts = custom.split("environment", env, [*BUILT_IN, OWN])
    own = custom.find("environment", family, name, [*BUILT_IN, OWN])
    known = _options_of(own, f"{family}:{name}")
    if texts and not known:
        raise InputError(f"no option {texts[0]!r}: the constructor of {family}:{name} takes no arguments")
    read = read_options(known, texts, f"option of {family}:{name}")
    for twice in read.keys() & options.keys():
        raise InputError(f"{twice} is given in {env!r} and as a keyword")
    return _of_class(own, f"{family}:{name}", n_envs, read | options)


def _built_in(family: str) -> Any:
    module = BUILT_IN[family].module
    try:
        return import_module(module)
    except ModuleNotFoundError as missing:
        if missing.name != module:
            raise
        raise MusterError(f"this installation of muster has no {family} environments ({module} is missing)") from None


def _is_env(found: object) -> bool:
    return isinstance(found, type) and issubclass(found, (Env, BatchEnv))


def _options_of(own: Any, name: str) -> dict[str, Option]:
    if not _is_env(own):
        raise InputError(f"{name} is not a subclass of muster.Env or muster.BatchEnv")
    return {option: found for option, found in options_of(own).items() if option != "n_envs"}


def _of_class(own: Any, name: str, n_envs: int, options: dict[str, Any]) -> BatchEnv:
    """A batch of a user's class, its options checked by the constructor's signature."""
    known = _options_of(own, name)
    for option in options:
        if option not in known:
            raise UnknownNameError("option", option, known, f"of {name}")
    missing = [option for option, found in known.items() if found.default is NO_DEFAULT and option not in options]
    if missing:
        raise InputError(f"{name} needs {', '.join(missing)}; write {name},{missing[0]}=…")
    options = {option: accept(known[option].hint, value, option, name) for option, value in options.items()}
    if issubclass(own, Env):
        own = batched(own)
    try:
        made: BatchEnv = own(n_envs=n_envs, **options)
    except MusterError:
        raise
    except Exception as error:
        raise InputError(f"{name} cannot be made: {in_words(error)}") from error
    given = {option: options[option] for option in known if option in options}
    # As text, since what a user's class takes need not know what "equal" is.
    changed = {option: value for option, value in given.items() if to_text(value) != to_text(known[option].default)}
    made.name = ",".join([name, *written(changed)])
    return made


def written(options: dict[str, Any]) -> list[str]:
    """Options as they stand in an environment string."""
    return [f"{name}={to_text(value)}" for name, value in options.items()]


class Size(NamedTuple):
    """Agents, tasks and cells of an environment, from its settings."""

    agents: int
    tasks: int
    cells: int
    """Of a grid; 0 without one."""
    steps: int
    """The step limit; 0 where it is not a setting."""

    def memory(self, num_envs: int) -> int:
        """Bytes that a batch takes, roughly: cells and pairs, at what planes and pair features take of each."""
        pairs = (self.agents + self.tasks) * self.tasks
        return num_envs * (16 * self.cells + 64 * pairs)


def size_of(family: str, text: str) -> Size | None:
    """The size of a built-in environment from what follows "FAMILY:"; None where settings do not say."""
    if family in ("rescue", "pursuit"):
        grid = grid_settings(family).from_text(text)
        return Size(grid.agents, grid.tasks, grid.cells, grid.step_limit)
    if family == "fleet":
        from muster.envs.fleet.settings import FleetSettings

        fleet = FleetSettings.from_text(text)
        return Size(fleet.vehicles, fleet.limit or fleet.vehicles, 0, fleet.minutes)
    counts = re.match(r"[a-z]+(\d{1,9})v(\d{1,9})", text) if family == "battle" else None
    return Size(int(counts[1]), int(counts[2]), 0, 0) if counts else None


def grid_settings(family: str) -> type[GridSettings]:
    """The settings class of rescue or pursuit."""
    from muster.envs.pursuit.settings import PursuitSettings
    from muster.envs.rescue.settings import RescueSettings

    return RescueSettings if family == "rescue" else PursuitSettings


def check_memory(name: str, size: Size, num_envs: int) -> None:
    """Refuse a batch that would not fit into this machine's memory."""
    needed, there = size.memory(num_envs), os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > SHARE * there:
        raise InputError(
            f"{num_envs} x {name[:80]} would take about {needed / 2**30:.3g} GB, and this machine has "
            f"{there / 2**30:.3g} GB; choose a smaller grid, fewer agents and tasks, or fewer environments"
        )


def resized(env: str, n: int, m: int) -> str:
    """The same environment with so many agents and tasks."""
    if min(n, m) < 1:
        raise InputError(f"a situation needs at least one agent and one task, got {n} and {m}")
    family, _, rest = env.partition(":")
    first, *options = rest.split(",")
    if family == "pursuit" and not any(option.strip().startswith("grid=") for option in options):
        # Its grid grows with the numbers; here the ground stays and those on it change.
        options.append(f"grid={grid_settings(family).from_text(rest).shape[0]}")
    if family in ("rescue", "pursuit"):
        return ",".join([f"{family}:{n}x{m}", *options])
    if family == "battle":
        units = re.sub(r"\d+v\d+$", "", first)
        # Some families have so many of each of two kinds.
        per = 2 if units == "zh" else 1
        if n % per or m % per:
            raise InputError(f"{units} battles have as many of both kinds of unit: even numbers, got {n} and {m}")
        return ",".join([f"battle:{units}{n // per}v{m // per}", *options])
    kept = [option for option in options if option.partition("=")[0] not in ("limit", "n_agents", "n_tasks")]
    if family == "fleet":
        return ",".join([f"fleet:{n}", *kept, f"limit={m}"])
    return ",".join([f"{family}:{first}", *kept, f"n_agents={n}", f"n_tasks={m}"])
