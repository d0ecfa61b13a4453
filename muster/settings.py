"""Settings: values from text, TOML or keywords, checked against type annotations.

A settings class is a frozen dataclass whose `__post_init__` calls `check_fields`. Annotations may be int, float, bool,
str, Literal, tuple, None, another settings class, and bounds:

    envs: Annotated[int, AtLeast(1)] = 256

Options of a custom class are read in the same way, typed by the signature of its constructor.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
import numbers
import tomllib
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from muster.errors import InputError, UnknownNameError
from muster.storage import check_regular

Settings = TypeVar("Settings")
NO_DEFAULT: Any = dataclasses.MISSING


@dataclass(frozen=True, slots=True)
class Between:
    """A number from `low` to `high`, both included."""

    low: float
    high: float

    def holds(self, value: float) -> bool:
        """Whether the number is within the bound."""
        return self.low <= value <= self.high

    def __str__(self) -> str:
        return f"between {self.low} and {self.high}"


@dataclass(frozen=True, slots=True)
class AtLeast:
    """A number of at least `low`."""

    low: float

    def holds(self, value: float) -> bool:
        """Whether the number is within the bound."""
        return value >= self.low

    def __str__(self) -> str:
        # typing takes AtLeast(0) and AtLeast(0.0) for one and keeps whichever came first: they must read the same.
        return f"at least {self.low:g}"


@dataclass(frozen=True, slots=True)
class Positive:
    """A number above 0."""

    def holds(self, value: float) -> bool:
        """Whether the number is within the bound."""
        return value > 0

    def __str__(self) -> str:
        return "positive"


Bound = Between | AtLeast | Positive


@dataclass(frozen=True, slots=True)
class Option:
    """Annotation and default of a setting."""

    hint: Any
    default: Any = NO_DEFAULT
    """NO_DEFAULT: the setting is required."""


def check_fields(settings: Any) -> None:
    """Check every field of a dataclass against its annotation; for `__post_init__`.

    Equivalent values are converted to the annotated type: a list to a tuple, a mapping to the nested settings class, a
    whole number to a float.
    """
    for name, option in options_of(settings.__class__).items():
        value = getattr(settings, name)
        converted = accept(option.hint, value, name)
        if converted is not value:
            object.__setattr__(settings, name, converted)


@lru_cache(maxsize=256)
def options_of(kind: Any) -> dict[str, Option]:
    """{name: Option} of the fields of a dataclass, or of the keyword arguments of a class or function."""
    if dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind, include_extras=True)
        return {field.name: Option(hints[field.name], _default(field)) for field in dataclasses.fields(kind)}
    function = inspect.getattr_static(kind, "__init__") if inspect.isclass(kind) else kind
    if function is object.__init__:
        return {}
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except (NameError, TypeError):  # names that only a type checker imports: types follow from defaults
        hints = {}
    options = {}
    for name, parameter in inspect.signature(kind).parameters.items():
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            default = NO_DEFAULT if parameter.default is parameter.empty else parameter.default
            plain = default is not NO_DEFAULT and isinstance(default, (bool, int, float, str))
            options[name] = Option(hints.get(name, type(default) if plain else Any), default)
    return options


def refuse_unknown(kind: type, names: Iterable[str], what: str = "setting") -> None:
    """Raise UnknownNameError for a name that is no field of a dataclass."""
    known = [field.name for field in dataclasses.fields(kind)]
    for name in names:
        if name not in known:
            raise UnknownNameError(what, name, known)


def _default(field: dataclasses.Field[Any]) -> Any:
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()


def read_options(
    kind: Callable[..., Any] | Mapping[str, Option], texts: Sequence[str], what: str, skip: Sequence[str] = ()
) -> dict[str, Any]:
    """Keyword arguments for `kind` from texts "name=value", typed by its annotations.

    `what` names an option in errors, such as "rescue setting"; names in `skip` are unknown.
    """
    known = kind if isinstance(kind, Mapping) else options_of(kind)
    options = {name: option for name, option in known.items() if name not in skip}
    values: dict[str, Any] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if name not in options:
            raise UnknownNameError(what, name, options)
        if not equals:
            raise InputError(f"a {what} reads name=value, got {text.strip()!r}")
        if name in values:
            raise InputError(f"{name} is given twice; give each {what} once")
        values[name] = from_text(options[name].hint, value, name)
    return values


def read_table(kind: Callable[..., Any], table: Mapping[str, Any], where: str, prefix: str = "") -> dict[str, Any]:
    """Keyword arguments for `kind` from plain values, of a TOML file or keywords; nested tables become settings.

    `where` names the source in errors; `prefix` is the dotted name of a nested table, "a2c.".
    """
    options, place = options_of(kind), f" in {where}" if where else ""
    values: dict[str, Any] = {}
    for name, value in table.items():
        if name not in options:
            raise UnknownNameError("setting", f"{prefix}{name}", [prefix + known for known in options], place.strip())
        values[name] = accept(options[name].hint, value, f"{prefix}{name}", where)
    missing = [name for name, option in options.items() if option.default is NO_DEFAULT and name not in values]
    if missing:
        raise InputError(f"{where or prefix.rstrip('.')} lacks {', '.join(prefix + name for name in missing)}")
    return values


def build(kind: type[Settings], table: Mapping[str, Any], where: str) -> Settings:
    """A settings object from plain values; raises InputError that names the wrong one."""
    return kind(**read_table(kind, table, where))


def from_toml(kind: type[Settings], path: str | Path) -> Settings:
    """Settings from a TOML file."""
    return build(kind, read_toml(path), str(path))


def read_toml(path: str | Path) -> dict[str, Any]:
    """The content of a TOML file."""
    check_regular(Path(path))
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path} is not TOML: {error}") from None


def to_toml(settings: Any) -> str:
    """The settings as TOML; None is left out."""
    import tomlkit

    return tomlkit.dumps(as_table(settings))


def as_table(settings: Any) -> dict[str, Any]:
    """The settings as nested plain values, for `build`; None is left out."""
    table: dict[str, Any] = {}
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        if value is not None:
            nested = dataclasses.is_dataclass(value) and not isinstance(value, type)
            table[field.name] = as_table(value) if nested else value
    return table


def overlaid(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """A nested table with the values of `above` in place of those of `below`."""
    merged = dict(below)
    for name, value in above.items():
        both = isinstance(value, Mapping) and isinstance(merged.get(name), Mapping)
        merged[name] = overlaid(merged[name], value) if both else value
    return merged


def differences(left: Any, right: Any) -> list[tuple[str, Any, Any]]:
    """(dotted name, value on the left, value on the right) of each setting that differs."""
    unequal: list[tuple[str, Any, Any]] = []
    for field in dataclasses.fields(left):
        a, b = getattr(left, field.name), getattr(right, field.name)
        if dataclasses.is_dataclass(a) and type(a) is type(b):
            unequal += [(f"{field.name}.{name}", *values) for name, *values in differences(a, b)]
        elif a != b:
            unequal.append((field.name, a, b))
    return unequal


def accept(hint: Any, value: Any, name: str, where: str = "") -> Any:
    """The value converted to the annotated type; raises InputError if it has another type or is out of bounds."""
    plain, bounds = _split(hint)
    converted = _convert(plain, value, name, where)
    place = f" in {where}" if where else ""
    if converted is NO_DEFAULT:
        choices = _choices(plain)
        if choices and isinstance(value, str):
            raise UnknownNameError(f"{name}{place}", value, choices)
        raise InputError(f"{name}{place} must be {expected(plain)}, got {value!r}")
    for bound in bounds:
        # Bounds are for numbers only; None or "auto" has no bound.
        if _is_number(converted, numbers.Real) and not (bound.holds(converted) and math.isfinite(converted)):
            raise InputError(f"{name}{place} must be {bound}{' and finite' * math.isinf(converted)}, got {value}")
    return converted


def from_text(hint: Any, text: str, name: str) -> Any:
    """The value of a text under the annotation; raises InputError if it cannot be read."""
    plain, _ = _split(hint)
    value = _parse(plain, text)
    if value is NO_DEFAULT:
        choices = _choices(plain)
        if choices:
            raise UnknownNameError(name, text, choices)
        raise InputError(f"{name} must be {expected(plain)}, got {text!r}")
    return accept(hint, value, name)


def to_text(value: Any) -> str:
    """The text of a value, for `from_text`."""
    if isinstance(value, (tuple, list)):
        return ("+" if any(isinstance(entry, str) for entry in value) else "x").join(map(to_text, value))
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def expected(hint: Any) -> str:
    """The values that an annotation allows, in words."""
    hint, _ = _split(hint)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return " or ".join(map(expected, arguments))
    if origin is Literal:
        return "one of " * (len(arguments) > 1) + ", ".join(map(str, arguments))
    if origin in (tuple, list):
        inner = {int: "whole numbers", float: "numbers"}.get(_split(arguments[0])[0], "values")
        count = f"{len(arguments)} " if origin is tuple and Ellipsis not in arguments else ""
        return f"{count}{inner} such as {'x'.join('234'[: max(2, len(arguments))]) if inner != 'values' else 'a+b'}"
    words = {int: "a whole number", float: "a number", bool: "true or false", str: "text", type(None): "none"}
    if dataclasses.is_dataclass(hint):
        return f"a table of settings ({', '.join(options_of(typing.cast(Any, hint)))})"
    return words.get(hint, getattr(hint, "__name__", str(hint)))


def _split(hint: Any) -> tuple[Any, list[Bound]]:
    """An annotation without its bounds, and the bounds."""
    if get_origin(hint) is not Annotated:
        return hint, []
    plain, *extra = get_args(hint)
    return plain, [entry for entry in extra if isinstance(entry, Bound)]


def _choices(hint: Any) -> list[str]:
    if get_origin(hint) is Literal:
        return [str(choice) for choice in get_args(hint)]
    if get_origin(hint) in (Union, types.UnionType):
        parts = [_choices(part) for part in get_args(hint) if part is not type(None)]
        return [choice for part in parts for choice in part] if all(parts) else []
    return []


def _convert(hint: Any, value: Any, name: str, where: str) -> Any:
    """The value converted to the annotated type; NO_DEFAULT if it has another type."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any or isinstance(hint, (str, TypeVar)):
        return value
    if origin is Annotated:
        return accept(hint, value, name, where)
    if origin in (Union, types.UnionType):
        candidates = [_convert(part, value, name, where) for part in arguments]
        # An alternative that keeps the value comes before those that convert it.
        candidates.sort(key=lambda candidate: candidate is not value)
        return next((candidate for candidate in candidates if candidate is not NO_DEFAULT), NO_DEFAULT)
    if origin is Literal:
        flag = isinstance(value, bool)
        return next((part for part in arguments if part == value and isinstance(part, bool) == flag), NO_DEFAULT)
    if origin in (tuple, list):
        return _convert_sequence(origin, arguments, value, name, where)
    if dataclasses.is_dataclass(hint):
        nested: Any = hint
        return (
            nested(**read_table(nested, value, where, f"{name}.")) if isinstance(value, Mapping) else _same(hint, value)
        )
    if hint is bool:
        return bool(value) if isinstance(value, bool) or type(value).__name__ == "bool" else NO_DEFAULT
    if hint is int:
        return int(value) if _is_number(value, numbers.Integral) else NO_DEFAULT
    if hint is float:
        return float(value) if _is_number(value, numbers.Real) else NO_DEFAULT
    if hint is Path:
        return Path(value) if isinstance(value, (str, Path)) else NO_DEFAULT
    if hint is None or hint is type(None):
        return None if value is None else NO_DEFAULT
    return _same(hint, value)


