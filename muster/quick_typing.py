"""What numba does in Python before LLVM has anything to do, in two thirds of the time and with the same result.

As `muster.quick_compile`, which asks for it, this reaches into what numba does not promise to keep.
"""

from __future__ import annotations

import functools
import gc
import threading
from contextlib import nullcontext
from typing import Any

import llvmlite.binding as llvm
from llvmlite.ir._utils import DuplicatedNameError, NameScope
from numba.core import dispatcher, errors, ir
from numba.core.targetconfig import TargetConfig
from numba.core.types import functions
from numba.core.typing import npydecl

ALLOCATIONS = (500_000, 20, 20)
"""When Python looks for garbage while something is compiled; on its own it does every 700 objects, for nothing."""


def speed_up() -> None:
    """Make all changes."""
    compare_options_quickly()
    remember_signatures()
    list_variables_quickly()
    number_names_quickly()
    leave_out_notices()
    collect_rarely()


def compare_options_quickly() -> None:
    """Let numba compare compiler options by those that are set: the same answers, for a quarter less compiling.

    For every operator in a kernel numba looks through tables whose keys hold all options of the function, and reads
    some forty of them by name at each comparison.
    """

    def set_otherwise(options: Any) -> dict[str, Any]:
        return {name: value for name, value in options._values.items() if value != options.options[name].default}

    def same(self: Any, other: Any) -> bool:
        if not isinstance(other, TargetConfig):
            return NotImplemented
        same_kind = type(self) is type(other) or self.options.keys() == other.options.keys()  # type: ignore[attr-defined]
        return same_kind and (self._values == other._values or set_otherwise(self) == set_otherwise(other))

    @functools.cache
    def hash_of(kind: Any) -> int:
        # As numba does: of the names alone, since values may change.
        return hash(tuple(sorted(kind.options)))

    TargetConfig.__eq__ = same  # type: ignore[method-assign]
    TargetConfig.__hash__ = lambda self: hash_of(type(self))  # type: ignore[method-assign]


def remember_signatures() -> None:
    """Let numba look once for the signature of an operator on given types.

    For each operator in a kernel it tries many functions in turn, and writes a message about each that does not fit.
    What is compiled for the occasion (numba's overloads) is looked for as ever: it depends on options too.
    """
    look_up = functions.BaseFunction.get_call_type
    known: dict[Any, Any] = {}

    def get_call_type(self: Any, context: Any, args: Any, kws: Any) -> Any:
        key = self.templates, context, args, tuple(kws.items())
        if key in known:
            signature = known[key]
            self._impl_keys[signature.args] = self.typing_key
            return signature
        found: Any = look_up(self, context, args, kws)
        if self._impl_keys[found.args] is self.typing_key:
            known[key] = found
        return found

    functions.BaseFunction.get_call_type = get_call_type  # type: ignore[method-assign]
    rules: Any = npydecl
    find_loop = functools.cache(rules.ufunc_find_matching_loop)
    rules.ufunc_find_matching_loop = lambda ufunc, kinds: find_loop(ufunc, tuple(kinds))


def list_variables_quickly() -> None:
    """Let numba list the variables of an instruction without asking of every name and place in it what it is."""
    plain = (str, bool, type(None), ir.Loc)

    def variables(self: Any, value: Any) -> list[Any]:
        if isinstance(value, ir.Var):
            return [value]
        if isinstance(value, ir.Inst):
            return value.list_vars()
        if isinstance(value, dict):
            value = value.values()
        elif not isinstance(value, list | tuple):
            return []
        found = []
        for part in value:
            if isinstance(part, ir.Var):
                found.append(part)
            elif type(part) not in plain:
                found += variables(self, part)
        return found

    ir.Inst._rec_list_vars = variables  # type: ignore[method-assign]


def number_names_quickly() -> None:
    """Let llvmlite find a free name for each value in one step, as it does in several."""

    def register(self: Any, name: str, deduplicate: bool = False) -> str:
        used, wanted = self._useset, name
        if name in used and not deduplicate:
            raise DuplicatedNameError(name)
        while name in used:
            self._basenamemap[wanted] += 1
            name = f"{wanted}.{self._basenamemap[wanted]}"
        used.add(name)
        return name

    NameScope.register = register


def leave_out_notices() -> None:
    """Let numba neither time each call of LLVM nor set up the terminal's colours for messages that nobody sees."""
    for callbacks in tuple(llvm.ffi.lib._lock._cblist):
        llvm.ffi.unregister_lock_callback(*callbacks)
    if hasattr(errors, "ColorShell"):
        errors.ColorShell = nullcontext


def collect_rarely() -> None:
    """Let Python look for garbage less often while something is compiled, which makes millions of objects to keep."""
    compile_one = dispatcher.Dispatcher.compile
    lock = threading.Lock()
    under_way, usual = 0, gc.get_threshold()

    @functools.wraps(compile_one)
    def compile_with_little_collecting(self: Any, sig: Any) -> Any:
        nonlocal under_way, usual
        with lock:
            under_way += 1
            if under_way == 1:
                usual = gc.get_threshold()
                # 0 is for whoever has turned it off.
                gc.set_threshold(*(ALLOCATIONS if usual[0] else usual))
        try:
            return compile_one(self, sig)
        finally:
            with lock:
                under_way -= 1
                if under_way == 0:
                    gc.set_threshold(*usual)

    dispatcher.Dispatcher.compile = compile_with_little_collecting  # type: ignore[method-assign]
