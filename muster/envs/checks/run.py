"""Run the environment checks, measure the speed, and give advice on what is allowed but makes learning harder."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeVar, cast

import numpy as np

from muster.envs.checks.contract import CHECKS, Check
from muster.envs.checks.probes import FailedCheckError, Make, UncheckedError, random_assignment, started
from muster.envs.env import Env
from muster.envs.registry import EnvLike
from muster.envs.registry import make as make_env
from muster.envs.singles import BatchOfSingles
from muster.envs.vector import BatchEnv
from muster.errors import InputError, MusterError
from muster.rng import episode_seeds

Subject = TypeVar("Subject")
SPEED_SECONDS = 0.5
ADVICE_STEPS = 100
LARGE_FEATURE = 30.0
"""Networks start out with weights for features of about 1."""
LARGE_PRIOR = 2.0
"""The first candidates of ES on a direct model correct a prior by less than a tenth: next to one that differs by more
than this from pair to pair they change no decision. A linear model corrects by its standard deviation."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check, the measured speed, or advice."""

    check: str
    status: Literal["passed", "failed", "unchecked", "measured", "advice"]
    detail: str = ""


def check_env(env: EnvLike | Make, checks: Mapping[str, Check] = CHECKS) -> list[Finding]:
    """Run `checks` on an environment string, a class, or a function that makes a batch of a given size."""
    fits = issubclass(env, (Env, BatchEnv)) if isinstance(env, type) else isinstance(env, str) or callable(env)
    if not fits:
        raise InputError(
            "check_env takes an environment string, a class of environments, or a function from a size to a batch; got "
            f"{env!r:.80}"
        )
    made = isinstance(env, type) and issubclass(env, BatchOfSingles)
    make = _named(env) if isinstance(env, (str, type)) and not made else cast(Make, env)
    findings = [try_check(name, check, make) for name, check in checks.items()]
    if not any(finding.status == "failed" for finding in findings):
        findings.append(Finding("speed", "measured", speed(make)))
        findings += [Finding(about, "advice", text) for about, text in advice(make).items()]
    return findings


def _named(env: EnvLike) -> Make:
    # An environment that cannot be made is an error of the caller, not a failed check.
    make_env(env)
    return lambda n_envs: make_env(env, n_envs)


def try_check(name: str, check: Callable[[Subject], None], subject: Subject) -> Finding:
    """The result of a check on its subject."""
    try:
        check(subject)
    except UncheckedError as why:
        return Finding(name, "unchecked", str(why))
    except (FailedCheckError, MusterError) as error:
        return Finding(name, "failed", str(error))
    except Exception as error:
        return Finding(name, "failed", f"{type(error).__name__}: {error}")
    return Finding(name, "passed")


def speed(make: Make) -> str:
    """Steps and observations a second, in a batch of 64."""
    env = started(make, 64)
    rng = np.random.default_rng(0)
    rounds, stepping, observing = 0, 0.0, 0.0
    while stepping + observing < SPEED_SECONDS or rounds < 3:
        began = time.perf_counter()
        observation = env.observe()
        middle = time.perf_counter()
        assignment = random_assignment(observation, rng)
        before_step = time.perf_counter()
        result = env.step(assignment)
        ended = np.flatnonzero(result.terminated | result.truncated)
        if ended.size:
            env.reset(ended, episode_seeds(rounds, ended))
        rounds += 1
        stepping += time.perf_counter() - before_step
        observing += middle - began
    return f"{64 * rounds / stepping:,.0f} steps/s, {64 * rounds / observing:,.0f} observations/s"


def advice(make: Make) -> dict[str, str]:
    """{subject: sentence} of what is worth changing in a custom environment; empty for others."""
    env = started(make, 16)
    if not isinstance(env, BatchOfSingles):
        return {}
    texts = {}
    rng = np.random.default_rng(0)
    largest: dict[str, float] = {}
    spreads: list[float] = []
    earned, reused, choices, running = 0.0, False, 0, np.ones(env.n_envs, np.bool_)
    was_task = np.ones((env.n_envs, env.n_tasks), np.bool_)
    gone = np.zeros_like(was_task)
    for _ in range(min(env.max_steps, ADVICE_STEPS)):
        observation = env.observe()
        for name in ("agent_features", "task_features", "pair_features", "task_pair_features"):
            largest[name] = max(largest.get(name, 0.0), float(np.abs(getattr(observation, name)).max(initial=0.0)))
        if observation.prior is not None and (possible := observation.pairs).any():
            spreads.append(float(observation.prior[possible].std()))
        gone |= was_task & ~observation.task_alive
        reused |= bool((gone & observation.task_alive)[running].any())
        was_task = observation.task_alive
        choices += int((observation.pairs.sum(axis=2) > 1).sum())
        result = env.step(random_assignment(observation, rng))
        earned += float(np.abs(result.reward).sum())
        running &= ~(result.terminated | result.truncated)
    for name, size in largest.items():
        if size > LARGE_FEATURE:
            texts[name] = f"numbers up to {size:.3g}; learning goes better if they are scaled to about 1"
    if spreads and (spread := float(np.median(spreads))) > LARGE_PRIOR:
        texts["prior"] = (
            f"differs by {spread:.3g} from pair to pair, which suits the default model (linear); before --model dm "
            "scale it to a few tenths, or raise --es.sigma and --es.learning-rate with it: ES corrects it by less than "
            "a tenth at first"
        )
    if earned == 0:
        texts["reward"] = f"none in {ADVICE_STEPS} random steps: a learner cannot tell policies apart"
    if not choices:
        texts["choice"] = "no agent ever had more than one task to choose from"
    if reused and observation.task_ids is None:
        texts["task_ids"] = "indices of tasks are used again; give each task an id, so that `previous` and noise follow"
    if not env.baselines():
        texts["baselines"] = "none; return a policy of your own in baselines(), for learned policies to beat"
    return texts
