"""`muster plot`: learning curves, learned scores on a grid, and the trials of a search."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tyro.conf import Positional

from muster.errors import InputError, MissingExtraError
from muster.storage import check_parent

if TYPE_CHECKING:
    from muster.policy.learned import LearnedPolicy


@dataclass(frozen=True)
class Plot:
    """Draw learning curves of runs, the learned score round one agent, or the trials of a search (extra `plot`)."""

    what: Positional[Literal["curves", "scores", "search"]]
    """curves: mean outcome over environment steps, from runs' logs; scores: h of a rescue policy as a density; search:
    a study's trials as parallel coordinates."""
    names: Positional[tuple[str, ...]]
    """Folders of runs (or metrics.csv files) for curves; one policy for scores; a study's folder for search."""
    out: Path = Path("plot.png")
    """Picture to write: .png, .svg or .pdf."""
    agent: tuple[int, int] = (5, 4)
    """Row and column of the agent (scores)."""
    grid: int = 16
    """Side of the grid (scores)."""

    def run(self) -> None:
        """Draw the picture, write it and print its path."""
        if not self.names:
            raise InputError(f"muster plot {self.what} needs at least one name")
        if self.what != "curves" and len(self.names) != 1:
            subject = "policy" if self.what == "scores" else "study"
            raise InputError(f"muster plot {self.what} takes one {subject}, got {len(self.names)}")
        with figure_file(self.out, "muster plot") as (figure, axes):
            if self.what == "curves":
                draw_curves(axes, self.names)
            elif self.what == "search":
                from muster.cli.search import draw_study

                draw_study(Path(self.names[0])).savefig(self.out, dpi=110)
            else:
                draw_scores(figure, axes, self.names[0], self.agent, self.grid)
        print(self.out)


def read_curves(name: str) -> dict[str, tuple[list[float], list[float]]]:
    """{label: (environment steps, mean outcomes)} of a run's log, one curve for each environment it learned on."""
    import csv

    path = Path(name)
    path = path / "metrics.csv" if path.is_dir() else path
    if not path.exists():
        raise InputError(f"no log {path}; name the folder of a run or its metrics.csv")
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    columns = [column for column in (rows[0] if rows else ()) if column.startswith("outcome/")] or ["outcome"]
    curves = {}
    for column in columns:
        points = [(float(row["steps"]), float(row[column])) for row in rows if row.get(column)]
        if not points:
            raise InputError(f"{path} has no rows yet")
        label = " ".join([Path(name).name, column.removeprefix("outcome").removeprefix("/")]).strip()
        curves[label] = ([steps for steps, _ in points], [outcome for _, outcome in points])
    return curves


def draw_curves(axes: Any, names: tuple[str, ...]) -> None:
    """Draw one line for each environment of each run."""
    curves = {label: curve for name in names for label, curve in read_curves(name).items()}
    for label, (steps, outcome) in curves.items():
        axes.plot([s / 1e6 for s in steps], outcome, label=label, linewidth=1.3)
    lowest = min(min(outcome) for _, outcome in curves.values())
    highest = max(max(outcome) for _, outcome in curves.values())
    # Where fewer steps are better, the first rows of a run are so high that they would flatten the rest.
    falling = all(outcome[0] > outcome[-1] > 1.0 for _, outcome in curves.values())
    if falling and highest > 1.5 * lowest:
        axes.set_ylim(0.97 * lowest, 1.35 * lowest)
    axes.set_xlabel("environment steps, millions")
    axes.set_ylabel("mean outcome on training episodes, with noise")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7)


def draw_scores(figure: Any, axes: Any, name: str, agent: tuple[int, int], grid: int) -> None:
    """Draw score h for a task on every cell as a density, under contours of the true distance in moves."""
    import numpy as np

    from muster.policy.names import load

    policy = load(name)
    if not str(policy.header.get("env", "")).startswith("rescue:") or policy.spec.kind != "dm":
        raise InputError(f"{name} is not a direct model for search and rescue")
    if not (0 <= agent[0] < grid and 0 <= agent[1] < grid):
        raise InputError(f"the agent's cell must lie on the {grid}x{grid} grid, got {agent}")
    density = scores_on_grid(policy, agent, grid)
    picture = axes.imshow(density, cmap="viridis", origin="upper")
    figure.colorbar(picture, ax=axes, label="learned score h")
    rows, columns = np.mgrid[:grid, :grid]
    distance = np.maximum(abs(rows - agent[0]), abs(columns - agent[1]))
    axes.contour(distance, levels=np.arange(0.5, grid), colors="white", linewidths=0.5, alpha=0.7)
    axes.plot(agent[1], agent[0], "o", color="red", markersize=6)
    axes.set_title(f"{Path(name).stem}: h of a task on each cell, true distance as contours", fontsize=8)


def scores_on_grid(policy: LearnedPolicy, agent: tuple[int, int], grid: int) -> Any:
    """Score h of an agent in cell `agent` for a task on each cell, [grid, grid]."""
    import numpy as np

    from muster.envs.rescue.env import RescueEnv
    from muster.envs.rescue.settings import RescueSettings
    from muster.policy.learned import adapt

    env = RescueEnv(RescueSettings(agents=1, tasks=1, grid=grid), grid * grid)
    env.reset(np.arange(grid * grid), np.zeros(grid * grid, np.uint64))
    state = env.get_state()
    state["agent_cells"][:, 0] = agent
    state["task_cells"][:, 0] = np.stack(np.divmod(np.arange(grid * grid), grid), axis=1)
    state["waiting"][:] = True
    env.set_state(state)
    adapt(policy, env)
    h, _ = policy.scores(env.observe())
    return h.reshape(grid, grid)


@contextmanager
def figure_file(out: Path, feature: str) -> Iterator[tuple[Any, Any]]:
    """Yield a figure and its axes, and write the figure to `out` at the end.

    Raises before yielding, so before anything long is computed: MissingExtraError without matplotlib (`feature` is the
    command that needs it), InputError for a suffix or folder that cannot be written to.
    """
    try:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot
    except ImportError:
        raise MissingExtraError(feature, "plot") from None
    figure, axes = pyplot.subplots(figsize=(6.4, 4.2), layout="constrained")
    try:
        kinds = sorted(figure.canvas.get_supported_filetypes())
        if out.suffix[1:].lower() not in kinds:
            raise InputError(f"cannot write {out}: a picture ends in one of .{', .'.join(kinds)}")
        check_parent(out)
        yield figure, axes
        try:
            figure.savefig(out, dpi=110)
        except (OSError, ValueError) as error:
            raise InputError(f"cannot write {out}: {error}") from None
    finally:
        pyplot.close(figure)
