"""`muster bench training`: environment steps a second while learning, and where the time goes."""

from __future__ import annotations

import json as json_module
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from muster.benchmarks.envs import PEERS_HELP, PEERS_PYTHON, machine, measure_peers, one_core
from muster.errors import MissingExtraError

SIZES = ("2x4", "5x10")
BATTLES = ("battle:w15v17", "battle:m10v10")
BATTLE_LEARNERS = (("lp", "a2c"), ("quad", "a2c"), ("quad", "es"))
PARTS = ("world", "features", "forward", "inference", "backward", "other")
SECONDS = 6.0

Row = dict[str, Any]


class Stopwatch:
    """CPU seconds spent in what it wraps, by name."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = {}

    def wrap(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The same function, timed."""

        def timed(*arguments: Any, **keywords: Any) -> Any:
            began = time.process_time()
            try:
                return function(*arguments, **keywords)
            finally:
                self.spent[name] = self.spent.get(name, 0.0) + time.process_time() - began

        return timed


def measure(env: str, inference: str, learner_kind: str = "a2c") -> Row:
    """Steps per CPU second of a learner on one core, and the share of each part."""
    from muster.learning.learners import make_learner
    from muster.learning.settings import TrainSettings

    learner: Any = make_learner(
        TrainSettings(env=env, inference=inference, learner=learner_kind, steps=1)  # type: ignore[arg-type]
    )
    for _ in range(3):
        learner.update()
    watch = Stopwatch()
    world = learner.worlds[0].env
    world.observe = watch.wrap("features", world.observe)
    world.step = watch.wrap("world", world.step)
    player = learner if learner_kind == "a2c" else learner.field
    player.solver = watch.wrap("inference", player.solver)
    player.scores = watch.wrap("forward", player.scores)
    if learner_kind == "a2c":
        learner.learn = watch.wrap("backward", learner.learn)
    steps, began = learner.steps, time.process_time()
    while time.process_time() - began < SECONDS:
        learner.update()
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


def measure_peer() -> dict[str, Any] | None:
    """Stable-Baselines3's A2C on a stub of the same world, in its own environment; None where it is absent."""
    if not PEERS_PYTHON.exists():
        return None
    script = Path(__file__).with_name("training_peer.py")
    done = subprocess.run([str(PEERS_PYTHON), str(script)], capture_output=True, text=True, check=False, timeout=600)
    if done.returncode != 0:
        print(done.stderr[-2000:], file=sys.stderr)
        return None
    found: dict[str, Any] = json_module.loads(done.stdout.splitlines()[-1])
    return found


def run(json: bool) -> None:
    """Measure and print."""
    try:
        import torch
    except ImportError:
        raise MissingExtraError("the training benchmark", "train") from None
    with one_core():
        torch.set_num_threads(1)
        rows = [measure(f"rescue:{size}", inference) for size in SIZES for inference in ("amax", "lp", "quad")]
        rows += [measure(env, inference, learner) for env in BATTLES for inference, learner in BATTLE_LEARNERS]
        peer = measure_peer()
        worlds, note = measure_peers("SMAX 10m_vs_11m")
    found = {"machine": machine(), "rows": rows, "peer": peer, "worlds": worlds, "note": note}
    print(json_module.dumps(found) if json else "\n".join(report(found)))


def report(found: dict[str, Any]) -> list[str]:
    """The figures as Markdown."""
    peer = found["peer"]
    lines = [f"Environment steps (decisions) per CPU second of a whole learner on one core. {found['machine']}.", ""]
    lines += [f"| world | inference | learner | steps/s | {' | '.join(PARTS)} | of SB3's rate |"]
    lines += ["|---|---|---|---:|" + "---:|" * (len(PARTS) + 1)]
    for row in found["rows"]:
        size = row["env"].removeprefix("rescue:")
        ratio = f"{row['steps_per_second'] / peer[size]:.2f}" if peer and size in peer else ""
        shares = " | ".join(f"{row['shares'][part]:.0%}" for part in PARTS)
        head = f"| {row['env']} | {row['inference']} | {row['learner']} | {row['steps_per_second']:,.0f}"
        lines.append(f"{head} | {shares} | {ratio} |")
    lines.append("")
    if peer:
        rates = ", ".join(f"{size} {rate:,.0f}" for size, rate in peer.items())
        lines.append(
            f"Stable-Baselines3's A2C on a stub of the same sizes, 256 environments, 3 x 32 MLP: {rates} steps/s."
        )
    else:
        lines.append(f"Stable-Baselines3 is not here: no comparison; {PEERS_HELP}")
    for row in found["worlds"]:
        if "steps_per_second" in row:
            lines.append(f"{row['world']}, the world alone without learning: {row['steps_per_second']:,.0f} steps/s.")
        else:
            lines.append(f"{row['world']} skipped: {row['skipped']}.")
    if found["note"]:
        lines.append(found["note"])
    return lines
