"""Results as people read them, in a terminal and in a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from muster.evaluation.statistics import MEANINGS, Interval

if TYPE_CHECKING:
    from muster.envs.vector import Metric
    from muster.evaluation.compare import Difference
    from muster.evaluation.evaluate import Evaluation
    from muster.evaluation.groups import Group, GroupDifference

WIDTH = 29
"""Of the words before a figure."""


def evaluation_lines(found: Evaluation) -> list[str]:
    """One evaluation, a line for each value."""
    lines = [describe(found)]

    def add(words: str, figure: str) -> None:
        lines.append(f"  {words:{WIDTH}}{figure}")

    if found.metric == "steps":
        shifted = found.ci95[0] - 1, found.ci95[1] - 1
        add("steps to the last task, T", with_interval(found.mean, found.ci95))
        if found.env.startswith("rescue:"):
            add("T - 1, as the paper prints", with_interval(found.mean - 1, shifted))
    else:
        meaning = MEANINGS[found.metric]
        add(meaning.label, with_interval(found.mean, found.ci95, meaning.digits))
    for name, value in found.metrics.items():
        add(name.replace("_", " "), "-" if value is None else with_interval(value.mean, value.ci95))
    if MEANINGS[found.metric].limit_fails:
        add("hit the step limit", f"{found.failed} ({100 * found.failed / found.episodes:.1f} %)")
    if found.changes_per_decision is not None:
        add("change of task", f"{100 * found.changes_per_decision:.2f} % of the agents a decision")
    add("policy", f"{found.ms_per_decision:.4g} ms a decision, in batches")
    pace = found.decisions_per_second
    add("with the environment", f"{pace:,.0f} decisions a second" if pace >= 10 else f"{pace:.2g} decisions a second")
    return lines


def describe(found: Evaluation) -> str:
    """Which policy on which environment."""
    noise = ", noise on" if found.noise else ""
    ahead = f", {found.look_ahead}" if found.look_ahead else ""
    return f"{found.policy} on {found.env}: {episodes_of(found)}{noise}{ahead}"


def episodes_of(found: Evaluation) -> str:
    """Which episodes were run."""
    if found.all:
        return f"all {found.episodes:,} episodes"
    return f"{found.episodes:,} episode{'s' if found.episodes != 1 else ''} of seed {found.seed}"


def difference_lines(found: Difference, metric: Metric) -> list[str]:
    """One paired difference in words, and that of each further metric."""
    digits = MEANINGS[metric].digits
    whole = (
        f"{found.policy} - {found.reference}: {with_interval(found.mean, found.ci95, digits, sign='+')} on "
        f"{found.episodes:,} episodes; higher on {found.higher}, equal on {found.equal}, lower on {found.lower}"
    )
    return [whole, *_metric_lines(found)]


def _metric_lines(found: Difference | GroupDifference) -> list[str]:
    return [
        f"  {name.replace('_', ' ')}: {with_interval(gap.mean, gap.ci95, sign='+')}"
        for name, gap in found.metrics.items()
    ]


def group_line(found: Group, metric: Metric) -> str:
    """The runs of one method in words."""
    runs = f"{len(found.runs)} run{'s' if len(found.runs) > 1 else ''}"
    return f"{found.policy}, {runs}: interquartile mean {with_interval(found.iqm, found.ci95, MEANINGS[metric].digits)}"


def group_difference_lines(found: GroupDifference, metric: Metric) -> list[str]:
    """One method beside another in words, and the difference of each further metric."""
    gap = with_interval(found.difference, found.ci95, MEANINGS[metric].digits, sign="+")
    probability = with_interval(found.probability_of_improvement, found.probability_ci95)
    whole = f"{found.policy} - {found.reference}: {gap}; a run of it is better with probability {probability}"
    return [whole, *_metric_lines(found)]


def with_interval(mean: float, interval: Interval, digits: int = 2, sign: str = "") -> str:
    """A mean and its 95 % interval."""
    low, high = interval
    return f"{mean:{sign}.{digits}f}  (95 %: {low:{sign}.{digits}f} to {high:{sign}.{digits}f})"


def in_brackets(found: Evaluation | Difference, metric: Metric, sign: str = "") -> str:
    """Mean and interval as short as they go: "11.75 [11.38 12.14]"."""
    form = f"{sign}.{MEANINGS[metric].digits}f"
    return f"{found.mean:{form}} [{found.ci95[0]:{form}} {found.ci95[1]:{form}}]"


def text_table(head: Sequence[str], rows: Iterable[Sequence[str]], remarks: Iterable[str]) -> str:
    """Columns as wide as need be, for a `repr`."""
    lines = [list(head), *(list(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    shown = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    return "\n".join([*shown, *remarks])


def html_table(head: Sequence[str], rows: Iterable[Sequence[str]], remarks: Iterable[str], caption: str) -> str:
    """The same for a notebook."""

    def line(cells: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    body = "".join(line(row, "td") for row in rows)
    notes = "".join(f"<div>{escape(remark)}</div>" for remark in remarks)
    return f"<table><caption>{escape(caption)}</caption>{line(head, 'th')}{body}</table>{notes}"


def evaluation_table(found: Sequence[Evaluation]) -> tuple[list[str], list[list[str]]]:
    """Head and rows of evaluations on the same episodes, with the columns that have something to say."""
    metric = found[0].metric
    names = list(dict.fromkeys(name for one in found for name in one.metrics))
    limits = MEANINGS[metric].limit_fails
    head = ["policy", f"{MEANINGS[metric].short} [95 %]", *names, *["hit the limit"] * limits]
    rows = []
    for one in found:
        metrics: list[Any] = [one.metrics.get(name) for name in names]
        shown = ["–" if f is None else f"{f.mean:.2f} [{f.ci95[0]:.2f} {f.ci95[1]:.2f}]" for f in metrics]
        changes = "–" if one.changes_per_decision is None else f"{100 * one.changes_per_decision:.2f} %"
        limit = [f"{100 * one.failed / one.episodes:.1f} %"] * limits
        name = f"{one.policy}, {one.look_ahead}" if one.look_ahead else one.policy
        rows.append([name, in_brackets(one, metric), *shown, *limit, changes, f"{one.ms_per_decision:.4g}"])
    return [*head, "changes", "ms a decision"], rows
