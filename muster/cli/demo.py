"""`muster demo`: assign, learn on a small environment, evaluate on larger ones, replay."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from muster.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

SIZES = ("2x4", "5x10", "8x15")
RUN = "demo-run"
BASELINES = ("closest", "lp-distance", "topline")


@dataclass(frozen=True)
class Demo:
    """Show what muster does, in a few minutes: assign, learn on a small environment, run larger ones."""

    out: Path = Path("out")
    """Folder for the replay."""
    minutes: float = 1.0
    """CPU minutes of learning."""
    episodes: int = 300
    """Episodes of each size for each policy."""
    seed: int = 0
    """Which set of episodes."""

    def run(self) -> None:
        """Run the four parts in turn and print what to try next."""
        from rich.console import Console

        from muster.storage import make_folder

        if self.episodes < 1:
            raise InputError(f"the demonstration needs at least 1 episode, got {self.episodes}")
        if not self.minutes > 0:
            raise InputError(f"minutes must be positive, got {self.minutes}")
        make_folder(self.out)
        console = Console()
        assign_three_ways(console)
        policies = [*BASELINES, *learn(console, self.out, self.minutes, self.seed)]
        evaluate_policies(console, policies, self.episodes, self.seed)
        show_replay(console, policies[-1], self.out, self.seed)
        print_next_commands(console, self.out)


def assign_three_ways(console: Console) -> None:
    """Print one instance's assignments by AMAX, LP and QUAD."""
    import numpy as np
    from rich.table import Table

    from muster.assign import assign

    rng = np.random.default_rng(3)
    agents, tasks, capacity = 6, 4, 2
    scores = rng.uniform(0.0, 1.0, (agents, tasks)) + np.array([0.6, 0.2, 0.0, 0.0])
    # Two agents on one task are worth more than apart.
    task_scores = 0.3 * np.eye(tasks)
    console.print(
        f"\n[bold]1. From scores to an assignment[/]\n{agents} agents, {tasks} tasks of capacity {capacity}; h says "
        "what an agent is worth on a task, g that pairs are worth more together."
    )
    table = Table("", "tasks of the agents", "h·b + c'gc", "within capacities", "ms")
    remarks = {"amax": "each agent's best task", "lp": "best h within capacities", "quad": "with g too"}
    for method, remark in remarks.items():
        solution = assign(scores, task_scores, capacities=np.full(tasks, float(capacity)), method=method)  # type: ignore[arg-type]
        counts = np.bincount(solution.assignment[solution.assignment >= 0], minlength=tasks)
        value = sum(scores[i, j] for i, j in enumerate(solution.assignment) if j >= 0) + counts @ task_scores @ counts
        chosen = " ".join(str(j) if j >= 0 else "–" for j in solution.assignment)
        feasible = "yes" if (counts <= capacity).all() else f"no: {counts.max()} on one task"
        table.add_row(f"{method.upper()}: {remark}", chosen, f"{value:.2f}", feasible, f"{1e3 * solution.seconds:.2f}")
    console.print(table)


def learn(console: Console, out: Path, minutes: float, seed: int) -> list[str]:
    """Train QUAD with the direct model on the smallest size; the run's folder, as a list of one policy."""
    import shutil

    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from muster.cli.train import describe
    from muster.learning.settings import TrainSettings
    from muster.learning.train import run_training

    console.print(
        f"\n[bold]2. Learning[/]\nQUAD with the direct model on rescue:{SIZES[0]}, by PPO, for {minutes:g} CPU "
        f"minute{'s' * (minutes != 1.0)}. "
        "The scores are learned, the assignment is solved; only the number of steps is rewarded."
    )
    folder = out / RUN
    # An earlier demonstration's run would be resumed.
    shutil.rmtree(folder, ignore_errors=True)
    settings = TrainSettings(env=f"rescue:{SIZES[0]}", minutes=minutes, seed=seed)
    with Progress(TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn(), console=console) as progress:
        bar = progress.add_task("measuring", total=1.0)
        outcome = run_training(
            settings, folder, report=lambda row, done: progress.update(bar, completed=done, description=describe(row))
        )
    console.print(f"{outcome.steps:,} environment steps; the policy is in [bold]{folder}[/]")
    return [str(folder)]


def evaluate_policies(console: Console, policies: list[str], episodes: int, seed: int) -> None:
    """Print each policy's mean steps to the last pick-up at each size, on the same episodes."""
    from rich.table import Table

    from muster.cli.console import progress_bar
    from muster.evaluation.evaluate import evaluate

    console.print(
        "\n[bold]3. Search and rescue[/]\nAmbulances pick up victims on a grid; T is the number of steps until the "
        f"last one (mean, 95 % interval, {episodes} episodes). topline is the optimum; the learned policy saw "
        f"rescue:{SIZES[0]} only."
    )
    table = Table("T", *(f"rescue:{size}" for size in SIZES))
    for policy in policies:
        cells = []
        for size in SIZES:
            with progress_bar(f"{policy} on rescue:{size}", episodes) as advance:
                evaluation = evaluate(policy, f"rescue:{size}", episodes, seed, progress=advance)
            low, high = evaluation.ci95 or (math.nan, math.nan)
            cells.append(f"{evaluation.mean:.2f} ± {(high - low) / 2:.2f}")
        table.add_row(policy, *cells)
    console.print(table)


def show_replay(console: Console, policy: str, out: Path, seed: int) -> None:
    """Write one episode as an HTML page."""
    from muster.envs.registry import make
    from muster.evaluation.replay import record
    from muster.evaluation.writers import writer
    from muster.policy.names import resolve

    env = make("rescue:5x10")
    path = out / "rescue-5x10.html"
    replay = record(resolve(policy, env), env, seed)
    writer(path)([replay], env, path)
    console.print(
        f"\n[bold]4. A replay[/]\n{policy} on {env.name}, done in {len(replay.assignments)} steps: [bold]{path}[/]"
    )


def print_next_commands(console: Console, out: Path) -> None:
    """Print commands to try, and the examples of custom environments."""
    console.print("\n[bold]Next[/]")
    for command, purpose in next_commands(out):
        console.print(f"  {command}", style="bold", highlight=False, markup=False, soft_wrap=True)
        console.print(f"      {purpose}", highlight=False)
    console.print(
        "  Custom environments to start from: examples/couriers.py (30 lines; muster new NAME writes "
        "one like it), examples/warehouse.py (orders that arrive all the time) and examples/own_fleet.py (a fleet from "
        "tables of your own), in the repository.",
        highlight=False,
    )


def next_commands(out: Path) -> list[tuple[str, str]]:
    """(command, purpose) of commands that run as printed after the demonstration."""
    return [
        ("echo '{\"scores\": [[3, 2], [2.5, 0.5]]}' | muster solve -", "assign from your own scores"),
        (f"muster compare topline closest {out / RUN} rescue:5x10", "paired on the same episodes"),
        ("muster train rescue:5x10 --minutes 5", "learn on another size"),
        (
            f"muster replay topline rescue:8x15 --beside closest --out {out / 'replay.html'}",
            "a page that shows one episode, by two policies",
        ),
        ("muster check-env rescue:2x4", "the environment checks; name yours package.module:Class"),
    ]
