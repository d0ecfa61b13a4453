"""`muster bench training`: environment steps a second while learning, and where the time goes."""

from __future__ import annotations

import json as json_module
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from muster.errors import MissingExtraError

SIZES = ("2x4", "5x10")
PEER_PYTHON = Path(".venv-peers") / "bin" / "python"
SECONDS = 6.0


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


def measure(env: str, inference: str) -> dict[str, Any]:
    """Steps per CPU second of the A2C learner on one core, and the share of each part."""
    from muster.learning.settings import TrainSettings
    from muster.learning.train import make_learner

    learner: Any = make_learner(TrainSettings(env=env, inference=inference, steps=1))  # type: ignore[arg-type]
    for _ in range(3):
        learner.update()
    watch = Stopwatch()
    learner.env.observe = watch.wrap("env", learner.env.observe)
    learner.env.step = watch.wrap("env", learner.env.step)
    learner.solver = watch.wrap("inference", learner.solver)
    learner.model.forward = watch.wrap("forward", learner.model.forward)
    learner.play = watch.wrap("play", learner.play)
    learner.learn = watch.wrap("learn", learner.learn)
    steps, began = learner.steps, time.process_time()
    while time.process_time() - began < SECONDS:
        learner.update()
    total = time.process_time() - began
    spent = watch.spent
    named = {name: spent[name] / total for name in ("env", "inference", "forward")}
    # An update makes one of the two forward passes over its states; the rest of it is the critic, the backward passes
    # and the optimisers.
    named["backward"] = (spent["learn"] - 0.5 * spent["forward"]) / total
    named["other"] = max(0.0, 1.0 - sum(named.values()))
    return {"env": env, "inference": inference, "steps_per_second": (learner.steps - steps) / total, "shares": named}


def measure_peer() -> dict[str, Any] | None:
    """Stable-Baselines3's A2C on a stub of the same world, in its own environment; None where it is absent."""
    if not PEER_PYTHON.exists():
        return None
    script = Path(__file__).with_name("training_peer.py")
    done = subprocess.run([str(PEER_PYTHON), str(script)], capture_output=True, text=True, check=False, timeout=600)
    if done.returncode != 0:
        print(done.stderr[-2000:], file=sys.stderr)
        return None
    found: dict[str, Any] = json_module.loads(done.stdout.splitlines()[-1])
    return found


def run(json: bool) -> None:
    """Measure and print."""
    try:
        import torch  # noqa: F401
    except ImportError:
        raise MissingExtraError("the training benchmark", "train") from None
    rows = [measure(f"rescue:{size}", inference) for size in SIZES for inference in ("amax", "lp", "quad")]
    peer = measure_peer()
    if json:
        print(json_module.dumps({"rows": rows, "peer": peer}))
        return
    from rich.console import Console
    from rich.table import Table

    parts = ("env", "inference", "forward", "backward", "other")
    table = Table("world", "inference", "env steps per CPU second", *parts, "share of SB3's rate")
    for row in rows:
        size = row["env"].removeprefix("rescue:")
        ratio = "–" if peer is None else f"{row['steps_per_second'] / peer[size]:.2f}"
        shares = [f"{row['shares'][part]:.0%}" for part in parts]
        table.add_row(row["env"], row["inference"], f"{row['steps_per_second']:,.0f}", *shares, ratio)
    console = Console(width=max(120, Console().width))
    console.print(table)
    if peer is None:
        console.print("Stable-Baselines3 is not here (make peers installs it in .venv-peers): no comparison.")
    else:
        console.print(f"SB3 A2C on a stub, env steps per CPU second: {peer}")
