"""The laws that every environment obeys, so that whatever learns, evaluates or replays can rely on them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np

from muster.envs.advice import advice
from muster.envs.env import Env
from muster.envs.laws import LAWS
from muster.envs.probing import BrokenLawError, Make, UncheckedError, random_assignment, started
from muster.envs.registry import make as make_env
from muster.errors import MusterError
from muster.rng import episode_seeds

SPEED_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Finding:
    """What came of one law, or a word of advice."""

    law: str
    status: Literal["holds", "broken", "unchecked", "measured", "advice"]
    detail: str = ""


def check(env: str | type[Env] | Make) -> list[Finding]:
    """Try every law on an environment string, a class, or a function that makes a batch of a given size."""
    named = isinstance(env, str) or (isinstance(env, type) and issubclass(env, Env))
    make = _named(cast(str | type[Env], env)) if named else cast(Make, env)
    findings = [_try(law, holds, make) for law, holds in LAWS.items()]
    if not any(finding.status == "broken" for finding in findings):
        findings.append(Finding("speed", "measured", speed(make)))
        findings += [Finding(about, "advice", text) for about, text in advice(make).items()]
    return findings


def _named(env: str | type[Env]) -> Make:
    # An environment that cannot be made is the caller's mistake, not a broken law.
    make_env(env)
    return lambda n_envs: make_env(env, n_envs)


def _try(law: str, holds: Callable[[Make], None], make: Make) -> Finding:
    try:
        holds(make)
    except BrokenLawError as broken:
        return Finding(law, "broken", str(broken))
    except UncheckedError as why:
        return Finding(law, "unchecked", str(why))
    except MusterError as error:
        return Finding(law, "broken", str(error))
    except Exception as error:
        return Finding(law, "broken", f"{type(error).__name__}: {error}")
    return Finding(law, "holds")


def speed(make: Make) -> str:
    """Steps and observations a second, in a batch of 64."""
    env = started(make, 64)
    rng = np.random.default_rng(0)
    rounds, stepping, observing = 0, 0.0, 0.0
    while stepping + observing < SPEED_SECONDS or rounds < 3:
        began = time.perf_counter()
        seen = env.observe()
        middle = time.perf_counter()
        assignment = random_assignment(seen, rng)
        asked = time.perf_counter()
        result = env.step(assignment)
        ended = np.flatnonzero(result.terminated | result.truncated)
        if ended.size:
            env.reset(ended, episode_seeds(rounds, ended))
        rounds += 1
        stepping += time.perf_counter() - asked
        observing += middle - began
    return f"{64 * rounds / stepping:,.0f} steps/s, {64 * rounds / observing:,.0f} observations/s"
