"""`muster train`: learn a policy on a small environment."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated, Any

import tyro

from muster.cli.flags import Flags, argument, parse
from muster.errors import InputError
from muster.learning.settings import TrainSettings
from muster.settings import as_table, overlaid, read_toml


@dataclass(frozen=True)
class Train:
    """Learn to assign agents to tasks on a small environment; the policy generalises to larger ones."""

    settings: Annotated[Flags, tyro.conf.arg(name="")]
    out: Path | None = None
    """Folder of the run; runs/ENV-INFERENCE-MODEL-LEARNER-sSEED if not given."""
    resume: bool = False
    """Resume the run in that folder with its settings; only minutes or steps, workers and cluster may differ."""
    config: str | None = None
    """TOML file with settings; flags override it."""

    @classmethod
    def from_arguments(cls, arguments: Sequence[str]) -> Train:
        """Parse the flags, which override the file of --config, which overrides the settings of a resumed run."""
        file, out = argument(arguments, "--config"), argument(arguments, "--out")
        table = read_toml(file) if file else {}
        if argument(arguments, "--minutes") or argument(arguments, "--steps"):
            # --steps of a summary repeats a run whose config gives minutes.
            table = {name: value for name, value in table.items() if name not in ("minutes", "steps")}
        if "--resume" in arguments:
            from muster.learning.run import stored_settings
            from muster.learning.train import LENGTH

            folder = out or parse(cls, "muster train", arguments, table, str(file)).folder
            stored = as_table(stored_settings(Path(folder)))
            table = overlaid({name: value for name, value in stored.items() if name not in LENGTH}, table)
        return parse(cls, "muster train", arguments, table, file or "the run's settings")

    @cached_property
    def training(self) -> TrainSettings:
        """The validated settings."""
        if self.settings.env:
            return self.settings.checked()
        if self.settings.from_log:
            return self.settings.checked(env=f"log:{self.settings.from_log}")
        but = f"; {self.config} does not" if self.config else ""
        raise InputError(f"name the environment to learn on, such as rescue:2x4{but}")

    @property
    def folder(self) -> Path:
        """Folder of the run."""
        if self.out is not None:
            return self.out
        settings = self.training
        parts = [*settings.envs, settings.inference, settings.model, settings.learner]
        return Path("runs") / f"{folder_name(map(str, parts))}-s{settings.seed}"

    def run(self) -> None:
        """Train with a progress bar; Ctrl-C saves a checkpoint and prints the command that resumes."""
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        from muster.learning.run import holds_run, resuming
        from muster.learning.train import run_training

        settings, out = self.training, self.folder
        envs = " ".join(settings.envs)
        console = Console(stderr=True)
        say = partial(console.print, highlight=False, soft_wrap=True)
        columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
        with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
            bar = progress.add_task(f"{envs} {settings.inference} {settings.learner}", total=1.0)

            def report(row: Mapping[str, Any], done: float) -> None:
                line = describe(row)
                progress.update(bar, completed=done, description=line)
                if not console.is_terminal:
                    print(line, file=sys.stderr, flush=True)

            def announce(line: str) -> None:
                say(f"{envs}: {line}")

            outcome = None
            try:
                outcome = run_training(settings, out, self.resume, report, announce)
            except KeyboardInterrupt:  # a second one, or one in the validation
                if not holds_run(out):
                    raise
        if outcome is None or not outcome.finished:
            say(f"stopped and saved; go on with: {resuming(out)}")
            raise SystemExit(130)
        say(
            f"{outcome.steps:,} environment steps in {outcome.cpu_minutes:.1f} CPU minutes; "
            f"best policy: {out / 'best.safetensors'}"
        )
        if outcome.validation:
            print(outcome.validation)
        say(f"try it: muster evaluate {out} {settings.envs[0]}")


def folder_name(names: Iterable[str]) -> str:
    """Names joined by hyphens, without characters that a folder's name should not have."""
    return "-".join(names).replace(":", "-").replace(",", "-").replace("=", "").replace("/", "-")


def describe(row: Mapping[str, Any]) -> str:
    """A row of the training log in one line."""
    parts = [f"{row['steps']:>11,} steps"]
    parts += [f"{name} {row[name]:.3f}" for name in ("reward", "outcome", "validation") if name in row]
    parts += [f"{row['steps_per_second']:,.0f} steps/s"] if "steps_per_second" in row else []
    return "  ".join(parts)
