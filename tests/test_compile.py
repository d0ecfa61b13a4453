"""One place for numba's decorators."""

from __future__ import annotations

import gc
import re
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest
from llvmlite.binding import Linkage
from llvmlite.ir._utils import DuplicatedNameError, NameScope
from numba.core import compiler, ir
from numba.core.caching import NullCache
from numba.core.compiler import Flags

import muster
from muster import quick_compile
from muster.compile import entry, fast_entry, fast_kernel, kernel

PACKAGE = Path(muster.__file__).parent


@kernel
def doubled(x: int) -> int:
    return 2 * x


@entry
def doubled_twice(x: int) -> int:
    return doubled(doubled(x))


@numba.njit
def is_even(x: int) -> bool:
    return True if x == 0 else is_odd(x - 1)


@numba.njit
def is_odd(x: int) -> bool:
    return False if x == 0 else is_even(x - 1)


def test_only_one_module_knows_numbas_decorators():
    pattern = re.compile(
        r"\b(n?jit|vectorize|guvectorize|cfunc|stencil|overload)\b\s*[,(\n]|from numba import|import numba$"
    )
    found = [
        f"{path.relative_to(PACKAGE)}: {line.strip()}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.stem not in ("compile", "kernel_cache", "quick_compile", "quick_typing")
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


def test_what_only_kernels_call_has_no_machine_code_until_its_address_is_asked_for():
    assert doubled_twice(3) == 12
    doubled.compile((numba.int64,))
    (inner,), (outer,) = doubled.overloads.values(), doubled_twice.overloads.values()
    assert inner.library._waits
    assert not outer.library._waits
    name = inner.fndesc.llvm_func_name
    assert inner.library.get_pointer_to_function("no_such_function") == 0
    assert inner.library._waits
    assert inner.library.get_pointer_to_function(name) != 0
    assert not inner.library._waits


def test_machine_code_is_loaded_again(tmp_path):
    """The first process compiles, the second loads; a kernel is loaded as intermediate code for a new caller."""
    (tmp_path / "halves.py").write_text(
        "from muster.compile import entry, kernel\n"
        "@kernel\ndef halved(x):\n    return x / 2.0\n"
        "@entry\ndef quartered(x):\n    return halved(halved(x))\n"
        "@entry\ndef eighth(x):\n    return halved(quartered(x))\n"
    )
    for call, wanted in (("quartered(8.0)", "2.0"), ("quartered(8.0)", "2.0"), ("eighth(8.0)", "1.0")):
        code = f"import halves; print(halves.{call})"
        found = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
        assert found.stdout.strip() == wanted
    assert len(list(tmp_path.rglob("*.nbc"))) == 3


def test_functions_of_others_are_compiled_as_ever():
    assert [is_even(4), is_odd(4)] == [True, False]

    @numba.vectorize(["float64(float64)"])
    def halved(x):
        return x / 2.0

    assert halved([2.0, 4.0]).tolist() == [1.0, 2.0]


@pytest.mark.skipif(numba.version_info[:2] != quick_compile.TRIED, reason="other versions compile as numba does it")
def test_code_calls_its_own_copies_of_kernels():
    # Which copy is loaded first depends on what was called before, and copies of reordered sums differ in last bits.
    def total(x):
        found = np.float32(0.0)
        for i in range(len(x)):
            found += x[i] * x[len(x) - 1 - i]
        return found

    inner = fast_kernel(total)

    def twice(x):
        return inner(x) + inner(x[1:])

    outer = fast_entry(twice)
    inner._cache = outer._cache = NullCache()
    assert outer(np.ones(5, np.float32)) == 9.0
    (found,) = outer.overloads.values()
    defined = [function for function in found.library._final_module.functions if not function.is_declaration]
    assert any("twice" in function.name for function in defined)
    assert all(function.linkage != Linkage.linkonce_odr for function in defined)


def test_a_signature_that_was_found_before_is_found_again():
    # The first of each kind is looked for, the second is known; the third has other types.
    @numba.njit
    def sums(i, x, xs):
        return i + i, i + i, x + x, i + x, i << 2, i << 2, xs[i], xs[i], xs[1:][0], np.sqrt(xs)[1], np.sqrt(xs)[2]

    found = sums(3, 0.5, np.arange(5.0) ** 2)
    assert found == (6, 6, 1.0, 3.5, 12, 12, 9.0, 9.0, 1.0, 1.0, 2.0)
    assert [type(value) for value in found] == [int, int, float, float, int, int, *[float] * 5]


def test_an_operation_without_a_signature_is_refused_as_ever():
    @numba.njit
    def mixed(x):
        return x + "1"

    for _ in range(2):
        with pytest.raises(numba.TypingError, match="No match for registered cases"):
            mixed(1)


def test_garbage_is_looked_for_as_often_as_before_once_compiled():
    @numba.njit
    def outer(x):
        return doubled(x) + 1

    before = gc.get_threshold()
    gc.set_threshold(701, 11, 12)
    try:
        assert outer(3) == 7
        assert gc.get_threshold() == (701, 11, 12)
        with pytest.raises(numba.TypingError):
            outer("no number")
        assert gc.get_threshold() == (701, 11, 12)
    finally:
        gc.set_threshold(*before)


def test_variables_of_an_instruction_are_listed_as_numba_does():
    def body(xs, y, n):
        total, (a, b) = y, (1, 2)
        for i in range(n):
            total += xs[i] * max(y, a, b) if i else xs[1:n][0]
        return {"total": total}

    def listed_by_numba(value):
        if isinstance(value, ir.Var):
            return [value]
        if isinstance(value, ir.Inst):
            return [variable for part in vars(value).values() for variable in listed_by_numba(part)]
        parts = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
        return [variable for part in parts for variable in listed_by_numba(part)]

    blocks = compiler.run_frontend(body).blocks.values()
    expressions = [line.value for block in blocks for line in block.body if isinstance(line, ir.Assign)]
    expressions = [value for value in expressions if isinstance(value, ir.Expr)]
    assert len(expressions) > 10
    for value in expressions:
        assert value.list_vars() == listed_by_numba(value)


def test_names_of_values_are_numbered_as_llvmlite_does():
    scope = NameScope()
    found = [scope.register(name, deduplicate=True) for name in ("x", "x", "x.1", "y", "x", "", "")]
    assert found == ["x", "x.1", "x.1.1", "y", "x.2", ".1", ".2"]
    with pytest.raises(DuplicatedNameError):
        scope.register("y")
