"""How the kernels are compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def _compiled(**options: Any) -> Callable[[Function], Function]:
    """Numba's decorator, for which a kernel keeps its type."""
    compile_with: Any = numba.njit
    return compile_with(cache=True, nogil=True, error_model="numpy", **options)


# Called from Python; may allocate.
entry: Callable[[Function], Function] = _compiled()

# What allocates the workspaces. Called by kernels only, so it needs no wrappers for Python: half the compile time.
maker: Callable[[Function], Function] = _compiled(no_cpython_wrapper=True, no_cfunc_wrapper=True)

# The kernels. They allocate nothing and return no arrays, so they need not count references to the arrays of their
# workspaces (_nrt), which would cost more than their work.
kernel: Callable[[Function], Function] = _compiled(no_cpython_wrapper=True, no_cfunc_wrapper=True, _nrt=False)

# Small functions in inner loops must really be merged into them: workspaces are passed by value.
leaf: Callable[[Function], Function] = _compiled(
    no_cpython_wrapper=True, no_cfunc_wrapper=True, _nrt=False, forceinline=True
)

# Glue that only calls other kernels is merged into its caller: each separate kernel optimises all it calls once more.
glue: Callable[[Function], Function] = _compiled(inline="always")
