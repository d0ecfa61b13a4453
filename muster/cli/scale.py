"""`muster scale`: how a policy generalises beyond the size it was trained on."""

from __future__ import annotations

import json
import math
import sys
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import Positional, arg

from muster.cli.policy_flags import PolicyFlags

if TYPE_CHECKING:
    from muster.evaluation.scale import Curve, Point


@dataclass(frozen=True)
class Scale(PolicyFlags):
    """Run one policy on environments of growing size beside the best baseline: where it wins, is even and loses."""

    policy: Annotated[str, Positional, arg(metavar="POLICY")]
    """A shipped policy, a path to a run or model file, or a baseline of the environment. A pattern such as
    'runs/ppo-s*' is a group of runs with different training seeds: the curve is of their interquartile mean."""
    env: str
    """battle:m, battle:w, battle:zh, rescue, pursuit or fleet; options follow a comma: fleet,city=large. One may grow
    with the number of agents n: rescue,grid=11*sqrt(n) keeps the density."""
    sizes: str | None = None
    """5..100 (about eight sizes), 5..100:5 (in steps) or 5,10,20; by default 5..100 in battles, 2..80 in rescue,
    4..80 in pursuit, 12..300 in fleets."""
    baseline: tuple[str, ...] = ()
    """Baselines to compare with, at each size the best of them; by default the environment's strong ones."""
    ratio: float | None = None
    """Tasks for each agent, rounded up; by default that of training: m and zh 1, w 1.13, rescue 2, pursuit 0.5;
    in fleets, requests for each vehicle beside those of the city."""
    episodes: int = 200
    """Episodes at each size, the same for every policy."""
    seed: int | Literal["sealed"] = 0
    """Which set of episodes, the same for every policy; sealed: the set for final evaluations, which training and
    search cannot draw from."""
    out: Path | None = None
    """Draw the curve into this picture: .png, .svg or .pdf (extra `plot`)."""
    json: bool = False
    """Print one JSON object."""

    def run(self) -> None:
        """Run the episodes, print the curve and draw it."""
        from muster.cli.plot import figure_file
        from muster.errors import InputError
        from muster.evaluation.groups import runs_of
        from muster.evaluation.scale import plan, run_curve

        if self.episodes < 1:
            raise InputError(f"episodes must be at least 1, got {self.episodes}")
        # The picture is opened first, so that a path that cannot be written fails before the episodes are run.
        with nullcontext() if self.out is None else figure_file(self.out, "muster scale --out") as canvas:
            runs = runs_of(self.policy)
            envs, names = plan(runs, self.env, self.sizes, self.baseline, self.ratio)
            curve = run_curve(
                self.policies_of(runs, next(iter(envs.values()))), envs, names, self.episodes, self.seed, _report
            )
            if self.json:
                print(json.dumps(curve.as_dict() | {"episodes": self.episodes, "seed": self.seed}))
            else:
                print_curve(curve)
            if canvas is not None:
                draw_curve(canvas[1], curve)
        if self.out is not None:
            print(self.out, file=sys.stderr)


def _report(point: Point) -> None:
    print(f"{point.env}: {point.verdict or 'one episode, no verdict'}", file=sys.stderr, flush=True)


def print_curve(curve: Curve) -> None:
    """Print one row for each size, and the conclusion."""
    from rich.console import Console
    from rich.table import Table

    head, rows = curve.table()
    grid: Any = Table(title=curve.title, title_justify="left")
    for name in head:
        grid.add_column(name, justify="left" if name in ("env", "verdict") else "right", overflow="fold")
    for row in rows:
        grid.add_row(*row)
    Console(width=max(125, Console().width)).print(grid)
    print(curve.conclusion())


# Verdict at a size -> marker, whether it is filled, label in the legend.
MARKS = {"wins": ("o", True, "wins"), "even": ("o", False, "even"), "loses": ("x", True, "loses")}


def draw_curve(axes: Any, curve: Curve) -> None:
    """Draw means of policy and best baseline by size, with intervals and verdicts, and the last win and first loss."""
    from muster.evaluation.statistics import MEANINGS

    names = ", ".join(dict.fromkeys(point.best.policy for point in curve.points))
    sizes = [point.size for point in curve.points]
    for label, colour, evaluations in (
        (Path(curve.policy).stem, "C0", [point.policy for point in curve.points]),
        (f"best baseline: {names}", "C1", [point.best for point in curve.points]),
    ):
        low, high = zip(*(evaluation.ci95 or (math.nan, math.nan) for evaluation in evaluations), strict=True)
        axes.plot(sizes, [evaluation.mean for evaluation in evaluations], color=colour, linewidth=1.2, label=label)
        axes.fill_between(sizes, low, high, color=colour, alpha=0.2)
    for verdict, (marker, filled, words) in MARKS.items():
        points = [point for point in curve.points if point.verdict == verdict]
        if points:
            axes.plot(
                [point.size for point in points],
                [point.policy.mean for point in points],
                linestyle="",
                marker=marker,
                markersize=5,
                color="C0",
                markerfacecolor="C0" if filled else "white",
                label=words,
            )
    for size, style, words in (
        (curve.last_win, "--", "last size at which it wins"),
        (curve.first_loss, ":", "first size at which it loses"),
    ):
        if size is not None:
            axes.axvline(size, color="grey", linestyle=style, linewidth=1, label=f"{words}: {size}")
    axes.set_xscale("log")
    axes.set_xticks(sizes, [str(size) for size in sizes])
    axes.minorticks_off()
    axes.set_xlabel("agents (of each type)")
    axes.set_ylabel(MEANINGS[curve.points[0].policy.metric].label)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7)
