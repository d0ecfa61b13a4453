"""`muster new`: a minimal custom environment and its test, to begin with."""

from __future__ import annotations

import keyword
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Annotated

from tyro.conf import Positional, arg

from muster.errors import InputError

# What it writes; examples/couriers.py is the same file.
ENV = '''\
import numpy as np

from muster import Env, Observation, Scene


class $Class(Env):
    """Couriers fetch parcels on the unit square. Change it into your own problem, a method at a time."""

    # An episode ends after max_steps. Fewer "steps" are better; "return" is the sum of rewards, "win_rate" asks won().
    max_steps, metric = 100, "steps"

    # What stands here can be set from outside: $module:$Class,n_agents=15,n_tasks=30
    def __init__(self, n_agents: int = 3, n_tasks: int = 6, speed: float = 0.1):
        self.n_agents, self.n_tasks, self.speed = n_agents, n_tasks, speed

    def reset(self, rng):
        """A new episode. All that is random comes from rng, now or later."""
        self.couriers, self.parcels = rng.random((self.n_agents, 2)), rng.random((self.n_tasks, 2))
        self.waiting = np.ones(self.n_tasks, bool)

    def observe(self):
        """What a policy sees: of agents, tasks and pairs; who can be served; and what you would go by yourself."""
        way = self.parcels - self.couriers[:, None]
        far = np.linalg.norm(way, axis=-1)
        return Observation(self.couriers, self.parcels, np.dstack([way, far]), task_alive=self.waiting, prior=-far)

    def step(self, assignment):
        """One decision: a task for each agent, or -1. How an agent goes about it is the environment's business."""
        for courier in np.flatnonzero(assignment >= 0):
            way = self.parcels[assignment[courier]] - self.couriers[courier]
            self.couriers[courier] += way * min(1, self.speed / np.linalg.norm(way))
            self.waiting[assignment[courier]] &= np.linalg.norm(way) > self.speed
        return -0.01, not self.waiting.any()  # the reward, and whether the episode is over

    def scene(self):
        """What to draw; leave it out and muster draws what it can tell from the observation."""
        return Scene(self.couriers, self.parcels)

    @classmethod
    def baselines(cls):
        """Policies to beat, by name: functions from an observation to an assignment."""
        return {"nearest": nearest}


def nearest(observation):
    """The nearest pair of courier and parcel first, then the next of those that are left."""
    far, chosen = np.where(observation.task_alive, -observation.prior, np.inf), np.full(len(observation.prior), -1)
    for _ in range(min(len(chosen), sum(observation.task_alive))):
        courier, parcel = np.unravel_index(far.argmin(), far.shape)
        chosen[courier], far[courier], far[:, parcel] = parcel, np.inf, np.inf
    return chosen
'''

TEST = """\
import muster


def test_the_environment_checks_pass():
    broken = [found for found in muster.check_env("$module:$Class") if found.status == "failed"]
    assert not broken


def test_the_baseline_finishes_at_any_size():
    for size in ("n_agents=1,n_tasks=1", "n_agents=3,n_tasks=6", "n_agents=15,n_tasks=30"):
        assert muster.evaluate("nearest", f"$module:$Class,{size}", episodes=10).failed == 0
"""


@dataclass(frozen=True)
class New:
    """Write an environment of your own to begin with: NAME.py and its test, test_NAME.py."""

    name: Annotated[str, Positional, arg(metavar="NAME")]
    """The module's name, such as couriers: letters, digits and underscores."""
    folder: Path = Path()
    """Where to write; the current folder by default."""

    def run(self) -> None:
        """Write both files and say what to do with them."""
        module = self.name.removesuffix(".py")
        if not module.isidentifier() or keyword.iskeyword(module):
            raise InputError(
                f"an environment's name is letters, digits and underscores, such as couriers; got {self.name!r}"
            )
        if not self.folder.is_dir():
            raise InputError(f"there is no folder {str(self.folder)!r}")
        files = {self.folder / f"{module}.py": ENV, self.folder / f"test_{module}.py": TEST}
        for path in files:
            if path.exists():
                raise InputError(f"{path} is there already; choose another name, or move it away")
        names = {"module": module, "Class": class_name(module)}
        for path, text in files.items():
            try:
                path.write_text(Template(text).substitute(names), encoding="utf-8")
            except OSError as error:
                raise InputError(f"cannot write {path}: {error.strerror or error}") from None
        print(f"wrote {' and '.join(map(str, files))}; in that folder:")
        for command, what in next_commands(f"{module}:{names['Class']}"):
            print(f"  {command:<78} {what}")


def class_name(module: str) -> str:
    """my_env -> MyEnv"""
    return "".join(part[:1].upper() + part[1:] for part in module.split("_")) or "Environment"


def next_commands(env: str) -> list[tuple[str, str]]:
    """What one does with a new environment, and why."""
    return [
        (f"muster check-env {env}", "does it pass the environment checks?"),
        (f"muster train {env} --learner es --minutes 1 --out run", "learn on a small size"),
        (f"muster compare nearest run {env}", "against the baseline"),
        (f"muster compare nearest run {env},n_agents=15,n_tasks=30", "at five times the size, without retraining"),
        (f"muster replay run {env} --beside nearest --out replay.html", "watch both on one episode"),
    ]
