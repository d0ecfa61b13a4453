"""Custom environments, models, inference procedures and learners, by name.

    package.module:Name[,option=value…]

or the name of an entry point (GROUPS), which stands for such a text. Options are keyword arguments of the class. Runs
and policy files keep the text; a module is imported when the part is used, and not before.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from inspect import signature
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from muster.errors import InputError, MusterError, UnknownNameError, in_words
from muster.settings import NO_DEFAULT, from_text, options_of, read_options, to_text

GROUPS = {
    "environment": "muster.envs",
    "model": "muster.models",
    "inference": "muster.inference",
    "learner": "muster.learners",
}
"""Group of entry points, by kind of part."""


def entries(kind: str) -> dict[str, str]:
    """The entry points of a kind: name -> package.module:Name."""
    from importlib.metadata import entry_points  # slow to import, and rarely needed

    return {entry.name: entry.value for entry in entry_points(group=GROUPS[kind])}


def is_custom(text: str) -> bool:
    """Whether a text is package.module:Name rather than the name of a built-in part; not for environments."""
    return ":" in text


def expanded(kind: str, text: str) -> str:
    """The text with the name of an entry point, if it begins with one, replaced by package.module:Name."""
    name, comma, options = text.partition(",")
    found = {} if ":" in name else entries(kind)
    return f"{found[name]}{comma}{options}" if name in found else text


def full_name(kind: str, text: str, known: Iterable[str], word: str = "") -> str:
    """As `expanded`; UnknownNameError unless the text is package.module:Name or one of the `known` names."""
    name = text.partition(",")[0]
    if name in known:
        return text
    text = expanded(kind, text)
    if ":" not in text.partition(",")[0]:
        raise _unknown(word or kind, name, [*known, *entries(kind)])
    return text


def _unknown(kind: str, name: str, known: Iterable[str]) -> InputError:
    """Error for what is neither a known name nor package.module:Name; tells of the classes, if it is a Python file."""
    file = Path(f"{name.removesuffix('.py')}.py")
    if not name or not file.is_file():
        return UnknownNameError(kind, name, known)
    if file.is_absolute() or ".." in file.parts:
        return InputError(f"modules are imported from the current folder; go to that of {file}, write {file.stem}:NAME")
    if not all(part.isidentifier() for part in file.with_suffix("").parts):
        fit = re.sub(r"\W+", "_", file.stem)
        return InputError(
            f"{name!r} cannot be imported, as the name of a module is a word; rename {file}, such as {fit}.py"
        )
    module = ".".join(file.with_suffix("").parts)
    with suppress(OSError, SyntaxError, ValueError):
        body = ast.parse(file.read_text()).body
        found = [f"{module}:{entry.name}" for entry in body if isinstance(entry, ast.ClassDef) and entry.bases]
        if found:
            return InputError(f"no {kind} {name!r}; in {file} there is {', '.join(found)}")
    return InputError(f"no {kind} {name!r}; a class NAME in {file} is {module}:NAME")


def text_of(kind: str, given: Any, filled: Iterable[str] = ()) -> str:
    """The text package.module:Name,option=value… of a class, function or object; a text is returned as it is.

    An object keeps its constructor's arguments as attributes of the same names, but for those that are `filled` in.
    """
    if isinstance(given, str):
        return given
    named = given if isinstance(given, (type, FunctionType)) else type(given)
    if named.__module__ in ("builtins", "functools"):
        raise InputError(
            f"a custom {kind} is a class, a function or an object of a class of your own, or its name "
            f"'package.module:Name'; got {given!r:.80}"
        )
    where = named.__qualname__.rpartition(".")[0]
    if named.__module__ == "__main__" or not named.__qualname__.isidentifier():
        where = "the program that runs" if named.__module__ == "__main__" else where
        raise InputError(
            f"a run and its policies keep their {kind} by name, and no other program can import {named.__name__} from "
            f"{where}; put it into a file of its own, such as parts.py, and give 'parts:{_as_name(named.__name__)}'"
        )
    text = f"{named.__module__}:{named.__qualname__}"
    if named is given:
        return text
    if any(one.kind is one.VAR_POSITIONAL for one in signature(named).parameters.values()):
        raise InputError(
            f"a run and its policies keep a {kind} as its class and arguments, and those of {text} have no names; "
            "write a class whose constructor makes it, and give that"
        )
    options = []
    for name, option in options_of(named).items():
        if name not in filled:
            value = getattr(given, name, NO_DEFAULT)
            if value is NO_DEFAULT or "," in to_text(value) or from_text(option.hint, to_text(value), name) != value:
                raise InputError(
                    f"a run and its policies keep a {kind} as its class and arguments, and {text} has no attribute "
                    f"{name!r} with a plain value; give the class, or keep the argument as an attribute of that name"
                )
            options += [f"{name}={to_text(value)}"]
    return ",".join([text, *options])


def _as_name(name: str) -> str:
    return name if name.isidentifier() else "NAME"


def split(kind: str, text: str, known: Iterable[str] = ()) -> tuple[str, str, list[str]]:
    """Module, name and texts of the options of "package.module:Name,option=value"; UnknownNameError for other texts."""
    module, colon, rest = text.partition(":")
    name, *options = [part.strip() for part in rest.split(",")]
    if name[:1].isidentifier() and not name.isidentifier():
        raise InputError(f"{name!r} is no name of a class; options follow commas, as in {module}:NAME,option=value")
    if not colon or not name.isidentifier() or not all(part.isidentifier() for part in module.split(".")):
        raise _unknown(kind, module, known)
    return module, name, options


def find(kind: str, module: str, name: str, known: Iterable[str] = ()) -> Any:
    """Import a user's module and return its attribute of that name."""
    try:
        return getattr(import_module(module), name)
    except ModuleNotFoundError as missing:
        if missing.name != module and not module.startswith(f"{missing.name}."):
            raise InputError(f"{module} needs the module {missing.name!r}, which is not installed") from None
        if "." not in module:
            raise UnknownNameError(f"{kind} or module", module, known) from None
        file = module.removesuffix(".py")
        hint = f"; a class in {module} is {file}:{name}" if file != module else ""
        raise InputError(f"no module {module!r} can be imported from here{hint}") from None
    except AttributeError:
        found = sys.modules.get(module)
        if found is None:
            raise
        names = _names(found)
        raise UnknownNameError("class", name, names, f"in {module}{'' if names else ', which is empty'}") from None
    except MusterError:
        raise
    except Exception as error:
        raise InputError(f"{module} cannot be imported: {in_words(error)}") from error


