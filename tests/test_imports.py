"""The direction of imports, stated whole, and that light things stay light."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import muster
from muster.cli.main import COMMANDS, main

PACKAGE = Path(muster.__file__).parent
HEAVY = (
    "torch",
    "numba",
    "numpy",
    "scipy",
    "gymnasium",
    "pettingzoo",
    "matplotlib",
    "PIL",
    "highspy",
    "ortools",
    "optuna",
)

# The sentence that the tree stands for: a module imports only from its own layer and from those above it.
# Imports inside functions count; those for type checking alone do not.
LAYERS = """
errors settings rng storage kernels _core _core_v3 custom
data parallel checkout client
assign
envs torch
models
rollout
policy
evaluation
learning
search
service
cli __main__
"""
LAYER = {room: number for number, rooms in enumerate(LAYERS.split("\n")) for room in rooms.split()}


def module_of(path: Path) -> str:
    """ "envs.battle.env" for muster/envs/battle/env.py."""
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")


MODULES = {module_of(path): path for path in sorted(PACKAGE.rglob("*.py")) if path != PACKAGE / "__init__.py"}


@cache
def imports_of(path: Path) -> set[str]:
    """Every dotted name that a module imports anywhere in it, but for type checking."""
    return imported(ast.parse(path.read_text(encoding="utf-8")))


def imported(tree: ast.AST) -> set[str]:
    """The same of a part of it."""
    if isinstance(tree, ast.If) and "TYPE_CHECKING" in ast.dump(tree.test):
        return set().union(*map(imported, tree.orelse))
    if isinstance(tree, ast.Import):
        return {alias.name for alias in tree.names}
    if isinstance(tree, ast.ImportFrom):
        assert tree.level == 0, "imports are absolute here"
        return {f"{tree.module}.{alias.name}" for alias in tree.names}
    return set().union(*map(imported, ast.iter_child_nodes(tree)))


def edges() -> set[tuple[str, str]]:
    """(module, what it imports of muster), everywhere in the package."""
    found = set()
    for module, path in MODULES.items():
        for name in imports_of(path):
            first, _, rest = name.partition(".")
            # `from muster.rng import Seeds` names a module and something in it; `import muster` itself is no edge.
            target = rest if rest in MODULES else rest.rpartition(".")[0]
            if first == "muster" and target in MODULES and target != module:
                found.add((module, target))
    return found


def third_parties(*rooms: str) -> set[tuple[str, str]]:
    """(module, outside package that it imports) in some rooms."""
    return {
        (module, name.partition(".")[0])
        for module, path in MODULES.items()
        if module.partition(".")[0] in rooms
        for name in imports_of(path)
    }


def loaded_by(code: str) -> set[str]:
    """The modules that a fresh interpreter has loaded after `code`."""
    script = f"import sys\ntry:\n    {code}\nexcept SystemExit: pass\nprint('\\n'.join(sys.modules), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def test_a_module_imports_only_from_its_own_layer_and_those_above():
    rooms = {(one, other): (one.partition(".")[0], other.partition(".")[0]) for one, other in edges()}
    against = [f"{one} imports {other}" for (one, other), (a, b) in rooms.items() if LAYER[b] > LAYER[a]]
    assert sorted(against) == []


def test_the_package_knows_neither_the_paper_nor_the_benchmarks():
    assert {edge for edge in third_parties(*LAYER) if edge[1] in ("paper", "benchmarks", "numba")} == set()


def test_assign_and_envs_know_no_torch():
    """Nor does assign know gymnasium."""
    assert {edge for edge in third_parties("assign", "envs") if edge[1] == "torch"} == set()
    assert {edge for edge in third_parties("assign") if edge[1] == "gymnasium"} == set()


def test_assign_loads_neither_torch_nor_an_environment():
    loaded = loaded_by("import muster.assign")
    assert "torch" not in loaded
    assert not any(name.startswith(("muster.envs", "muster.learning", "gymnasium")) for name in loaded)


@pytest.mark.parametrize("code", ["import muster", "from muster.cli.main import main; main(['--help'])"])
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
def test_every_command_has_help(command, capsys):
    with pytest.raises(SystemExit) as left:
        main([command, "--help"])
    assert left.value.code == 0
    assert f"muster {command}" in capsys.readouterr().out
