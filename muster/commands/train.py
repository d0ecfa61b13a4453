"""`muster train`: learn a policy on a small world."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from muster.errors import InputError
from muster.learning.settings import TrainSettings, from_toml


@dataclass(frozen=True)
class Train:
    """Learn to assign agents to tasks on a small world; the policy then plays larger ones as it is."""

    settings: Annotated[TrainSettings, tyro.conf.arg(name="")]
    out: Path | None = None
    """Folder of the run; runs/ENV-INFERENCE-MODEL-LEARNER-sSEED if not given."""
    resume: bool = False
    """Go on with the run in that folder."""
    config: str | None = None
    """TOML file with settings; flags given beside it win."""

    @classmethod
    def from_arguments(cls, arguments: Sequence[str]) -> Train:
        """Parse the flags, on top of the file that --config names."""
        given = list(arguments)
        default: Any = tyro.MISSING_NONPROP
        if "--config" in given:
            place = given.index("--config")
            if place + 1 == len(given):
                raise InputError("--config needs the name of a TOML file")
            file = given[place + 1]
            positional = given[0] if given and not given[0].startswith("-") else None
            default = cls(settings=from_toml(file, env=positional), config=file)
            if positional is None:
                given = [default.settings.env, *given]
        return tyro.cli(cls, prog="muster train", args=given, default=default)

    def run(self) -> None:
        """Train with a progress display; Ctrl-C saves and says how to go on."""
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        from muster.learning.train import run_training

        settings = self.settings
        name = settings.env.replace(":", "-").replace(",", "-").replace("=", "")
        out = self.out or Path("runs") / (
            f"{name}-{settings.inference}-{settings.model}-{settings.learner}-s{settings.seed}"
        )
        console = Console(stderr=True)
        columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
        with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
            bar = progress.add_task(f"{settings.env} {settings.inference} {settings.learner}", total=1.0)

            def report(row: dict[str, Any], done: float) -> None:
                line = describe(row)
                progress.update(bar, completed=done, description=line)
                if not console.is_terminal:
                    print(line, file=sys.stderr, flush=True)

            outcome = run_training(settings, out, self.resume, report)
        if not outcome.finished:
            console.print(f"stopped and saved; go on with: muster train {settings.env} --out {out} --resume")
            raise SystemExit(130)
        console.print(
            f"{outcome.steps:,} environment steps in {outcome.cpu_minutes:.1f} CPU minutes; "
            f"best policy: {out / 'best.safetensors'}"
        )
        console.print(f"try it: muster evaluate {out} {settings.env}")


def describe(row: dict[str, Any]) -> str:
    """A row of the log in one line."""
    parts = [f"{row['steps']:>11,} steps"]
    parts += [f"{name} {row[name]:.3f}" for name in ("reward", "outcome", "validation") if name in row]
    return "  ".join([*parts, f"{row['steps_per_second']:,.0f} steps/s"])
