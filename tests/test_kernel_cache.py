"""When compiled kernels are made anew, where they are kept, and what the user is told meanwhile."""

from __future__ import annotations

import importlib
import os
import pkgutil
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from types import CodeType

import numpy as np
import pytest

import muster
from muster import kernel_cache
from tests import plain_kernels

PACKAGE = Path(muster.__file__).parent
SOURCES = {
    "__init__.py": "",
    "inner.py": "from muster.compile import kernel\n\n\n@kernel\ndef inner(x):\n    return x + 1\n",
    "middle.py": (
        "from .inner import inner\nfrom muster.compile import kernel\n\n\n"
        "@kernel\ndef middle(x):\n    return inner(x)\n"
    ),
    "outer.py": (
        "from muster.compile import entry\nfrom tiny import (\n    middle as way,\n)\n\n\n"
        "@entry\ndef outer(x):\n    return way.middle(x)\n"
    ),
    "apart.py": "from muster.compile import entry\n\n\n@entry\ndef apart(x):\n    return 2 * x\n",
}
RUN = (
    "from tiny.outer import outer; from tiny.apart import apart; "
    "print(outer(1), apart(1), sum(outer.stats.cache_misses.values()), sum(apart.stats.cache_misses.values()))"
)


@pytest.fixture
def tiny(tmp_path):
    """A package of three kernel files that call one another, and one apart."""
    return write_tiny(tmp_path)


def write_tiny(place: Path) -> Path:
    folder = place / "tiny"
    folder.mkdir()
    for name, source in SOURCES.items():
        (folder / name).write_text(source)
    return folder


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return write_tiny(tmp_path_factory.mktemp("home"))


@pytest.fixture(scope="module")
def first(home):
    """What was said when the package was used for the first time."""
    return run(home)


@pytest.fixture
def compiled(home, first, tmp_path):
    """A copy of the package after that."""
    return Path(shutil.copytree(home, tmp_path / "tiny"))


def run(folder: Path, code: str = RUN, **variables: str) -> subprocess.CompletedProcess[str]:
    quiet = {"NUMBA_CACHE_DIR", "MUSTER_QUIET", "NUMBA_DISABLE_JIT"}
    environment = {name: value for name, value in os.environ.items() if name not in quiet}
    environment |= {"PYTHONPATH": f"{folder.parent}:{PACKAGE.parent}", "PYTHONDONTWRITEBYTECODE": "1"} | variables
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)


