"""Policy cards: training, features, results by size and known failures of a policy.

A card is a JSON object in a file beside the weights, written when a policy is shipped or a run ends. Without that file
a card is made from the header of the policy's file.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from muster.custom import is_custom
from muster.data import BatchObservation, Bools, Floats
from muster.envs.features import BLOCKS
from muster.envs.registry import BUILT_IN, kind_of, make
from muster.errors import ModelFileError, MusterError
from muster.evaluation.compare import compare
from muster.evaluation.statistics import Interval, Verdict
from muster.evaluation.weights import in_words, named_weights
from muster.policy.files import fingerprint
from muster.policy.learned import LearnedPolicy, features_of
from muster.policy.names import SHIPPED, load, resolve, shipped
from muster.rng import episode_seeds
from muster.rollout import act_with, reset, rollout
from muster.storage import write_atomically

UNKNOWN = "not recorded"
RUN_CARD = "card.json"
TIMED_DECISIONS = 15
LARGEST_CARD = 2**20
RANGE_EPISODES, RANGE_SEED = 64, 2_000
"""Episodes over which the ranges of features are measured."""
BOUNDS = ("topline", "hindsight", "knowing")
"""Baselines that use more information than a policy has: bounds on the outcome, never the best baseline."""


@dataclass(frozen=True, slots=True)
class Result:
    """Outcome of a policy and of the baselines at one size."""

    env: str
    unit: str
    """steps (fewer are better), win rate, return or profit."""
    episodes: int
    mean: float | None
    ci95: Interval | None
    baselines: dict[str, float]
    """Baseline -> mean."""
    best_baseline: str
    verdict: Verdict
    """Against the best baseline: better or worse by 95 % intervals, else even."""
    paired: bool
    """Whether the verdict is by the interval of paired differences; otherwise by intervals that do not overlap."""
    failed: float
    """Share of episodes that hit the step limit."""
    remark: str = ""


def make_card(
    name: str, policy: LearnedPolicy, results: Sequence[Result] = (), failures: Sequence[str] = (), **facts: Any
) -> dict[str, Any]:
    """The card of a policy as JSON values: from its header, `results`, and further fields (about, command, …)."""
    header, spec, features = policy.header, policy.spec, features_of(policy)
    return {
        "policy": name,
        "about": "",
        "trained_on": list(header.get("envs") or [header.get("env", UNKNOWN)]),
        "learner": header.get("learner", UNKNOWN),
        "seed": header.get("seed"),
        "steps": header.get("steps"),
        "cpu_minutes": header.get("cpu_minutes"),
        "command": UNKNOWN,
        "commit": str(header.get("commit", UNKNOWN)),
        "model": {"kind": spec.kind, "numbers": sum(array.size for array in policy.parameters.values())},
        "corrects_prior": spec.corrects,
        "learned_limits": list(spec.learned),
        "unlimited": spec.unlimited,
        "weights_hash": fingerprint(policy.parameters),
        "inference": {entry: getattr(policy.inference, entry) for entry in policy.inference.__slots__},
        "noise": {entry: getattr(policy.noise, entry) for entry in policy.noise.__slots__},
        "features": features.as_dict(),
        "feature_hash": features.hash,
        "results": [asdict(result) for result in results],
        "results_from": "",
        "stops_winning": stops_winning(results),
        "known_failures": known_failures(results, policy) + list(failures),
        "not_compared": [],
        **_learned_weights(policy),
        **facts,
    }


def _learned_weights(policy: LearnedPolicy) -> dict[str, Any]:
    """Weights of a linear model by effect, and a sentence about the largest; empty for other models."""
    if policy.spec.kind != "linear":
        return {}
    weights = named_weights(policy)
    return {"weights": [asdict(weight) for weight in weights], "weights_in_words": in_words(weights)}


def write_card(path: Path, card: dict[str, Any]) -> None:
    """Write a card beside its weights."""
    write_atomically(path, (json.dumps(card, indent=1, allow_nan=False) + "\n").encode())


def read_card(name: str) -> dict[str, Any]:
    """The card beside the weights of a shipped policy, a run or a policy file, else one made from the header."""
    policy = load(name)
    path = SHIPPED / f"{name}.json" if name in shipped() else Path(name)
    path = path / RUN_CARD if path.is_dir() else path.with_suffix(".json")
    if not path.is_file():
        return make_card(name, policy)
    try:
        if path.stat().st_size > LARGEST_CARD:
            raise ValueError(f"more than {LARGEST_CARD:,} bytes")
        card = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(card, dict) or card.get("weights_hash") != fingerprint(policy.parameters):
            if path.name == RUN_CARD:
                # The run was resumed after the card was written.
                return make_card(name, policy)
            raise ValueError("not the card of these weights")
    except (OSError, ValueError, RecursionError) as error:
        raise ModelFileError(f"{path} is not a policy's card, or damaged ({error}); remove it to do without") from None
    return card | {"policy": name}


def stops_winning(results: Sequence[Result]) -> str:
    """The first size at which the policy is not better than the best baseline."""
    if not results:
        return "not measured"
    for result in results:
        if result.verdict != "better":
            word = "no better than" if result.verdict == "even" else "worse than"
            return f"{result.env}: {word} {result.best_baseline}"
    return f"nowhere measured (up to {results[-1].env}; muster scale evaluates larger ones)"


def known_failures(results: Sequence[Result], policy: LearnedPolicy) -> list[str]:
    """Sizes at which the policy loses or hits the step limit, remarks on win rates, and limits of its model."""
    failures = [
        f"{result.env}: worse than the baseline {result.best_baseline} ({result.baselines[result.best_baseline]:.4g})"
        for result in results
        if result.verdict == "worse"
    ]
    failures += [f"{result.env}: {result.failed:.1%} of episodes hit the limit" for result in results if result.failed]
    failures += list(dict.fromkeys(result.remark for result in results if result.unit == "win rate" and result.remark))
    if policy.spec.kind == "pem":
        failures.append("a pem model reads planes: it needs torch and is not served by muster serve")
    return failures


def measure(name: str, env: str, episodes: int, seed: int) -> tuple[Result, float]:
    """The policy and the baselines on the same episodes, and the policy's milliseconds per decision in batches."""
    baselines = [baseline for baseline in make(env).baselines() if baseline not in BOUNDS]
    *others, evaluation = compare([*baselines, name], env, episodes, seed).evaluations
    fewer = evaluation.metric == "steps"
    means = {other.policy: other.mean for other in others}
    best = (min if fewer else max)(means, key=lambda baseline: means[baseline])
    gap = compare([best, name], env, episodes, seed).differences[-1]
    result = Result(
        env=env,
        unit=evaluation.metric.replace("_", " "),
        episodes=evaluation.episodes,
        mean=evaluation.mean,
        ci95=evaluation.ci95,
        baselines=means,
        best_baseline=best,
        verdict=gap.verdict(evaluation.metric),
        paired=True,
        failed=evaluation.failed / evaluation.episodes,
        remark=f"measured with --episodes {episodes} --seed {seed}",
    )
    return result, evaluation.ms_per_decision


