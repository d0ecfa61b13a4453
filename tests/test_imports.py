"""The direction of imports, and that light things stay light."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import muster
from muster.cli import COMMANDS

PACKAGE = Path(muster.__file__).parent
HEAVY = ("torch", "numba", "numpy", "scipy", "gymnasium", "pettingzoo", "matplotlib", "PIL", "highspy", "ortools")


def modules(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (PACKAGE / folder).rglob("*.py"))


def imported(path: Path) -> set[str]:
    """Every module that a file imports, anywhere in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def offenders(paths: list[Path], *forbidden: str) -> list[str]:
    found = []
    for path in paths:
        for name in imported(path):
            if any(name == one or name.startswith(f"{one}.") for one in forbidden):
                found.append(f"{path.relative_to(PACKAGE)} imports {name}")
    return found


def loaded_by(code: str) -> set[str]:
    """The modules that a fresh interpreter has loaded after `code`."""
    script = f"import sys\ntry:\n    {code}\nexcept SystemExit: pass\nprint('\\n'.join(sys.modules), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def test_inference_knows_no_torch_and_no_world():
    above = ("envs", "features", "scoring", "policy", "policies", "learning", "evaluation", "rollout", "commands")
    assert offenders(modules("inference"), "torch", "gymnasium", *(f"muster.{name}" for name in above)) == []


def test_worlds_know_no_learning():
    assert offenders(modules("envs"), "torch", "muster.learning", "muster.scoring", "muster.evaluation") == []


def test_nothing_imports_the_command_line():
    own = ("cli.py", "__main__.py")
    paths = [path for path in modules("") if "commands" not in path.parts and path.name not in own]
    assert offenders(paths, "muster.cli", "muster.commands", "muster.server") == []


def test_inference_loads_neither_torch_nor_a_world():
    loaded = loaded_by("import muster.inference")
    assert "torch" not in loaded
    assert not any(name.startswith(("muster.envs", "muster.learning", "gymnasium")) for name in loaded)


@pytest.mark.parametrize("code", ["import muster", "from muster.cli import main; main(['--help'])"])
def test_import_and_help_load_nothing_heavy(code):
    """What keeps both well below half a second."""
    assert loaded_by(code) & set(HEAVY) == set()


def test_all_is_what_can_be_imported():
    assert len(set(muster.__all__)) == len(muster.__all__)
    for name in muster.__all__:
        assert getattr(muster, name) is not None
    assert dir(muster) == sorted(muster.__all__)
    with pytest.raises(AttributeError, match="no attribute 'asign'"):
        _ = muster.asign


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command):
    code = f"from muster.cli import main; main(['{command}', '--help'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert f"muster {command}" in done.stdout