def _names(module: ModuleType) -> list[str]:
    """The classes that a module defines; or all its names, where there are none."""
    own = [name for name, found in vars(module).items() if getattr(found, "__module__", "") == module.__name__]
    classes = [name for name in own if isinstance(getattr(module, name), type)]
    return classes or [name for name in vars(module) if not name.startswith("_")]


@contextmanager
def naming(part: str, error_kind: type[MusterError] = InputError) -> Iterator[None]:
    """Context in which an error of a custom part's own code becomes one of muster's, a sentence that names the part."""
    try:
        yield
    except (MusterError, MemoryError):
        raise
    except Exception as error:
        raise error_kind(f"{part} failed: {in_words(error)}") from error


def construct(kind: str, text: str, filled: Mapping[str, Any] = {}) -> Any:
    """The object of a class, given the text's options and those of `filled` that its constructor takes; what is no
    class is found as it is.
    """
    module, name, texts = split(kind, text)
    own, full = find(kind, module, name), f"{module}:{name}"
    if not isinstance(own, type):
        if texts:
            raise InputError(f"{full} is no class and takes no options, got {texts[0]!r}")
        return own
    known = options_of(own)
    options = {option: found for option, found in known.items() if option not in filled}
    given = read_options(options, texts, f"option of {full}") | {
        name: value for name, value in filled.items() if name in known
    }
    missing = [name for name, option in known.items() if option.default is NO_DEFAULT and name not in given]
    if missing:
        raise InputError(f"{full} needs {', '.join(missing)}; write {full},{missing[0]}=…")
    try:
        return own(**given)
    except MusterError:
        raise
    except Exception as error:
        raise InputError(f"{full} cannot be made: {in_words(error)}") from error
