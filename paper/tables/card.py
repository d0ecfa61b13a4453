"""Policy cards: what is on record of a policy, on one page, with what it cannot do."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from muster.checkout import last_commits
from muster.envs.registry import EXAMPLES, kind_of, make
from muster.errors import MusterError
from muster.evaluation.compare import compare
from muster.policy.files import fingerprint
from muster.policy.learned import LearnedPolicy, features_of
from muster.policy.names import SHIPPED, load, resolve, shipped
from muster.settings import to_text
from paper.tables.figures import Figure, figures_of

NOT_RECORDED = "not recorded"


def make_card(name: str, measured: Sequence[Figure] = (), latencies: dict[str, float] | None = None) -> dict[str, Any]:
    """The card of a policy as plain values, from its file and the records; what was measured for it is added."""
    policy = load(name)
    header, spec, features = policy.header, policy.spec, features_of(policy)
    world = kind_of(str(header.get("env", "")))
    found = figures_of(world, run_of(name, policy) if name in shipped() else Path(name).stem)
    figures = [*(found.figures if found else ()), *measured]
    return {
        "policy": name,
        "about": shipped().get(name, ""),
        "trained_on": list(header.get("envs") or [header.get("env", NOT_RECORDED)]),
        "learner": header.get("learner", NOT_RECORDED),
        "seed": header.get("seed"),
        "steps": header.get("steps"),
        "cpu_minutes": header.get("cpu_minutes"),
        "command": command_of(name, policy),
        "commit": commit_of(name, policy),
        "model": {"kind": spec.kind, "numbers": sum(array.size for array in policy.parameters.values())},
        "corrects_prior": spec.corrects,
        "learned_limits": list(spec.learned),
        "unlimited": spec.unlimited,
        "weights_hash": fingerprint(policy.parameters),
        "inference": {entry: getattr(policy.inference, entry) for entry in policy.inference.__slots__},
        "noise": {entry: getattr(policy.noise, entry) for entry in policy.noise.__slots__},
        "features": features.as_dict(),
        "feature_hash": features.hash,
        "figures": [figure.as_dict() for figure in figures],
        "figures_from": found.command if found else "",
        "stops_winning": stops_winning(figures),
        "latency_ms": latencies or {},
        "known_failures": failures(figures, policy) + BEYOND_RECORDS.get(name, []),
        "not_compared": not_compared(figures),
    }


def run_of(name: str, policy: LearnedPolicy) -> str:
    """The run that a shipped policy comes from, as the records call it."""
    learner, seed = policy.header.get("learner"), policy.header.get("seed")
    # The paper's own update draws normal noise; choices, which took its name over, learns under Gumbel's.
    played = learner == "a2c" and policy.noise.innovations != "gumbel"
    # Positional models are taught by a direct policy and not by the optimum.
    distilled = learner == "imitate" and policy.spec.kind == "pem"
    variant = "-played" if played else "-distilled" if distilled else ""
    return f"{name}{variant}-{learner}-s{seed}"


def command_of(name: str, policy: LearnedPolicy) -> str:
    """What trained it, as far as that is on record."""
    folder = Path(name)
    if folder.is_dir() and (folder / "config.toml").exists():
        return f"muster train --config {folder / 'config.toml'}"
    if name in TOLD_ELSEWHERE:
        return TOLD_ELSEWHERE[name]
    if name in shipped():
        kept = name.partition("-")[0]
        kept = "context" if policy.spec.kind == "context" else "routes" if policy.inference.method == "routes" else kept
        return f"muster train --config paper/{kept}/runs/{run_of(name, policy)}/config.toml"
    return NOT_RECORDED


TOLD_ELSEWHERE = {
    "rescue-small-quad-dm": "muster train rescue:2x4 rescue:3x6 rescue:4x8 rescue:5x10 --learner es --form local "
    "--es.episodes 32 --minutes 1.5 --seed 1"
}
"""Of runs whose settings were not kept."""


def commit_of(name: str, policy: LearnedPolicy) -> str:
    """The commit of the code that trained it; of those shipped from before that was kept, the one that has the file."""
    if "commit" in policy.header:
        return str(policy.header["commit"])
    added = last_commits(SHIPPED).get(f"{name}.safetensors") if name in shipped() else None
    return f"{added} put the file there; that of its training is {NOT_RECORDED}" if added else NOT_RECORDED


BEYOND_RECORDS = {
    "rescue-2x4-quad-dm": [
        "rescue:16x32 and larger: worse than the rule lp-distance (muster scale rescue-2x4-quad-dm --env rescue)"
    ]
}
"""Failures at sizes that no table has, measured once and written down in docs/how-to/scale.md."""


def stops_winning(figures: Sequence[Figure]) -> str:
    """The first size on record at which the policy is not better than the best rule."""
    if not figures:
        return "no figures are on record"
    for figure in figures:
        if figure.verdict != "better":
            word = "no better than" if figure.verdict == "even" else "worse than"
            return f"{figure.test}: {word} {figure.best_rule}"
    return f"nowhere on record (up to {figures[-1].test}; muster scale plays larger ones)"


def failures(figures: Sequence[Figure], policy: LearnedPolicy) -> list[str]:
    """What it is known not to do."""
    found = [
        f"{figure.test}: worse than the rule {figure.best_rule} ({figure.rivals[figure.best_rule]:.4g})"
        for figure in figures
        if figure.verdict == "worse"
    ]
    found += [f"{figure.test}: {figure.failed:.1%} of episodes hit the limit" for figure in figures if figure.failed]
    remarks = dict.fromkeys(figure.remark for figure in figures if figure.unit == "win rate" and figure.remark)
    found += list(remarks)
    if policy.spec.kind == "pem":
        found.append("a pem model reads planes: it needs torch and is not served by muster serve")
    return found


def not_compared(figures: Sequence[Figure]) -> list[str]:
    """Rules of the environment that no figure compares the policy with."""
    if not figures:
        return []
    known = {rule for figure in figures for rule in figure.rivals}
    family = kind_of(figures[0].test)
    example = next((env for env in EXAMPLES if kind_of(env) == family), figures[0].test)
    return [rule for rule in make(example).baselines() if rule not in known and rule not in BOUNDS]


def measure(name: str, env: str, episodes: int, seed: int) -> tuple[Figure, float]:
    """The policy beside its environment's rules on the same episodes, and its milliseconds a decision, in batches."""
    rules = [rule for rule in make(env).baselines() if rule not in BOUNDS]
    found = compare([*rules, name], env, episodes, seed)
    *rivals, own = found.evaluations
    fewer = own.metric == "steps"
    means = {rule.policy: rule.mean for rule in rivals if rule.mean is not None}
    best = (min if fewer else max)(means, key=lambda rule: means[rule])
    paired = compare([best, name], env, episodes, seed).differences[-1]
    low, high = paired.ci95 or (0.0, 0.0)
    verdict = ("better" if fewer else "worse") if high < 0 else ("worse" if fewer else "better") if low > 0 else "even"
    units = {"steps": "steps", "win_rate": "win rate", "return": "return"}
    figure = Figure(
        test=env,
        unit=units[own.metric],
        episodes=own.episodes,
        mean=own.mean,
        ci95=own.ci95,
        rivals=means,
        best_rule=best,
        verdict=verdict,  # type: ignore[arg-type]
        paired=True,
        failed=own.failed / own.episodes,
        remark=f"measured with --episodes {episodes} --seed {seed}",
    )
    return figure, own.ms_per_decision


