from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from muster.cli.main import main
from muster.cli.new import class_name

ROOT = Path(__file__).parent.parent.parent


def written(tmp_path: Path, name: str) -> tuple[str, str]:
    main(["new", name, "--folder", str(tmp_path)])
    return (tmp_path / f"{name}.py").read_text(), (tmp_path / f"test_{name}.py").read_text()


def test_the_example_and_the_documentation_show_what_is_written(tmp_path):
    env, _ = written(tmp_path, "couriers")
    assert (ROOT / "examples/couriers.py").read_text() == env
    assert f"```python\n{env}```" in (ROOT / "docs/how-to/custom-environment.md").read_text()


def test_the_smallest_environment_has_at_most_30_lines_of_code(tmp_path):
    env, _ = written(tmp_path, "couriers")
    tree = ast.parse(env)
    code = [line for line in ast.unparse(tree).splitlines() if line.strip() and not line.strip().startswith('"""')]
    given = [line for line in env.splitlines() if line.strip() and not line.strip().startswith(("#", '"""'))]
    assert len(code) <= 30
    assert len(given) <= 30


def test_its_test_passes(tmp_path):
    written(tmp_path, "my_env")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:schemathesis",
        "test_my_env.py",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout


def test_the_next_commands_are_said(tmp_path, capsys):
    written(tmp_path, "my_env")
    said = capsys.readouterr().out
    for command in ("check-env", "train", "compare", "replay"):
        assert f"muster {command} " in said
    assert "my_env:MyEnv,n_agents=15,n_tasks=30" in said


def test_nothing_is_overwritten(tmp_path, capsys):
    (tmp_path / "test_mine.py").write_text("precious")
    with pytest.raises(SystemExit):
        main(["new", "mine", "--folder", str(tmp_path)])
    assert "test_mine.py is there already" in capsys.readouterr().err
    assert (tmp_path / "test_mine.py").read_text() == "precious"
    assert not (tmp_path / "mine.py").exists()


@pytest.mark.parametrize("name", ["my environment", "2fast", "class", "a/b", ""])
def test_a_name_that_python_cannot_import_is_refused(name, capsys, tmp_path):
    with pytest.raises(SystemExit):
        main(["new", name, "--folder", str(tmp_path)])
    assert "letters, digits and underscores" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["json", "numpy"])
def test_a_name_that_would_hide_an_installed_module_is_refused(name, capsys, tmp_path):
    with pytest.raises(SystemExit):
        main(["new", name, "--folder", str(tmp_path)])
    assert f"{name}.py would hide the module '{name}' of Python" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_class_names():
    assert [class_name(name) for name in ("couriers", "my_env", "_x")] == ["Couriers", "MyEnv", "X"]
