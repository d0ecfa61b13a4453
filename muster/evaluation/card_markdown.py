"""Policy cards as Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from muster.evaluation.card import UNKNOWN
from muster.models.context_features import MEANINGS
from muster.settings import to_text

SHOWN_WEIGHTS = 20
"""Weights of a linear model in the Markdown card; the JSON has all."""
SAME_FOR_ALL_TASKS = ("agent", "global", "constant")
"""Kinds of features of h."""
EXPLORERS = ("ppo", "a2c")
"""Learners that explore by the policy's noise on its scores."""


def as_markdown(card: dict[str, Any]) -> str:
    """The card as Markdown."""
    steps = UNKNOWN if card["steps"] is None else f"{card['steps']:,}"
    minutes = UNKNOWN if card["cpu_minutes"] is None else f"{card['cpu_minutes']:.1f}"
    model = f"{card['model']['kind']}, {card['model']['numbers']:,} numbers"
    model += f", {' and '.join(card['learned_limits'])} learned" if card["learned_limits"] else ""
    model += ", no capacities" if card["unlimited"] else ""
    lines = [
        f"# {card['policy']}",
        "",
        *([card["about"], ""] if card["about"] else []),
        "| | |",
        "|---|---|",
        f"| trained on | {', '.join(card['trained_on'])} |",
        f"| learner | {card['learner']}, seed {card['seed']}, {steps} steps, {minutes} CPU minutes |",
        f"| command | `{card['command']}` |",
        f"| commit | {card['commit']} |",
        f"| model | {model}, {card['weights_hash'][:12]} |",
        f"| inference | {_listed(card['inference'])} |",
        *([f"| exploration noise | {_listed(card['noise'])} |"] if card["learner"] in EXPLORERS else []),
        f"| stops winning | {card['stops_winning']} |",
        "",
        *_weights_section(card),
        f"## Features ({card['feature_hash']})",
        "",
        *(f"- {kind}: {', '.join(names)}" for kind, names in card["features"].items() if names),
        "",
        "## Results",
        "",
        *_results_table(card["results"]),
        "",
    ]
    if card["results_from"]:
        lines += [f"From `{card['results_from']}`; 95 % intervals.", ""]
    if card.get("latency_ms"):
        timed = [f"- {env}: {ms:.3g}" for env, ms in card["latency_ms"].items()]
        lines += ["## Milliseconds a decision, on this machine", "", *timed, ""]
    if card["not_compared"]:
        lines += [f"Not compared with: {', '.join(card['not_compared'])}.", ""]
    lines += ["## Known failures", "", *(f"- {text}" for text in card["known_failures"] or ["none recorded"])]
    return "\n".join(lines)


def _listed(settings: Mapping[str, Any]) -> str:
    """Names and values on one line."""
    return ", ".join(f"{name} {to_text(value)}" for name, value in settings.items())


def _weights_section(card: dict[str, Any]) -> list[str]:
    """A sentence about the weights of a linear model, and a table of the largest."""
    if "weights" not in card:
        return []
    rows, shown = (
        ["| feature | kind | score | effect | weight |", "|---|---|---|---|---|"],
        card["weights"][:SHOWN_WEIGHTS],
    )
    for entry in shown:
        weight = "" if entry["weight"] is None else f"{entry['weight']:.3g}"
        rows.append(f"| {entry['feature']} | {entry['kind']} | {entry['score']} | {entry['effect']:+.2f} | {weight} |")
    left = len(card["weights"]) - SHOWN_WEIGHTS
    more = [f"and {left} of less effect (`--json` has all).", ""] if left > 0 else []
    effect = "Effect: standard deviations of the prior for one of the feature; weight: per unit of the feature."
    return ["## What it learned", "", card["weights_in_words"], "", *rows, "", effect, "", *more, *_notes(shown)]


def _notes(weights: Sequence[dict[str, Any]]) -> list[str]:
    """What the context features among the weights are, and what weights that are equal for all tasks can change."""
    names = {name for entry in weights for name in entry["feature"].split(" x ")}
    context = [f"{name} is {meaning}" for name, meaning in MEANINGS.items() if name in names]
    equal = [
        kind for kind in SAME_FOR_ALL_TASKS if any((entry["score"], entry["kind"]) == ("h", kind) for entry in weights)
    ]
    lines = [f"Context features, in standard deviations of the prior: {'; '.join(context)}."] if context else []
    if equal:
        lines.append(
            f"A feature that is the same for all tasks of an agent ({', '.join(equal)}) cannot change which task it "
            "takes, only whether it takes any."
        )
    return [text for line in lines for text in (line, "")]


def _results_table(results: Sequence[dict[str, Any]]) -> list[str]:
    """A table with a row for each environment."""
    if not results:
        return ["None yet; `muster card POLICY --envs ENV …` measures some."]
    rows = ["| | episodes | policy | best baseline | verdict | |", "|---|---|---|---|---|---|"]
    for result in results:
        mean = float("nan") if result["mean"] is None else result["mean"]
        interval = "({:.4g} to {:.4g}) ".format(*result["ci95"]) if result["ci95"] else ""
        policy = f"{mean:.4g} {interval}{result['unit']}"
        baseline = f"{result['best_baseline']} {result['baselines'][result['best_baseline']]:.4g}"
        verdict = result["verdict"] + (", paired" if result["paired"] else "")
        rows.append(
            f"| {result['env']} | {result['episodes']} | {policy} | {baseline} | {verdict} | {result['remark']} |"
        )
    return rows
