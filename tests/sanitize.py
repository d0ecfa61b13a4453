"""`make sanitize`: the quick tests of the folders that use compiled code, then random calls, under the sanitizers.

    python -m tests.sanitize BUILD [--instances 10000] [--seed 0] [PYTEST ARGUMENTS]

BUILD is a folder with `_core` built with MUSTER_SANITIZE and MUSTER_BOUNDS. It takes the place of the installed core.
Every function that the core binds has to be called at least once (`tests.fuzz`), or it fails.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

TESTS = ("tests/assign", "tests/envs", "tests/models", "tests/policy", "tests/evaluation")


def preload() -> str:
    """The sanitizer's library, and libstdc++ beside it, without which it cannot follow C++ exceptions."""
    names = ("libasan.so", "libstdc++.so.6")
    found = [subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True) for name in names]
    return " ".join(done.stdout.strip() for done in found)


def use_core(build: Path) -> None:
    """Put the core of that build where `muster` will look for it."""
    (path,) = build.glob("_core.*.so")
    spec = spec_from_file_location("muster._core", path, loader=ExtensionFileLoader("muster._core", str(path)))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules["muster._core"] = module
    spec.loader.exec_module(module)
    import muster

    muster._core = module  # type: ignore[attr-defined]


def main() -> None:
    """Start again under the sanitizer, then run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=Path)
    parser.add_argument("--instances", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0, help="of the instances")
    parser.add_argument("--fuzz-only", action="store_true", help="leave the tests out")
    arguments, more = parser.parse_known_args()
    if "LD_PRELOAD" not in os.environ:
        options = {
            "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1",
            "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
        }
        os.environ.update(options, LD_PRELOAD=preload(), MUSTER_CORE="portable")
        os.execv(sys.executable, [sys.executable, "-m", "tests.sanitize", *sys.argv[1:]])
    del os.environ["LD_PRELOAD"]  # processes that tests start have the installed core
    use_core(arguments.build)
    if not arguments.fuzz_only:
        import pytest

        status = pytest.main(["-q", "-x", "-p", "no:xdist", "-p", "no:cacheprovider", *(more or TESTS)])
        if status:
            raise SystemExit(int(status))
    from tests import fuzz

    began = time.process_time()
    with fuzz.counted() as calls:
        counts, bad = fuzz.campaign(arguments.instances, arguments.seed)
    print(f"{arguments.instances} instances of seed {arguments.seed} in {time.process_time() - began:.0f} CPU s")
    print("\n".join(f"| {name} | {count:,} |" for name, count in [*counts.items(), *calls.items()]))
    bad += [f"{name} was not called" for name, count in calls.items() if not count]
    print("\n".join(bad) or "nothing was found")
    raise SystemExit(bool(bad))


if __name__ == "__main__":
    main()
