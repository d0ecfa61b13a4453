"""Figures as people read them."""

from __future__ import annotations

from muster.evaluation.evaluate import Difference, Evaluation
from muster.evaluation.statistics import Interval


def evaluation_lines(found: Evaluation) -> list[str]:
    """The figures of one evaluation, a line each."""
    noise = ", noise on" if found.noise else ""
    lines = [f"{found.policy} on {found.env}: {found.episodes:,} episodes of seed {found.seed}{noise}"]
    if found.mean is None or found.ci95 is None:
        lines.append("  every episode hit the step limit")
    elif found.metric == "steps":
        shifted = found.ci95[0] - 1, found.ci95[1] - 1
        lines.append(f"  steps to the last task, T    {with_interval(found.mean, found.ci95)}")
        lines.append(f"  T - 1, as the paper prints   {with_interval(found.mean - 1, shifted)}")
    else:
        lines.append(f"  win rate                     {with_interval(found.mean, found.ci95, digits=3)}")
    share = 100 * found.failed / found.episodes
    lines.append(f"  hit the step limit           {found.failed} ({share:.1f} %)")
    lines.append(f"  policy                       {found.ms_per_decision:.4g} ms a decision, in batches")
    lines.append(f"  with the world               {found.decisions_per_second:,.0f} decisions a second")
    return lines


def difference_line(found: Difference, metric: str) -> str:
    """One paired difference in words."""
    if found.mean is None or found.ci95 is None:
        return f"{found.policy} and {found.reference}: no episode that both finished"
    digits = 3 if metric == "win_rate" else 2
    return (
        f"{found.policy} - {found.reference}: {with_interval(found.mean, found.ci95, digits, sign='+')} on "
        f"{found.episodes:,} episodes; higher on {found.higher}, equal on {found.equal}, lower on {found.lower}"
    )


def with_interval(mean: float, interval: Interval, digits: int = 2, sign: str = "") -> str:
    """A mean and its 95 % interval."""
    low, high = interval
    return f"{mean:{sign}.{digits}f}  (95 %: {low:{sign}.{digits}f} to {high:{sign}.{digits}f})"
