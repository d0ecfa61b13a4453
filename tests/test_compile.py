"""One place for numba's decorators."""

from __future__ import annotations

import re
from pathlib import Path

from numba.core.compiler import Flags

import muster
import muster.compile

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


def test_compiler_options_are_compared_as_numba_does():
    # What numba's own comparison reads: every option, set or not.
    def every_value(options):
        return {name: getattr(options, name) for name in options.options}

    choices = [
        {},
        {"nrt": True},
        {"nrt": False},
        {"nrt": True, "release_gil": True},
        {"release_gil": True},
        {"boundscheck": True},
    ]
    for first in choices:
        for second in choices:
            one, other = Flags(), Flags()
            for options, values in ((one, first), (other, second)):
                for name, value in values.items():
                    setattr(options, name, value)
            assert (one == other) == (every_value(one) == every_value(other))
            if one == other:
                assert hash(one) == hash(other)
    assert Flags() != 3