def test_editing_a_callee_compiles_its_callers_and_nothing_else(compiled):
    inner = compiled / "inner.py"
    before = inner.stat()
    inner.write_text(inner.read_text().replace("x + 1", "x + 5"))
    os.utime(inner, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert run(compiled).stdout == "6 2 1 0\n"


def test_compiling_is_announced_once_and_only_when_it_happens(first, compiled):
    assert first.stdout == "2 2 1 1\n"
    assert first.stderr.count("compiling") == 1
    again = run(compiled)
    assert again.stdout == "2 2 0 0\n"
    assert again.stderr == ""


@pytest.mark.parametrize(
    ("code", "variables"),
    [(RUN, {"MUSTER_QUIET": "1"}), (f"import muster.kernel_cache as k; k.be_quiet(); {RUN}", {})],
)
def test_the_announcement_can_be_silenced(tiny, code, variables):
    assert run(tiny, code, **variables).stderr == ""


def test_a_given_folder_is_used(tiny, tmp_path):
    run(tiny, NUMBA_CACHE_DIR=str(tmp_path / "given"))
    assert list((tmp_path / "given").rglob("*.nbc"))
    assert not (tiny / "__pycache__").exists()


def block(tiny: Path) -> None:
    """Nothing can be written beside the sources: permissions would not stop root, a file in the way does."""
    shutil.rmtree(tiny / "__pycache__", ignore_errors=True)
    (tiny / "__pycache__").touch()


def test_without_a_folder_beside_the_source_the_users_cache_is_used(tiny, tmp_path):
    block(tiny)
    assert run(tiny, XDG_CACHE_HOME=str(tmp_path / "user")).stdout == "2 2 1 1\n"
    assert list((tmp_path / "user" / "muster").rglob("*.nbc"))
    assert run(tiny, XDG_CACHE_HOME=str(tmp_path / "user")).stdout == "2 2 0 0\n"


def test_without_a_home_the_temporary_folder_is_used_privately(tiny, tmp_path):
    block(tiny)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    where = {"XDG_CACHE_HOME": "/dev/null", "TMPDIR": str(temporary)}
    assert run(tiny, **where).stdout == "2 2 1 1\n"
    assert run(tiny, **where).stdout == "2 2 0 0\n"
    (own,) = temporary.glob("muster-*")
    assert stat.S_IMODE(own.stat().st_mode) == 0o700
    # Somebody else could write there now, so what it holds is no longer believed.
    own.chmod(0o777)
    done = run(tiny, **where)
    assert done.stdout == "2 2 1 1\n"
    assert "NUMBA_CACHE_DIR" in done.stderr


def test_a_link_that_somebody_planted_is_not_followed(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    (tmp_path / f"muster-{os.getuid()}").symlink_to(elsewhere)
    kernel_cache.temporary_folder.cache_clear()
    assert kernel_cache.temporary_folder() is None
    kernel_cache.temporary_folder.cache_clear()


def test_with_no_folder_at_all_it_compiles_and_says_what_to_set(tiny):
    block(tiny)
    done = run(tiny, f"import tempfile; tempfile.tempdir = '/dev/null'; {RUN}", XDG_CACHE_HOME="/dev/null")
    assert done.stdout == "2 2 1 1\n"
    assert done.stderr.count("\n") == 1
    assert "NUMBA_CACHE_DIR" in done.stderr


def test_current_code_in_a_folder_that_cannot_be_written_is_used(compiled):
    tiny = compiled
    unwriteable = "import muster.kernel_cache as k; k.is_writeable = lambda folder: False; "
    assert run(tiny, unwriteable + RUN).stdout == "2 2 0 0\n"
    (tiny / "inner.py").write_text((tiny / "inner.py").read_text().replace("x + 1", "x + 5"))
    assert run(tiny, unwriteable + RUN).stdout == "6 2 1 0\n"


def test_code_that_was_cut_short_is_compiled_again(compiled):
    tiny = compiled
    for path in (tiny / "__pycache__").glob("outer.*.nbc"):
        path.write_bytes(path.read_bytes()[:100])
    assert run(tiny).stdout == "2 2 1 0\n"
    assert run(tiny).stdout == "2 2 0 0\n"


def test_the_stamp_covers_every_kernel_file_that_a_file_calls():
    files = {
        path.relative_to(PACKAGE).as_posix() for path in kernel_cache.closure(PACKAGE / "inference" / "quadratic.py")
    }
    assert {"inference/transport.py", "inference/instance.py", "inference/local_search.py"} <= files
    assert not any(path.startswith(("envs", "scoring", "learning")) for path in files)
    rescue = {path.name for path in kernel_cache.closure(PACKAGE / "envs" / "rescue" / "kernels.py")}
    assert "rng.py" in rescue


def names_in(code: CodeType) -> set[str]:
    return set(code.co_names).union(*(names_in(c) for c in code.co_consts if isinstance(c, CodeType)))


def test_kernels_use_nothing_of_the_modules_that_the_stamp_leaves_out():
    for info in pkgutil.walk_packages([str(PACKAGE)], "muster."):
        if info.name.startswith(("muster.assign", "muster.envs.rescue", "muster.envs.battle", "muster.models.")):
            module = importlib.import_module(info.name)
            for value in vars(module).values():
                function = getattr(value, "py_func", None)
                if function is None:
                    continue
                for name in names_in(function.__code__):
                    source = getattr(function.__globals__.get(name), "__module__", None)
                    assert source not in kernel_cache.UNCOMPILED, f"{info.name}.{value.__name__} uses {name}"


def test_a_kernel_equals_its_plain_function(capsys):
    """NUMBA_DISABLE_JIT=1, by which kernels can be stepped through, changes no result."""
    command = [sys.executable, "-W", "error", "-m", "tests.plain_kernels"]
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True, cwd=PACKAGE.parent)
    plain_kernels.main()
    compiled, plain = (
        dict(line.split(" ", 1) for line in text.splitlines()) for text in (capsys.readouterr().out, done.stdout)
    )
    assert len(compiled) == 20
    assert compiled.keys() == plain.keys()
    for name in compiled:
        if name.startswith("scores"):
            # Fast kernels may add in another order.
            np.testing.assert_allclose(eval(compiled[name]), eval(plain[name]), rtol=1e-5, atol=1e-6)
        else:
            assert plain[name] == compiled[name], name
