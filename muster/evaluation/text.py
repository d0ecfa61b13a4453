"""Evaluations and differences as text and HTML, for terminals and notebooks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING, Any

from muster.evaluation.statistics import MEANINGS, Interval

if TYPE_CHECKING:
    from muster.envs.vector import Metric
    from muster.evaluation.compare import Difference
    from muster.evaluation.evaluate import Evaluation
    from muster.evaluation.groups import Group, GroupDifference

WIDTH = 29
"""Columns before the value in a line."""
SAME = 1e-9
"""Difference that sums in another order can make of equal values."""


def evaluation_lines(evaluation: Evaluation) -> list[str]:
    """An evaluation, one line for each metric."""
    lines = [describe(evaluation)]

    def add(words: str, value: str) -> None:
        lines.append(f"  {words:{WIDTH - 1}} {value}")

    meaning = MEANINGS[evaluation.metric]
    add(meaning.label, mean_of(evaluation, evaluation.metric))
    if evaluation.env.startswith("rescue:"):
        low, high = evaluation.ci95 or (math.nan, math.nan)
        earlier = replace(evaluation, mean=evaluation.mean - 1, ci95=evaluation.ci95 and (low - 1, high - 1))
        add("T - 1, as the paper prints", mean_of(earlier, "steps"))
    for name, value in evaluation.metrics.items():
        add(name.replace("_", " "), "-" if value is None else with_interval(value.mean, value.ci95))
    if meaning.limit_fails:
        add("hit the step limit", f"{evaluation.failed} ({100 * evaluation.failed / evaluation.episodes:.1f} %)")
    if evaluation.changes_per_decision is not None:
        add("change of task", f"{100 * evaluation.changes_per_decision:.2f} % of the agents a decision")
    add("policy", f"{evaluation.ms_per_decision:.4g} ms a decision, in batches")
    pace = evaluation.decisions_per_second
    add("with the environment", f"{pace:,.0f} decisions a second" if pace >= 10 else f"{pace:.2g} decisions a second")
    return lines


def describe(evaluation: Evaluation) -> str:
    """Which policy on which environment."""
    noise = ", noise on" if evaluation.noise else ""
    ahead = f", {evaluation.look_ahead}" if evaluation.look_ahead else ""
    return f"{evaluation.policy} on {evaluation.env}: {episodes_of(evaluation)}{noise}{ahead}"


def episodes_of(evaluation: Evaluation) -> str:
    """Which episodes were run."""
    if evaluation.all:
        return f"all {evaluation.episodes:,} episodes"
    return f"{_counted(evaluation.episodes)} of seed {evaluation.seed}"


def _counted(episodes: int) -> str:
    return f"{episodes:,} episode{'s' if episodes != 1 else ''}"


def difference_lines(difference: Difference, metric: Metric) -> list[str]:
    """A paired difference in words, with one line for each further metric that differs."""
    mean = mean_of(difference, metric, "+")
    counts = f"higher on {difference.higher}, equal on {difference.equal}, lower on {difference.lower}"
    whole = f"{difference.policy} - {difference.reference}: {mean} on {_counted(difference.episodes)}; {counts}"
    return [whole, *_metric_lines(difference)]


def _metric_lines(difference: Difference | GroupDifference) -> list[str]:
    return [
        f"  {name.replace('_', ' ')}: {with_interval(gap.mean, gap.ci95, sign='+')}"
        for name, gap in difference.metrics.items()
        if any(abs(value) > SAME for value in (gap.mean, *(gap.ci95 or ())))
    ]


def group_line(group: Group, metric: Metric) -> str:
    """The runs of one method in words."""
    runs = f"{len(group.runs)} run{'s' if len(group.runs) > 1 else ''}"
    return f"{group.policy}, {runs}: interquartile mean {with_interval(group.iqm, group.ci95, MEANINGS[metric].digits)}"


def group_difference_lines(difference: GroupDifference, metric: Metric) -> list[str]:
    """The difference of two methods in words, with one line for each further metric that differs."""
    gap = with_interval(difference.difference, difference.ci95, MEANINGS[metric].digits, sign="+")
    whole = f"{difference.policy} - {difference.reference}: {gap}"
    if difference.probability_ci95:
        probability = with_interval(difference.probability_of_improvement, difference.probability_ci95)
        whole += f"; a run of it is better with probability {probability}"
    return [whole, *_metric_lines(difference)]


def mean_of(result: Evaluation | Difference, metric: Metric, sign: str = "") -> str:
    """A mean and its 95 % interval."""
    return with_interval(result.mean, result.ci95, MEANINGS[metric].digits, sign)


def with_interval(mean: float, interval: Interval | None, digits: int = 2, sign: str = "") -> str:
    """A mean and its 95 % interval, which one episode does not have."""
    if interval is None:
        return f"{mean:{sign}.{digits}f}  (one episode: no interval)"
    low, high = interval
    return f"{mean:{sign}.{digits}f}  (95 %: {low:{sign}.{digits}f} to {high:{sign}.{digits}f})"


def in_brackets(result: Evaluation | Difference, metric: Metric, sign: str = "") -> str:
    """Mean and interval for a table's cell: "11.75 [11.38 12.14]"."""
    return _cell(result.mean, result.ci95, f"{sign}.{MEANINGS[metric].digits}f")


def _cell(mean: float, interval: Interval | None, form: str = ".2f") -> str:
    return f"{mean:{form}} [{interval[0]:{form}} {interval[1]:{form}}]" if interval else f"{mean:{form}}"


def text_table(head: Sequence[str], rows: Iterable[Sequence[str]], remarks: Iterable[str]) -> str:
    """A table as aligned text, for a `repr`."""
    lines = [list(head), *(list(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    shown = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    return "\n".join([*shown, *remarks])


def html_table(head: Sequence[str], rows: Iterable[Sequence[str]], remarks: Iterable[str], caption: str) -> str:
    """A table as HTML, for a notebook."""

    def line(cells: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    body = "".join(line(row, "td") for row in rows)
    notes = "".join(f"<div>{escape(remark)}</div>" for remark in remarks)
    return f"<table><caption>{escape(caption)}</caption>{line(head, 'th')}{body}</table>{notes}"


def evaluation_table(evaluations: Sequence[Evaluation]) -> tuple[list[str], list[list[str]]]:
    """Head and rows of evaluations on the same episodes."""
    metric = evaluations[0].metric
    names = list(dict.fromkeys(name for one in evaluations for name in one.metrics))
    limits = MEANINGS[metric].limit_fails
    head = ["policy", f"{MEANINGS[metric].short} [95 %]", *names, *["hit the limit"] * limits]
    rows = []
    for one in evaluations:
        metrics: list[Any] = [one.metrics.get(name) for name in names]
        shown = ["–" if mean is None else _cell(*mean) for mean in metrics]
        changes = "–" if one.changes_per_decision is None else f"{100 * one.changes_per_decision:.2f} %"
        limit = [f"{100 * one.failed / one.episodes:.1f} %"] * limits
        name = f"{one.policy}, {one.look_ahead}" if one.look_ahead else one.policy
        rows.append([name, in_brackets(one, metric), *shown, *limit, changes, f"{one.ms_per_decision:.4g}"])
    return [*head, "changes", "ms a decision"], rows
