"""One place for numba's decorators."""

from __future__ import annotations

import re
from pathlib import Path

import muster

PACKAGE = Path(muster.__file__).parent


def test_only_one_module_knows_numbas_decorators():
    pattern = re.compile(
        r"\b(n?jit|vectorize|guvectorize|cfunc|stencil|overload)\b\s*[,(\n]|from numba import|import numba$"
    )
    found = [
        f"{path.relative_to(PACKAGE)}: {line.strip()}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if path not in (PACKAGE / "compile.py", PACKAGE / "kernel_cache.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if "numba" in line and pattern.search(line + "\n")
    ]
    # The benchmarks only name numba's version.
    assert [line for line in found if not line.startswith("benchmarks")] == []
