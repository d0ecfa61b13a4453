"""The compiled core, in the build that fits this processor.

`core.rescue`, `core.assign`, ... are its submodules. Both builds give the same bits. MUSTER_CORE=portable takes the one
that every processor runs.
"""

from __future__ import annotations

import os
from typing import Any

from muster import _core


def _choose() -> Any:
    if not hasattr(_core, "supports_v3"):
        raise ImportError("the compiled core of muster is not built here: run `make build`, or `pip install .`")
    if _core.supports_v3 and os.environ.get("MUSTER_CORE") != "portable":
        try:
            from muster import _core_v3
        except ImportError:  # built where the compiler had no such target
            return _core
        return _core_v3
    return _core


core: Any = _choose()
