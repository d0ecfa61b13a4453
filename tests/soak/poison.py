"""Numbers that are none, shown by an env at a random moment: training stops at once and says where they came from."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

import muster
from muster.data import Ints
from muster.envs.env import Env, Observation
from muster.errors import MusterError

FIELDS = ("agent_features", "task_features", "pair_features", "prior", "capacities", "contributions", "reward")
SETTINGS = {
    "es": {"learner": "es", "es": {"pairs": 2, "episodes": 4}},
    "ppo": {"learner": "ppo", "num_envs": 8, "ppo": {"rollout_length": 8}},
}


class Poisoned(Env):
    """Agents that take tasks for a few steps; at one moment of the whole run it shows a number that is none."""

    n_agents = 2
    n_tasks = 3
    max_steps = 6
    field: ClassVar[str] = ""
    number: ClassVar[float] = 0.0
    left: ClassVar[int] = 0
    """Steps of all episodes until then."""

    def reset(self, rng: np.random.Generator) -> None:
        self.place = rng.random((5, 1))
        self.t = 0

    def observe(self) -> Observation:
        shown = {
            "agent_features": self.place[:2],
            "task_features": self.place[2:],
            "pair_features": np.abs(self.place[:2, None] - self.place[None, 2:]),
            "prior": np.zeros((2, 3)),
            "capacities": np.ones(3),
            "contributions": np.ones((2, 3)),
        }
        if Poisoned.left <= 0 and Poisoned.field in shown:
            shown[Poisoned.field] = shown[Poisoned.field].copy()
            shown[Poisoned.field].flat[0] = Poisoned.number
        return Observation(**shown)

    def step(self, assignment: Ints) -> tuple[float, bool]:
        Poisoned.left -= 1
        self.t += 1
        reward = float((assignment >= 0).sum())
        return (Poisoned.number if Poisoned.left <= 0 and Poisoned.field == "reward" else reward), self.t >= 5


def campaign(count: int, seed: int = 0) -> list[str]:
    """What was wrong in `count` trials: fields, numbers, learners and moments in turn or at random."""
    rng, bad = np.random.default_rng(seed), []
    for number in range(count):
        field = FIELDS[number % len(FIELDS)]
        learner = ("es", "ppo")[number // len(FIELDS) % 2]
        choices = [np.nan, -np.inf] if field == "capacities" else [np.nan, np.inf, -np.inf]
        wrong = try_one(field, float(rng.choice(choices)), int(rng.integers(1, 400)), learner)
        bad += [f"trial {number} ({field}, {learner}): {wrong}"] if wrong else []
    return bad


def try_one(field: str, number: float, left: int, learner: str) -> str:
    """Train until the number comes; what was wrong with what was said then."""
    Poisoned.field, Poisoned.number, Poisoned.left = field, number, left
    try:
        muster.train("tests.soak.poison:Poisoned", inference="lp", steps=2000, **SETTINGS[learner])
    except MusterError as stop:
        wanted = ["Poisoned", "slot ", "step ", field if field != "reward" else "a reward is not finite"]
        missing = [word for word in wanted if word not in str(stop)]
        late = -Poisoned.left > 8 * 6  # no more than one round of all slots
        return f"does not name {missing}: {stop}" if missing else f"{-Poisoned.left} steps late" if late else ""
    return "went unnoticed"
