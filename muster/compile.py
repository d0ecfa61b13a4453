"""How the kernels are compiled: every numba decorator of the package, one meaning each.

| decorator     | called from     | may allocate | into its callers   | floating point |
|---------------|-----------------|--------------|--------------------|----------------|
| `entry`       | Python, kernels | yes          | if LLVM thinks so  | exact          |
| `lean_entry`  | Python, kernels | no           | if LLVM thinks so  | exact          |
| `maker`       | kernels         | yes          | if LLVM thinks so  | exact          |
| `kernel`      | kernels         | no           | if LLVM thinks so  | exact          |
| `leaf`        | kernels         | no           | always, by LLVM    | exact          |
| `glue`        | kernels         | as its caller| always, by numba   | as its caller  |
| `fast_entry`  | Python          | yes          | if LLVM thinks so  | reordered      |
| `fast_kernel` | kernels         | no           | if LLVM thinks so  | reordered      |
| `fast_leaf`   | kernels         | no           | always, by LLVM    | reordered      |

All let go of the interpreter's lock and divide by zero as numpy does. "Exact" is IEEE arithmetic in the order written;
"reordered" lets the compiler change the order of sums (fastmath), so that the last bits depend on the processor.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.core import config, types

from muster.kernel_cache import make_cache
from muster.quick_compile import note_kernel, speed_up

Function = TypeVar("Function", bound=Callable[..., Any])


def _compiled(from_python: bool = False, **options: Any) -> Callable[[Function], Function]:
    """Numba's decorator, for which a kernel keeps its type; the machine code is kept as `muster.kernel_cache` says."""
    compile_with: Any = numba.njit(nogil=True, error_model="numpy", **options)

    def decorate(function: Function) -> Function:
        if config.DISABLE_JIT:  # type: ignore[attr-defined]
            return _plain(function) if from_python else function
        dispatcher = compile_with(function)
        dispatcher._cache = make_cache(function)
        if options.get("no_cpython_wrapper"):
            note_kernel(function, exact=not options.get("fastmath"))
        dispatcher.get_call_template = _blind_to_constants(dispatcher.get_call_template)
        return dispatcher

    return decorate


def _blind_to_constants(get_call_template: Callable[..., Any]) -> Callable[..., Any]:
    """Numba would compile a kernel again for each constant that it is called with, if only while it guesses types."""

    def get(arguments: Any, named: dict[str, Any]) -> Any:
        plain = tuple(types.unliteral(kind) for kind in arguments)
        return get_call_template(plain, {name: types.unliteral(kind) for name, kind in named.items()})

    return get


def _plain(function: Function) -> Function:
    """The function as Python runs it (NUMBA_DISABLE_JIT=1), where numpy need not warn of what kernels do."""

    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*arguments, **named)

    return cast(Function, call)


speed_up()

# Without wrappers for Python a function compiles in half the time.
_FOR_KERNELS = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
# Numba counts the references to every array that a function is given, in atomic steps: nearly half of a battle's time,
# for arrays that outlive every kernel. What is compiled with `_nrt=False` does not count, and cannot make arrays.
_UNCOUNTED = {"_nrt": False}

entry: Callable[[Function], Function] = _compiled(True, no_cfunc_wrapper=True)
"""Called from Python, and by kernels; may allocate."""

lean_entry: Callable[[Function], Function] = _compiled(True, no_cfunc_wrapper=True, **_UNCOUNTED)
"""Called from Python, mostly a loop over a batch; allocates nothing and returns no array, and is quicker for it."""

maker: Callable[[Function], Function] = _compiled(**_FOR_KERNELS)
"""Called by kernels only; may allocate. Makes workspaces, or needs scratch arrays of its own."""

kernel: Callable[[Function], Function] = _compiled(**_FOR_KERNELS, **_UNCOUNTED)
"""Called by kernels only; allocates nothing and returns no new array."""

leaf: Callable[[Function], Function] = _compiled(**_FOR_KERNELS, **_UNCOUNTED, forceinline=True)
"""A kernel that is compiled into its callers: for small functions in inner loops, since an array argument is seven
words a call and workspaces are passed by value."""

glue: Callable[[Function], Function] = _compiled(inline="always")
"""Mostly calls other kernels, and is merged into its caller before anything is compiled: each separate function would
optimise all that it calls once more. It is compiled as its caller is, and may allocate where that may."""

fast_entry: Callable[[Function], Function] = _compiled(True, no_cfunc_wrapper=True, fastmath=True)
"""As `entry`, with sums in any order."""

# References are counted here: it costs nothing beside a layer's arithmetic.
fast_kernel: Callable[[Function], Function] = _compiled(**_FOR_KERNELS, fastmath=True)
"""As `kernel`, with sums in any order."""

fast_leaf: Callable[[Function], Function] = _compiled(**_FOR_KERNELS, fastmath=True, forceinline=True)
"""As `leaf`, with sums in any order."""


def callable_from_python(function: Function) -> Function:
    """A kernel or leaf as Python can call it: for tests and experiments, compiled anew in each process."""
    compile_with: Any = numba.njit

    @compile_with
    def call(*arguments: Any) -> Any:
        return function(*arguments)

    return call