def latencies_of(card: dict[str, Any]) -> dict[str, float]:
    """By env on record, the milliseconds of one decision in one env: the median of several, on this machine.

    Environments that cannot be made here, for want of their data or of torch, are left out.
    """
    found = {}
    for env in dict.fromkeys(figure["test"] for figure in card["figures"]):
        with suppress(MusterError):
            world = make(env)
            policy = resolve(card["policy"], world)
            seen = world.observe()
            policy.act(seen)
            seconds = []
            for _ in range(DECISIONS):
                began = time.perf_counter()
                policy.act(seen)
                seconds.append(time.perf_counter() - began)
            found[env] = 1e3 * float(np.median(seconds))
    return found


DECISIONS = 15
"""Timed for a card in each environment."""
BOUNDS = ("topline", "hindsight", "knowing")
"""Rules that know more than a policy can: bounds, not rivals."""


def as_markdown(card: dict[str, Any]) -> str:
    """The card as a page."""
    inference, noise = card["inference"], card["noise"]
    # Others explore by weights or by candidates; a policy of theirs has noise for those who want some.
    explored = "noise in training" if card["learner"] == "a2c" else "noise, where asked for"
    steps = NOT_RECORDED if card["steps"] is None else f"{card['steps']:,}"
    minutes = NOT_RECORDED if card["cpu_minutes"] is None else f"{card['cpu_minutes']:.1f}"
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
        f"| inference | {', '.join(f'{name} {to_text(value)}' for name, value in inference.items())} |",
        f"| {explored} | {', '.join(f'{name} {to_text(value)}' for name, value in noise.items())} |",
        f"| stops winning | {card['stops_winning']} |",
        "",
        f"## Features ({card['feature_hash']})",
        "",
        *(f"- {kind}: {', '.join(names)}" for kind, names in card["features"].items() if names),
        "",
        "## Figures",
        "",
        *_table(card["figures"]),
        "",
    ]
    if card["figures_from"]:
        lines += [f"From `{card['figures_from']}`; 95 % intervals.", ""]
    if card["latency_ms"]:
        timed = [f"- {env}: {ms:.3g}" for env, ms in card["latency_ms"].items()]
        lines += ["## Milliseconds a decision, on this machine", "", *timed, ""]
    if card["not_compared"]:
        lines += [f"Not on this record: {', '.join(card['not_compared'])}.", ""]
    lines += ["## Known failures", "", *(f"- {text}" for text in card["known_failures"] or ["none on record"])]
    return "\n".join(lines)


def _table(figures: Sequence[dict[str, Any]]) -> list[str]:
    if not figures:
        return ["None on record; `muster card POLICY --envs ENV …` measures some."]
    rows = ["| | episodes | policy | best rule | verdict | |", "|---|---|---|---|---|---|"]
    for figure in figures:
        low, high = figure["ci95"] or (float("nan"), float("nan"))
        mean = float("nan") if figure["mean"] is None else figure["mean"]
        own = f"{mean:.4g} ({low:.4g} to {high:.4g}) {figure['unit']}"
        rival = f"{figure['best_rule']} {figure['rivals'][figure['best_rule']]:.4g}"
        how = figure["verdict"] + (", paired" if figure["paired"] else "")
        rows.append(f"| {figure['test']} | {figure['episodes']} | {own} | {rival} | {how} | {figure['remark']} |")
    return rows


def as_text(card: dict[str, Any]) -> str:
    """The card as JSON."""
    return json.dumps(card, allow_nan=False)