def _is_number(value: Any, kind: type) -> bool:
    """Whether a value is a number of Python or numpy; True and False are not."""
    return isinstance(value, kind) and not isinstance(value, bool)


def _same(hint: Any, value: Any) -> Any:
    # Annotations that cannot be checked here are left to the class.
    checkable = get_origin(hint) or hint
    return value if not isinstance(checkable, type) or isinstance(value, checkable) else NO_DEFAULT


def _convert_sequence(origin: Any, arguments: tuple[Any, ...], value: Any, name: str, where: str) -> Any:
    if not isinstance(value, (tuple, list)):
        return NO_DEFAULT
    kinds = arguments
    if origin is list or Ellipsis in arguments:
        kinds = (arguments[0],) * len(value)
    entries = [_convert(kind, entry, name, where) for kind, entry in zip(kinds, value, strict=False)]
    if len(kinds) != len(value) or any(entry is NO_DEFAULT for entry in entries):
        return NO_DEFAULT
    unchanged = type(value) is origin and all(new is old for new, old in zip(entries, value, strict=True))
    return value if unchanged else origin(entries)


def _parse(hint: Any, text: str) -> Any:
    """The value of a text under an annotation; NO_DEFAULT if it cannot be read."""
    hint, _ = _split(hint)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        # Any text can be read as a string, so that comes last.
        parts = sorted(arguments, key=lambda part: part is str)
        return next((value for part in parts if (value := _parse(part, text)) is not NO_DEFAULT), NO_DEFAULT)
    if origin is Literal:
        return next((choice for choice in arguments if str(choice).lower() == text.lower()), NO_DEFAULT)
    if origin in (tuple, list):
        fixed = origin is tuple and Ellipsis not in arguments
        parts_of_text = text.replace("+", "x").split("x") if arguments[0] in (int, float) else text.split("+")
        if fixed and len(parts_of_text) != len(arguments):
            return NO_DEFAULT
        kinds = arguments if fixed else (arguments[0],) * len(parts_of_text)
        entries = [_parse(kind, part.strip()) for kind, part in zip(kinds, parts_of_text, strict=True)]
        return NO_DEFAULT if any(entry is NO_DEFAULT for entry in entries) else origin(entries)
    if hint is bool:
        return {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}.get(
            text.lower(), NO_DEFAULT
        )
    if hint in (int, float):
        try:
            number = hint(text)
        except ValueError:
            return NO_DEFAULT
        return NO_DEFAULT if math.isnan(number) else number
    if hint is None or hint is type(None):
        return None if text.lower() == "none" else NO_DEFAULT
    if hint in (str, Path):
        return hint(text)
    if hint is Any:
        return _parse(int | float | bool | None | str, text)
    return NO_DEFAULT
