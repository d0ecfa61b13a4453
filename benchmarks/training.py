"""`python -m benchmarks training`: environment steps a second while learning, and where the time goes."""

from __future__ import annotations

import json as json_module
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.envs import PEERS_HELP, PEERS_PYTHON, machine, measure_peers, one_core
from muster.errors import MissingExtraError

SIZES = ("2x4", "5x10")
BATTLES = ("battle:w15v17", "battle:m10v10")
BATTLE_LEARNERS = (("lp", "ppo"), ("quad", "ppo"), ("quad", "es"), ("lp", "srl"), ("quad", "srl"))
RESCUE_LEARNERS = ("ppo", "es", "srl", "imitation")
"""With QUAD; all procedures with the first."""
TEACHER = "lp-distance"
PARTS = ("env", "features", "forward", "inference", "backward", "other")
SECONDS = 6.0
UNTIMED = 3
"""Updates before those that are measured."""
PROGRESS = 0.5
"""How far the measured run has come: what waits for a later part of it (g of many agents) is there."""

Row = dict[str, Any]


class Stopwatch:
    """CPU seconds spent in what it wraps, by name."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = {}

    def wrap(self, name: str, function: Callable[..., Any]) -> Timed:
        """The same function, timed."""
        return Timed(self, name, function)


class Timed:
    """A function, or a solver whose settings stay readable, with a stopwatch."""

    def __init__(self, watch: Stopwatch, name: str, function: Callable[..., Any]) -> None:
        self._spent, self._name, self._function = watch.spent, name, function

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """What the function gives."""
        began = time.process_time()
        try:
            return self._function(*arguments, **keywords)
        finally:
            self._spent[self._name] = self._spent.get(self._name, 0.0) + time.process_time() - began

    def __getattr__(self, name: str) -> Any:
        return getattr(self._function, name)


def measure(env: str, inference: str, learner_kind: str = "ppo") -> Row:
    """Steps per CPU second of a learner on one core, and the share of each part."""
    from muster.learning.learners import make_learner
    from muster.learning.settings import TrainSettings

    teacher = TEACHER if learner_kind == "imitation" else None
    learner: Any = make_learner(
        TrainSettings(env=env, inference=inference, learner=learner_kind, teacher=teacher, steps=1)  # type: ignore[arg-type]
    )
    for _ in range(UNTIMED):
        learner.update(PROGRESS)
    watch = Stopwatch()
    _time_parts(watch, learner, learner_kind)
    steps, began = learner.steps, time.process_time()
    while time.process_time() - began < SECONDS:
        learner.update(PROGRESS)
    total = time.process_time() - began
    # The backward part is all of an update: forward and back through model and critic, and the optimisers.
    shares = {part: watch.spent.get(part, 0.0) / total for part in PARTS[:-1]}
    shares["other"] = max(0.0, 1.0 - sum(shares.values()))
    return {
        "env": env,
        "inference": inference,
        "learner": learner_kind,
        "steps_per_second": (learner.steps - steps) / total,
        "shares": shares,
    }


def _time_parts(watch: Stopwatch, learner: Any, kind: str) -> None:
    """Have every part of a learner timed."""
    for env in [*learner.envs, *([learner.candidates[0].copies] if kind == "srl" else [])]:
        env.observe = watch.wrap("features", env.observe)
        env.step = watch.wrap("env", env.step)
    if kind == "es":
        _time_solver(watch, learner.rollouts)
        return
    _time_solver(watch, learner)
    actor = learner.student if kind == "imitation" else learner.actor
    actor.scores = watch.wrap("forward", actor.scores)
    actor.forward = watch.wrap("forward", actor.forward)
    learns = {"ppo": [(learner, "_learn")], "srl": [(learner, "learn"), (learner, "learn_values")]}
    for owner, name in learns.get(kind, [(actor, "backward"), (actor, "step")]):
        setattr(owner, name, watch.wrap("backward", getattr(owner, name)))


def _time_solver(watch: Stopwatch, owner: Any) -> None:
    """Have the inference of a learner timed, which is asked by `run`."""
    solver = watch.wrap("inference", owner.solver)
    solver.run = watch.wrap("inference", owner.solver.run)
    owner.solver = solver


def measure_peer() -> dict[str, Any] | None:
    """Stable-Baselines3's A2C and PPO on a stub of the same env, in its own env; None where it is absent."""
    if not PEERS_PYTHON.exists():
        return None
    script = Path(__file__).with_name("training_peer.py")
    done = subprocess.run([str(PEERS_PYTHON), str(script)], capture_output=True, text=True, check=False, timeout=600)
    if done.returncode != 0:
        print(done.stderr[-2000:], file=sys.stderr)
        return None
    found: dict[str, Any] = json_module.loads(done.stdout.splitlines()[-1])
    return found


def run(json: bool = False) -> None:
    """Steps a second of the learners, where their time goes, and peers.

    Args:
        json: print one JSON object.

    """
    try:
        import torch
    except ImportError:
        raise MissingExtraError("the training benchmark", "torch") from None
    with one_core():
        torch.set_num_threads(1)
        rows = [measure(f"rescue:{size}", inference) for size in SIZES for inference in ("amax", "lp", "quad")]
        rows += [measure(f"rescue:{size}", "quad", learner) for size in SIZES for learner in RESCUE_LEARNERS[1:]]
        rows += [measure(env, inference, learner) for env in BATTLES for inference, learner in BATTLE_LEARNERS]
        peer = measure_peer()
        envs, note = measure_peers("SMAX 10m_vs_11m")
    found = {"machine": machine(), "rows": rows, "peer": peer, "environments": envs, "note": note}
    print(json_module.dumps(found) if json else "\n".join(report(found)))


def report(found: dict[str, Any]) -> list[str]:
    """The figures as Markdown."""
    peer = found["peer"]
    lines = [f"Environment steps (decisions) per CPU second of a whole learner on one core. {found['machine']}.", ""]
    lines += [f"| environment | inference | learner | steps/s | {' | '.join(PARTS)} | of SB3's A2C |"]
    lines += ["|---|---|---|---:|" + "---:|" * (len(PARTS) + 1)]
    for row in found["rows"]:
        size = row["env"].removeprefix("rescue:")
        ratio = f"{row['steps_per_second'] / peer['a2c'][size]:.2f}" if peer and size in peer["a2c"] else ""
        shares = " | ".join(f"{row['shares'][part]:.0%}" for part in PARTS)
        head = f"| {row['env']} | {row['inference']} | {row['learner']} | {row['steps_per_second']:,.0f}"
        lines.append(f"{head} | {shares} | {ratio} |")
    lines.append("")
    if peer:
        told = {name: ", ".join(f"{size} {rate:,.0f}" for size, rate in rates.items()) for name, rates in peer.items()}
        lines.append(
            f"Stable-Baselines3 on a stub of the same sizes, 3 x 32 MLP: A2C with 256 environments {told['a2c']} "
            f"steps/s; PPO with 128, 32 decisions, one pass in 4 minibatches {told['ppo']} steps/s."
        )
    else:
        lines.append(f"Stable-Baselines3 is not here: no comparison; {PEERS_HELP}")
    for row in found["environments"]:
        if "steps_per_second" in row:
            lines.append(
                f"{row['env']}, the environment alone without learning: {row['steps_per_second']:,.0f} steps/s."
            )
        else:
            lines.append(f"{row['env']} skipped: {row['skipped']}.")
    if found["note"]:
        lines.append(found["note"])
    return lines
