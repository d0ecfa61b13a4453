"""Environments from strings: "rescue:2x4", "battle:w15v17", or "package.module:Class,option=value" for a custom one."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from muster import custom
from muster.envs.batch_checks import with_checks
from muster.envs.env import Env
from muster.envs.singles import BatchOfSingles, batched, check_attributes
from muster.envs.size import check_memory, size_of
from muster.envs.vector import BatchEnv
from muster.errors import InputError, MusterError, UnknownNameError, in_words
from muster.rng import episode_seeds
from muster.settings import NO_DEFAULT, Option, accept, options_of, read_options, to_text

OWN = "package.module:Class for your own"
EnvLike = str | type[Env] | type[BatchEnv]
"""An environment string, or the class of a custom environment."""
EXAMPLES = ("rescue:2x4", "battle:w15v17", "pursuit:4x2", "fleet:24,city=small")
OWN_USAGE = "package.module:Class[,option=value…]"
OWN_ABOUT = "your own, with options for its constructor (muster new NAME writes one to begin with)"


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
        "muster.envs.log",
        "log:FILE[,set=all|training|validation]",
        "decisions from a file, without a simulator; the metric is the agreement with the log's assignments",
    ),
}


def make(env: EnvLike, num_envs: int = 1, seed: int = 0, **options: Any) -> BatchEnv:
    """A batch of `num_envs` environments, reset to the first episodes of the set that `seed` names.

    `env` is an environment string, or a class of your own (an Env or a BatchEnv); `options` are further settings, as
    in the string: `make("rescue:2x4", grid=32)`, `make(Warehouse, n_agents=20)`.
    """
    if not isinstance(num_envs, (int, np.integer)) or num_envs < 1:
        raise InputError(f"a batch needs at least 1 environment, got {num_envs!r}")
    if isinstance(env, str):
        batch_env = _make(env, int(num_envs), options)
    elif isinstance(env, type):
        single = env.single if issubclass(env, BatchOfSingles) else env
        batch_env = _of_class(single, f"{single.__module__}:{single.__qualname__}", int(num_envs), options)
    else:
        raise InputError(
            f"an environment is a string such as 'rescue:2x4', or a class; got {env!r:.80}"
            + (f"; give the class, {type(env).__name__}, and its arguments as keywords" if isinstance(env, Env) else "")
        )
    batch_env.made_by = lambda count: make(env, count, **options)
    slots = np.arange(num_envs)
    batch_env.reset(slots, episode_seeds(seed, slots))
    return batch_env


def another(env: BatchEnv, num_envs: int) -> BatchEnv:
    """A new batch of the same environment, with `num_envs` slots."""
    return env.made_by(num_envs) if env.made_by else make(env.name, num_envs)


def text_of(env: EnvLike) -> str:
    """The environment string, as in a run's folder and a policy's file."""
    return full_env(custom.text_of("environment", env))


def full_env(env: str) -> str:
    """The environment string with package.module:Class in place of the name of an entry point."""
    return custom.full_name("environment", env, [*BUILT_IN, OWN])


def kind_of(env: str) -> str:
    """The family of an environment string, such as "rescue"; module and class of a custom one."""
    family = env.partition(":")[0]
    return family if family in BUILT_IN else env.partition(",")[0]


def baselines_of(env: str) -> list[str]:
    """The names of the baselines of an environment."""
    return list(_make(env, 1, {}).baselines())


def all_baselines() -> dict[str, str]:
    """{baseline: an environment string that has it} over the built-in environments."""
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
            check_memory(env, size.memory(n_envs), n_envs)
        return _built_in(family).from_options(text, n_envs)
    family, name, texts = custom.split("environment", env, [*BUILT_IN, OWN])
    kind = custom.find("environment", family, name, [*BUILT_IN, OWN])
    known = _options_of(kind, f"{family}:{name}")
    if texts and not known:
        raise InputError(f"no option {texts[0]!r}: the constructor of {family}:{name} takes no arguments")
    values = read_options(known, texts, f"option of {family}:{name}")
    for twice in values.keys() & options.keys():
        raise InputError(f"{twice} is given in {env!r} and as a keyword")
    return _of_class(kind, f"{family}:{name}", n_envs, values | options)


def _built_in(family: str) -> Any:
    module = BUILT_IN[family].module
    try:
        return import_module(module)
    except ModuleNotFoundError as missing:
        if missing.name != module:
            raise
        raise MusterError(f"this installation of muster has no {family} environments ({module} is missing)") from None


def _options_of(kind: Any, name: str) -> dict[str, Option]:
    """Options of an environment class: its constructor's arguments but for the number of environments."""
    if not _is_env(kind):
        module = name.partition(":")[0]
        found = vars(sys.modules[module]) if module in sys.modules else {}
        own = [each for each, entry in found.items() if _is_env(entry) and entry.__module__ == module]
        instead = f"; {module} has {', '.join(own)}" if own else ""
        raise InputError(f"{name} is not a subclass of muster.Env or muster.BatchEnv{instead}")
    return {each: option for each, option in options_of(kind).items() if each != "n_envs"}


def _is_env(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, (Env, BatchEnv))


def _of_class(kind: Any, name: str, n_envs: int, options: dict[str, Any]) -> BatchEnv:
    """A batch of a custom environment, with options checked by the constructor's signature."""
    known = _options_of(kind, name)
    for option in options:
        if option not in known:
            raise UnknownNameError("option", option, known, f"of {name}")
    missing = [each for each, option in known.items() if option.default is NO_DEFAULT and each not in options]
    if missing:
        raise InputError(f"{name} needs {', '.join(missing)}; write {name},{missing[0]}=…")
    options = {option: accept(known[option].hint, value, option, name) for option, value in options.items()}
    kind = batched(kind) if issubclass(kind, Env) else with_checks(kind)
    try:
        batch_env: BatchEnv = kind(n_envs=n_envs, **options)
    except MusterError:
        raise
    except Exception as error:
        raise InputError(f"{name} cannot be made: {in_words(error)}") from error
    check_attributes(batch_env, name)
    if batch_env.n_envs != n_envs:
        raise InputError(f"{name} must have n_envs as its constructor was given it, {n_envs}; got {batch_env.n_envs}")
    # Compared as text, since values of a custom class need not define equality.
    changed = {
        option: options[option]
        for option in known
        if option in options and to_text(options[option]) != to_text(known[option].default)
    }
    batch_env.name = ",".join([name, *written(changed)])
    return batch_env


def written(options: dict[str, Any]) -> list[str]:
    """Options as "name=value", the form of an environment string."""
    return [f"{name}={to_text(value)}" for name, value in options.items()]
