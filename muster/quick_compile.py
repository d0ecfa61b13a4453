"""Changes to numba's insides: it compiles in half the time, and what is compiled does not depend on what was before.

They reach into what numba does not promise to keep, so they are made to the version that they were tried with alone:
with any other, kernels compile as numba does it, and longer.
"""

from __future__ import annotations

from typing import Any

import numba
from llvmlite.binding import Linkage
from numba.core import codegen, itanium_mangler

from muster import quick_typing

TRIED = (0, 68)
"""The version of numba whose insides these are."""


def speed_up() -> None:
    """Make the changes, to the numba that they were tried with."""
    if numba.version_info[:2] == TRIED:
        quick_typing.speed_up()
        translate_on_demand()
        optimise_once()


_KERNELS: set[str] = set()
"""How the names of functions begin, as LLVM knows them, that only kernels call."""
_EXACT: set[str] = set()
"""Those of them whose arithmetic is done in the order written."""


def note_kernel(function: Any, exact: bool) -> None:
    """Tell that only kernels call a function, and that it is compiled without wrappers for others."""
    name = itanium_mangler.mangle(f"{function.__module__}.{function.__qualname__}", ())
    # What follows the name tells of its version and its types.
    _KERNELS.add(name.removesuffix("E") + "B")
    if exact:
        _EXACT.add(name.removesuffix("E") + "B")


def has_only(module: Any, names: set[str]) -> bool:
    """Whether a module's own functions are all of those whose names begin so; False if it has none."""
    own = [name for name in defined_in(module) if not name.startswith("_ZN5numba")]
    return bool(own) and all(name.startswith(tuple(names)) for name in own)


def optimise_once() -> None:
    """Let LLVM optimise in full only what Python calls, with all that is compiled into it: a third less compiling.

    Numba does it for every kernel, and again for each that calls it, and so on up. The first of its two rounds is
    enough below; it keeps what is passed on small. Sums that may be reordered are left alone: their last bits depend on
    it.
    """
    library: Any = codegen.CPUCodeLibrary
    in_full = library._optimize_final_module

    def lightly(self: Any) -> None:
        if not has_only(self._final_module, _EXACT):
            in_full(self)
            return
        of = self._codegen
        passes, builder = of._module_pass_manager(
            loop_vectorize=of._loopvect, slp_vectorize=False, opt=of._opt_level, cost="cheap"
        )
        passes.run(self._final_module, builder)

    library._optimize_final_module = lightly


def translate_on_demand() -> None:
    """Let numba make machine code of a kernel only when its address is asked for: a fifth less compiling.

    A kernel that only other kernels call is part of each of them, as LLVM's intermediate code. Numba makes machine code
    of it on its own as well, which nobody ever runs. What has a function that is not one of ours is compiled as ever.
    """
    library: Any = codegen.JITCodeLibrary
    engine: Any = codegen.JITCPUCodegen
    finish, address_of, set_env = library._finalize_final_module, library.get_pointer_to_function, engine.set_env
    as_object_code = library.serialize_using_object_code
    environments: dict[str, Any] = {}
    """By the name of the variable that points to it: those of functions without machine code."""

    def finish_later(self: Any) -> None:
        # What is loaded as machine code has no functions here.
        if has_only(self._final_module, _KERNELS):
            self._finalize_dynamic_globals()
            self._verify_declare_only_symbols()
            self._waits = True
            self._finalized = True
        else:
            finish_now(self)

    def finish_now(self: Any) -> None:
        self._waits = False
        keep_to_itself(self._final_module)
        finish(self)
        for variable in self._final_module.global_variables:
            if variable.name in environments:
                set_env(self._codegen, variable.name, environments[variable.name])

    def address_on_demand(self: Any, name: str) -> int:
        self._ensure_finalized()
        if getattr(self, "_waits", False):
            if name not in defined_in(self._final_module):
                return 0
            finish_now(self)
        return int(address_of(self, name))

    def set_env_where_it_is(self: Any, name: str, environment: Any) -> None:
        if self._engine.get_global_value_address(name):
            set_env(self, name, environment)
        else:
            environments[name] = environment

    def serialized(self: Any) -> Any:
        return self.serialize_using_bitcode() if getattr(self, "_waits", False) else as_object_code(self)

    library._finalize_final_module = finish_later
    library.get_pointer_to_function = address_on_demand
    library.serialize_using_object_code = serialized
    engine.set_env = set_env_where_it_is


def keep_to_itself(module: Any) -> None:
    """Let what was compiled into a module be called from there alone.

    Otherwise all that a process runs would call the copy that was loaded first. Copies of a kernel whose sums may be
    reordered differ in their last bits, so those would depend on what was called before, and on whether the code had
    been compiled or was found in the cache.
    """
    for function in module.functions:
        if not function.is_declaration and function.linkage == Linkage.linkonce_odr:
            function.linkage = Linkage.internal


def defined_in(module: Any) -> list[str]:
    """The names of a module's own functions."""
    return [function.name for function in module.functions if not function.is_declaration]
