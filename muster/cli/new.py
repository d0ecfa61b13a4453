"""`muster new`: a minimal custom environment and its test."""

from __future__ import annotations

import importlib.resources
import keyword
import sys
from dataclasses import dataclass
from importlib.machinery import PathFinder
from pathlib import Path
from string import Template
from typing import Annotated

from tyro.conf import Positional, arg

from muster.errors import InputError


@dataclass(frozen=True)
class New:
    """Write a minimal environment of your own, NAME.py, and its test, test_NAME.py."""

    name: Annotated[str, Positional, arg(metavar="NAME")]
    """The module's name, such as couriers: letters, digits and underscores."""
    folder: Path = Path()
    """Folder to write to; the current one by default."""

    def run(self) -> None:
        """Write both files and print the commands to use them with."""
        module = self.name.removesuffix(".py")
        if not module.isidentifier() or keyword.iskeyword(module):
            raise InputError(
                f"an environment's name is letters, digits and underscores, such as couriers; got {self.name!r}"
            )
        if not self.folder.is_dir():
            raise InputError(f"there is no folder {str(self.folder)!r}")
        files = {self.folder / f"{module}.py": "env.txt", self.folder / f"test_{module}.py": "test.txt"}
        for path in files:
            if path.exists():
                raise InputError(f"{path} is there already; choose another name, or move it away")
        # Commands look for modules in the current folder first: json.py there would break them all.
        installed = PathFinder.find_spec(module, [path for path in sys.path if path])
        if module in sys.stdlib_module_names or installed is not None:
            raise InputError(f"a file {module}.py would hide the module {module!r} of Python; choose another name")
        names = {"module": module, "Class": class_name(module)}
        for path, template in files.items():
            # The first is examples/couriers.py.
            text = importlib.resources.files("muster.cli").joinpath("template", template).read_text(encoding="utf-8")
            try:
                path.write_text(Template(text).substitute(names), encoding="utf-8")
            except OSError as error:
                raise InputError(f"cannot write {path}: {error.strerror or error}") from None
        print(f"wrote {' and '.join(map(str, files))}; in that folder:")
        for command, purpose in next_commands(f"{module}:{names['Class']}"):
            print(f"  {command:<78} {purpose}")


def class_name(module: str) -> str:
    """my_env -> MyEnv"""
    return "".join(part[:1].upper() + part[1:] for part in module.split("_")) or "Environment"


def next_commands(env: str) -> list[tuple[str, str]]:
    """(command, purpose) of the first commands with a new environment."""
    return [
        (f"muster check-env {env}", "does it pass the environment checks?"),
        (f"muster train {env} --minutes 1 --out run", "learn on a small size"),
        (f"muster compare nearest run {env}", "against the baseline"),
        (f"muster compare nearest run {env},n_agents=15,n_tasks=30", "at five times the size, without retraining"),
        (f"muster replay run {env} --beside nearest --out replay.html", "watch both on one episode"),
    ]
