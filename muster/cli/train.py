"""`muster train`: learn a policy on a small environment."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import tyro

from muster.errors import InputError
from muster.learning.settings import TrainSettings, refuse_others
from muster.settings import as_table, build, overlaid, read_toml


@dataclass(frozen=True)
class Flags(TrainSettings):
    """What to learn, how, for how long, and where to."""

    env: tyro.conf.Positional[tuple[str, ...]] = ()
    """The environment to learn on, such as rescue:2x4; or several of one kind, in turn."""

    from_policy: Annotated[str | None, tyro.conf.arg(name="from", metavar="POLICY")] = None
    """Policy to go on from: shipped, a run or a file, of the same kind of env. What the model reads or scores beyond
    it starts at zero; critic and optimisers start anew."""

    def __post_init__(self) -> None:
        """Nothing is checked before all is said: see `Train.training`."""


@dataclass(frozen=True)
class Train:
    """Learn to assign agents to tasks on a small environment; the policy then plays larger ones as it is."""

    settings: Annotated[Flags, tyro.conf.arg(name="")]
    on: tuple[str, ...] = ()
    """Environments to learn on, as another way to name them."""
    out: Path | None = None
    """Folder of the run; runs/ENV-INFERENCE-MODEL-LEARNER-sSEED if not given."""
    resume: bool = False
    """Go on with the run in that folder, as it was begun; only minutes or steps, workers and cluster may be given
    anew."""
    config: str | None = None
    """TOML file with settings; flags given beside it win."""

    @classmethod
    def from_arguments(cls, arguments: Sequence[str]) -> Train:
        """Parse the flags, on top of the file that --config names, on top of the run that --resume goes on with."""
        given = list(arguments)
        file = config_of(given)
        table = read_toml(file) if file else {}
        command = cls._parse(given, table, file)
        if command.resume:
            command = cls._parse(given, cls._lasting(command.folder, table), file)
        flags = [word.partition("=")[0] for word in given if word.startswith("--") and "." in word]
        if flags:
            refuse_others(command.training, ((flag[2:].partition(".")[0], flag) for flag in flags))
        return command

    @classmethod
    def _lasting(cls, folder: Path, table: dict[str, Any]) -> dict[str, Any]:
        """What the run in a folder was begun with, but for its length, under the file that --config names."""
        from muster.learning.run import stored_settings
        from muster.learning.train import LENGTH

        # Once more on top of what the run was begun with: what then differs from it was asked for.
        stored = as_table(stored_settings(folder))
        return overlaid({name: value for name, value in stored.items() if name not in LENGTH}, table)

    @classmethod
    def _parse(cls, given: list[str], table: dict[str, Any], file: str | None) -> Train:
        default: Any = tyro.MISSING_NONPROP
        if table:
            worlds = table.get("env", ())
            table = {**table, "env": (worlds,) if isinstance(worlds, str) else worlds}
            default = cls(settings=build(Flags, table, file or "the run's settings"), config=file)
        return tyro.cli(cls, prog="muster train", args=given, default=default)

    @cached_property
    def training(self) -> TrainSettings:
        """The settings, checked."""
        settings = {entry.name: getattr(self.settings, entry.name) for entry in fields(TrainSettings)}
        log = self.settings.from_log
        if log and not self.settings.env + self.on:
            settings["env"] = f"log:{log},set=validation"
            return TrainSettings(**settings)
        if not self.settings.env + self.on:
            told = f"; {self.config} does not" if self.config else ""
            raise InputError(f"name the environment to learn on, such as rescue:2x4{told}")
        return TrainSettings(**settings | {"env": self.on or self.settings.env})

    @property
    def folder(self) -> Path:
        """Where the run is kept."""
        if self.out is not None:
            return self.out
        settings = self.training
        name = "-".join(settings.envs).replace(":", "-").replace(",", "-").replace("=", "").replace("/", "-")
        return Path("runs") / f"{name}-{settings.inference}-{settings.model}-{settings.learner}-s{settings.seed}"

    def run(self) -> None:
        """Train with a progress display; Ctrl-C saves and says how to go on."""
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        from muster.learning.train import run_training

        settings, out = self.training, self.folder
        worlds = " ".join(settings.envs)
        console = Console(stderr=True)
        columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
        with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
            bar = progress.add_task(f"{worlds} {settings.inference} {settings.learner}", total=1.0)

            def report(row: Mapping[str, Any], done: float) -> None:
                line = describe(row)
                progress.update(bar, completed=done, description=line)
                if not console.is_terminal:
                    print(line, file=sys.stderr, flush=True)

            outcome = run_training(settings, out, self.resume, report)
        if not outcome.finished:
            console.print(f"stopped and saved; go on with: muster train {worlds} --out {out} --resume")
            raise SystemExit(130)
        console.print(
            f"{outcome.steps:,} environment steps in {outcome.cpu_minutes:.1f} CPU minutes; "
            f"best policy: {out / 'best.safetensors'}"
        )
        console.print(f"try it: muster evaluate {out} {settings.envs[0]}")


def config_of(given: Sequence[str]) -> str | None:
    """What --config names, written with a space or with an equals sign."""
    for place, word in enumerate(given):
        if word.startswith("--config="):
            return word.removeprefix("--config=")
        if word == "--config":
            if place + 1 == len(given):
                raise InputError("--config needs the name of a TOML file")
            return given[place + 1]
    return None


def describe(row: Mapping[str, Any]) -> str:
    """A row of the log in one line."""
    parts = [f"{row['steps']:>11,} steps"]
    parts += [f"{name} {row[name]:.3f}" for name in ("reward", "outcome", "validation") if name in row]
    parts += [f"{row['steps_per_second']:,.0f} steps/s"] if "steps_per_second" in row else []
    return "  ".join(parts)
