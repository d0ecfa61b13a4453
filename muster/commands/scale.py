"""`muster scale`: how far a policy carries beyond the size it was trained on."""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tyro.conf import Positional

if TYPE_CHECKING:
    from muster.evaluation.scale import Curve, Point


@dataclass(frozen=True)
class Scale:
    """Play one policy on worlds of growing size beside the best baseline, and say where it stops winning."""

    policy: Positional[str]
    """A shipped policy, a path to a run or model file, or a baseline of the environment."""
    env: str
    """battle:m, battle:w, battle:zh or rescue; options follow a comma, such as rescue,grid=32."""
    sizes: str | None = None
    """5..100 (about eight sizes), 5..100:5 (in steps) or 5,10,20; by default 5..100 in battles, 2..80 in rescue."""
    baseline: tuple[str, ...] = ()
    """What to compare with, the best of several at each size; by default the strong rules of the environment."""
    ratio: float | None = None
    """Tasks for each agent, rounded up; by default that of training: m and zh 1, w 1.13, rescue 2."""
    episodes: int = 200
    """Episodes a size, the same for everyone."""
    seed: int = 0
    """Which set of episodes."""
    out: Path | None = None
    """Draw the curve into this picture: .png, .svg or .pdf (extra `plot`)."""
    json: bool = False
    """Print one JSON object."""

    def run(self) -> None:
        """Play, print and draw."""
        from muster.commands.picture import picture
        from muster.errors import InputError
        from muster.evaluation.scale import plan, run_curve

        if self.episodes < 1:
            raise InputError(f"episodes must be at least 1, got {self.episodes}")
        # The picture is opened first: what would spoil it is known before the episodes are played.
        with nullcontext() if self.out is None else picture(self.out, "muster scale --out") as canvas:
            worlds, names = plan(self.policy, self.env, self.sizes, self.baseline, self.ratio)
            curve = run_curve(self.policy, worlds, names, self.episodes, self.seed, _report)
            if self.json:
                print(json.dumps(curve.as_dict() | {"episodes": self.episodes, "seed": self.seed}))
            else:
                print_curve(curve, self.episodes, self.seed)
            if canvas is not None:
                draw_curve(canvas[1], curve)
        if self.out is not None:
            print(self.out, file=sys.stderr)


def _report(point: Point) -> None:
    print(f"{point.env}: {point.verdict}", file=sys.stderr, flush=True)


def print_curve(curve: Curve, episodes: int, seed: int) -> None:
    """A row a size, and the conclusion."""
    from rich.console import Console
    from rich.table import Table

    wins = curve.points[0].policy.metric == "win_rate"
    grid: Any = Table(
        title=f"{curve.policy}: {'win rate' if wins else 'steps T'}, {episodes} episodes a size (seed {seed})",
        title_justify="left",
    )
    for name in ("size", "world", "policy [95 %]", "best baseline [95 %]", "paired difference [95 %]", "verdict"):
        grid.add_column(name, justify="left" if name in ("world", "verdict") else "right")
    failed = any(point.policy.failed or point.best.failed for point in curve.points)
    if failed:
        grid.add_column("hit the limit", justify="right")
    for point in curve.points:
        best = f"{point.best.policy} {_figure(point.best, wins)}"
        limits = [f"{point.policy.failed} / {point.best.failed}"] if failed else []
        gap = _figure(point.difference, wins, "+")
        grid.add_row(str(point.size), point.env, _figure(point.policy, wins), best, gap, point.verdict, *limits)
    Console(width=max(125, Console().width)).print(grid)
    print(curve.conclusion())


def _figure(found: Any, wins: bool, sign: str = "") -> str:
    """Mean and interval of an evaluation or a difference."""
    if found.mean is None or found.ci95 is None:
        return "–"
    form = f"{sign}.{3 if wins else 2}f"
    return f"{found.mean:{form}} [{found.ci95[0]:{form}} {found.ci95[1]:{form}}]"


def draw_curve(axes: Any, curve: Curve) -> None:
    """Policy and best baseline over the size, with intervals; a line where it stops winning."""
    wins = curve.points[0].policy.metric == "win_rate"
    names = ", ".join(dict.fromkeys(point.best.policy for point in curve.points))
    for label, own in ((Path(curve.policy).stem, True), (f"best baseline: {names}", False)):
        found = [(point.size, point.policy if own else point.best) for point in curve.points]
        shown = [(size, one.mean, one.ci95) for size, one in found if one.mean is not None and one.ci95 is not None]
        sizes = [size for size, _, _ in shown]
        axes.plot(sizes, [mean for _, mean, _ in shown], marker="o", markersize=3, label=label)
        axes.fill_between(sizes, [ci[0] for _, _, ci in shown], [ci[1] for _, _, ci in shown], alpha=0.2)
    if curve.stops_at is not None:
        axes.axvline(curve.stops_at, color="grey", linestyle=":", linewidth=1, label="stops winning")
    axes.set_xscale("log")
    sizes = [point.size for point in curve.points]
    axes.set_xticks(sizes, [str(size) for size in sizes])
    axes.minorticks_off()
    axes.set_xlabel("agents (of each type)")
    axes.set_ylabel("win rate" if wins else "steps to the last task, T")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7)