def with_results(card: dict[str, Any], results: Sequence[Result], latency_ms: dict[str, float]) -> dict[str, Any]:
    """The card with further results and with milliseconds per decision by environment."""
    both = [*(Result(**result) for result in card["results"]), *results]
    more = {"results": [asdict(result) for result in both], "stops_winning": stops_winning(both)}
    return card | more | {"latency_ms": latency_ms}


def write_run_card(folder: Path, results: Sequence[Result] = (), **facts: Any) -> None:
    """Write the card of a finished run, with the ranges of its features in training."""
    policy = load(folder)
    ranges = measure_ranges(policy, custom=True)
    write_card(folder / RUN_CARD, make_card(policy.name, policy, results, feature_ranges=ranges, **facts))


def measure_ranges(policy: LearnedPolicy, custom: bool = False) -> dict[str, dict[str, list[float]]]:
    """{kind: {feature: [minimum, maximum, mean]}} over episodes of the training environments.

    The service warns of features outside these ranges. Custom environments, and those that read files, are skipped
    unless `custom`: code named by a policy file is not imported.
    """
    names = {kind: features for kind, features in features_of(policy).as_dict().items() if features}
    statistics: dict[str, list[Floats]] = {kind: [] for kind in names}
    """Of each step [4, F]: minimum, maximum and sum of each column, and the number of rows."""
    for text in policy.header.get("envs") or [policy.header.get("env", "")]:
        foreign = kind_of(str(text)) not in BUILT_IN or kind_of(str(text)) == "log"
        if (foreign and not custom) or policy.spec.kind == "pem":
            continue
        env = make(str(text), RANGE_EPISODES)
        bound = resolve(policy, env)
        slots = np.arange(RANGE_EPISODES)
        reset(env, bound, slots, episode_seeds(RANGE_SEED, slots))
        for transition in rollout(env, act_with(bound, env), slots >= 0):
            for kind, steps in statistics.items():
                block = np.asarray(getattr(transition.observation, BLOCKS[kind]), np.float64)[transition.active]
                rows = block[_alive(transition.observation, kind)[transition.active]]
                low, high = rows.min(0, initial=np.inf), rows.max(0, initial=-np.inf)
                steps.append(np.stack([low, high, rows.sum(0), np.full(rows.shape[1], len(rows))]))
    ranges: dict[str, dict[str, list[float]]] = {}
    for kind, steps in statistics.items():
        if steps:
            low, high, total, count = np.stack(steps, axis=1)
            columns = np.stack([low.min(0), high.max(0), total.sum(0) / np.maximum(count.sum(0), 1)], axis=1)
            rounded = [[float(f"{value:.6g}") for value in column] for column in columns]
            ranges[kind] = dict(zip(names[kind], rounded, strict=True))
    return ranges


def _alive(observation: BatchObservation, kind: str) -> Bools:
    """Mask of the entries of a block of features whose agents and tasks are alive."""
    agents, tasks = observation.agent_alive, observation.task_alive
    pairs = {"pair": agents[:, :, None] & tasks[:, None], "task_pair": observation.task_pairs}
    return {"agent": agents, "task": tasks, "global": np.ones(len(agents), np.bool_), **pairs}[kind]


def measure_latency(card: dict[str, Any]) -> dict[str, float]:
    """{env: median milliseconds of one decision on this machine} for the environments on the card.

    Environments that lack their data or torch are skipped, and so is custom code: code named by a policy file is not
    imported to describe it.
    """
    latency: dict[str, float] = {}
    if is_custom(card["model"]["kind"]) or is_custom(card["inference"]["method"]):
        return latency
    for env in dict.fromkeys(result["env"] for result in card["results"]):
        if kind_of(env) not in BUILT_IN or kind_of(env) == "log":
            continue
        with suppress(MusterError):
            batch_env = make(env)
            policy = resolve(card["policy"], batch_env)
            observation = batch_env.observe()
            seconds = []
            for _ in range(TIMED_DECISIONS):
                start = time.perf_counter()
                policy.act(observation)
                seconds.append(time.perf_counter() - start)
            latency[env] = 1e3 * float(np.median(seconds))
    return latency
