"""Where compiled kernels are kept, when they are too old to be used, and the word to the user while they are made.

Numba keeps a function's machine code until the function's own file changes; but code of other files is compiled into
it. So each file here has a stamp over its own source and that of every module of its package that it imports, directly
or not: editing a kernel compiles its callers again, and nothing else. (Numba's key holds the processor, so one folder
serves several machines.)

The code is kept in the first of these folders that can be written to:

1. NUMBA_CACHE_DIR, if set;
2. `__pycache__` beside the source;
3. the user's cache folder (`~/.cache/muster` on Linux);
4. `muster-<user id>` in the temporary folder, if it is a real folder of this user that nobody else may enter: numba
   unpickles what it finds.

A folder that cannot be written to still serves if it holds current code, as in an image made with `muster warmup`.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import re
import stat
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import numba
from numba.core import config
from numba.core.caching import CompileResultCacheImpl, FunctionCache, NullCache
from numba.misc.appdirs import AppDirs

_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(?P<source>[.\w]+)[ \t]+import[ \t]+(?P<names>\([^)]*\)|[^\n#]*)"
    r"|import[ \t]+(?P<modules>[^\n#]*))",
    re.MULTILINE,
)
# They hold types and exceptions, of which nothing gets into a kernel (a test says so). Every kernel file imports them.
UNCOMPILED = ("muster.data", "muster.errors")

_told = False
_quiet = False


def be_quiet(quiet: bool = True) -> None:
    """Do not announce that kernels are compiled; MUSTER_QUIET=1 in the environment says the same."""
    global _quiet
    _quiet = quiet


def announce(kept: bool = True) -> None:
    """Say on standard error, once a process, that kernels are being compiled."""
    global _told
    if _told or _quiet or os.environ.get("MUSTER_QUIET", "") not in ("", "0"):
        return
    _told = True
    tail = "the first time only; muster warmup does all of it ahead of time"
    if not kept:
        tail = "every time, since no folder for the result can be written to: set NUMBA_CACHE_DIR to one that can"
    print(f"muster: compiling, which can take a minute ({tail}) …", file=sys.stderr, flush=True)


class KernelCache(FunctionCache):
    """Numba's cache of one function, with the stamp and the folders of this module."""

    class _Implementation(CompileResultCacheImpl):
        def __init__(self, function: Any) -> None:
            # Numba looks for a locator in this list while it is being made.
            self._locator_classes = [Locator]  # type: ignore[list-item]
            super().__init__(function)  # type: ignore[no-untyped-call]

    _impl_class = _Implementation

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The code for these argument types, or None if it has to be compiled, which is then announced."""
        try:
            found = super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        except (OSError, EOFError, pickle.UnpicklingError):
            # Unreadable or cut short: compiled again, and written anew where that is possible.
            found = None
        if found is None:
            announce()
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep the code; a full disk is no reason to fail."""
        try:
            super().save_overload(sig, data)  # type: ignore[no-untyped-call]
        except OSError:
            return


class NoCache(NullCache):
    """For a function whose code can be kept nowhere."""

    def load_overload(self, sig: Any, target_context: Any) -> None:
        """Nothing is ever found, which the user is told once."""
        announce(kept=False)


class Locator:
    """Which folder keeps a function's code, and what says that the code is current: what numba asks of a locator."""

    def __init__(self, function: Any, file: str, folder: Path) -> None:
        # Numba names this attribute in a warning.
        self._py_file = file
        self._line = function.__code__.co_firstlineno
        self._folder = folder

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> Locator | None:
        """The locator of a function, or None if no folder can be used."""
        if not os.path.exists(py_file):
            return None
        for folder in folders(Path(py_file)):
            if is_writeable(folder) or holds_current(folder, py_func, Path(py_file)):
                return cls(py_func, py_file, folder)
        return None

    def ensure_cache_path(self) -> None:
        """Make the folder."""
        self._folder.mkdir(parents=True, exist_ok=True)

    def get_cache_path(self) -> str:
        """The folder."""
        return str(self._folder)

    def get_source_stamp(self) -> str:
        """Code with another stamp is out of date."""
        return stamp(Path(self._py_file))

    def get_disambiguator(self) -> str:
        """Tells functions of one name apart."""
        return str(self._line)


def make_cache(function: Any) -> Any:
    """The cache of a function's compiled code."""
    path = Path(function.__code__.co_filename)
    usable = path.exists() and Locator.from_function(function, str(path)) is not None
    return KernelCache(function) if usable else NoCache()  # type: ignore[no-untyped-call]


