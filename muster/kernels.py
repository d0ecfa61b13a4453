"""The compiled core, in the build for this processor.

`core.rescue`, `core.assign`, ... are its submodules. Both builds give the same bits;
MUSTER_CORE=portable chooses the one that runs on every processor.
"""

from __future__ import annotations

import importlib
import os
import sys
import sysconfig
from pathlib import Path
from typing import Any

import muster


def _choose() -> Any:
    portable = _find()
    if portable.supports_v3 and os.environ.get("MUSTER_CORE") != "portable":
        try:
            return importlib.import_module("muster._core_v3")
        except ImportError:  # the compiler had no such target
            return portable
    return portable


def _find() -> Any:
    """The portable build.

    If Python starts in the folder of a clone, its sources hide the package that `pip install .` made: then the core of
    that package is used, unless the clone has newer sources of it.
    """
    core = importlib.import_module("muster._core")
    if hasattr(core, "supports_v3"):
        return core
    installed = Path(sysconfig.get_path("platlib")) / "muster"
    muster.__path__.append(str(installed))
    del sys.modules["muster._core"]  # the folder of type stubs, which is no module
    core = importlib.import_module("muster._core")
    if not hasattr(core, "supports_v3"):
        raise ImportError("the compiled core of muster is not built here: run `make build`, or `pip install .`")
    built = Path(str(core.__file__)).stat().st_mtime
    if any(built < source.stat().st_mtime for source in Path(__file__).parents[1].glob("core/**/*.[ch]pp")):
        raise ImportError("core/ is newer than the installed core: run `make build`, or `pip install .` again")
    return core


core: Any = _choose()
