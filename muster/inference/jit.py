"""How the kernels are compiled."""

from __future__ import annotations

from numba import njit

# Inner functions are called by other kernels only, so they need no wrappers for Python; and they allocate nothing, so
# they need not count references to the arrays of their workspaces, which would cost more than their work.
_INNER = {
    "cache": True,
    "nogil": True,
    "error_model": "numpy",
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    "_nrt": False,
}

kernel = njit(**_INNER)

# Small functions in inner loops must really be merged into them: workspaces are passed by value.
leaf = njit(**_INNER, forceinline=True)

# Glue that only calls other kernels is merged into its caller: each separate kernel optimises all it calls once more.
glue = njit(cache=True, nogil=True, error_model="numpy", inline="always")

# What allocates the workspaces.
maker = njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