def folders(file: Path) -> Iterator[Path]:
    """Where the code of a file's kernels may be kept, best first."""
    parent = file.resolve().parent
    inner = f"{parent.name}_{hashlib.sha256(str(parent).encode()).hexdigest()[:16]}"
    if chosen := getattr(config, "CACHE_DIR", ""):
        yield Path(chosen) / inner
    yield parent / "__pycache__"
    yield Path(AppDirs(appname="muster", appauthor=False).user_cache_dir) / inner
    private = temporary_folder()
    if private is not None:
        yield private / inner


def kept_in() -> str:
    """Where the kernels of this package are kept, in words; empty if nowhere."""
    own = Path(__file__).with_name("compile.py")
    for folder in folders(own):
        if is_writeable(folder):
            return "__pycache__ beside the sources" if folder.name == "__pycache__" else str(folder.parent)
    return ""


@cache
def temporary_folder() -> Path | None:
    """A folder of this user alone in the temporary one; None if there is none or somebody else made it."""
    user = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")
    try:
        folder = Path(tempfile.gettempdir()) / f"muster-{user}"
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return None
    if not hasattr(os, "getuid"):
        return folder
    private = stat.S_ISDIR(found.st_mode) and found.st_uid == user and stat.S_IMODE(found.st_mode) & 0o077 == 0
    return folder if private else None


@cache
def is_writeable(folder: Path) -> bool:
    """Whether files can be made in the folder, which is made if it is missing."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


def holds_current(folder: Path, function: Any, file: Path) -> bool:
    """Whether the folder has an index of the function's code with the present stamp."""
    python = f"py{sys.version_info[0]}{sys.version_info[1]}{getattr(sys, 'abiflags', '')}"
    name = f"{file.stem}.{function.__qualname__}-{function.__code__.co_firstlineno}.{python}.nbi"
    try:
        with (folder / name).open("rb") as index:
            if pickle.load(index) != numba.__version__:
                return False
            found, _ = pickle.load(index)
    except (OSError, EOFError, pickle.UnpicklingError, ValueError):
        return False
    return bool(found == stamp(file))


@cache
def stamp(file: Path) -> str:
    """A hash of all sources that the kernels of a file are made from, and of the versions of what makes them."""
    digest = hashlib.sha256(f"{numba.__version__} {llvmlite.__version__}".encode())
    own = Path(__file__)
    for path in sorted({*closure(file.resolve()), own.resolve(), own.with_name("compile.py").resolve()}):
        digest.update(path.name.encode() + b"\0" + _source(path) + b"\0")
    return digest.hexdigest()


@cache
def closure(file: Path) -> frozenset[Path]:
    """The file and every module of its package that it imports, directly or not."""
    found, waiting = {file}, [file]
    while waiting:
        for path in imported(waiting.pop()):
            if path not in found:
                found.add(path)
                waiting.append(path)
    return frozenset(found)


@cache
def imported(file: Path) -> frozenset[Path]:
    """The modules of its own package that a file imports anywhere, read off its text; parent packages are left out."""
    parts = _package(file)
    if not parts:
        return frozenset()
    root = file.parents[len(parts)]
    names: set[str] = set()
    for match in _IMPORT.finditer(_source(file).decode(errors="replace")):
        if match["modules"]:
            names |= {name.split()[0] for name in match["modules"].split(",") if name.strip()}
            continue
        source = match["source"]
        dots = len(source) - len(source.lstrip("."))
        if dots:
            source = ".".join([*parts[: len(parts) - dots + 1], *filter(None, [source.lstrip(".")])])
        # What is imported may be a module of its own.
        names |= {f"{source}.{name.split()[0]}" for name in match["names"].strip("()").split(",") if name.strip()}
    found = set()
    for name in names:
        path = _module(root, name) or _module(root, name.rpartition(".")[0])
        inside = name.split(".")[0] == parts[0]
        if path and inside and not any(name == one or name.startswith(f"{one}.") for one in UNCOMPILED):
            found.add(path)
    return frozenset(found)


def _package(file: Path) -> list[str]:
    """The dotted name of the package that a file lies in, outermost first; empty if it lies in none."""
    parts: list[str] = []
    folder = file.parent
    while (folder / "__init__.py").exists():
        parts.insert(0, folder.name)
        folder = folder.parent
    return parts


def _module(root: Path, name: str) -> Path | None:
    """The file of a module, where `root` is the folder that the package lies in."""
    path = root.joinpath(*name.split("."))
    if path.with_suffix(".py").is_file():
        return path.with_suffix(".py")
    return path / "__init__.py" if (path / "__init__.py").is_file() else None


@cache
def _source(path: Path) -> bytes:
    return path.read_bytes()
