"""What the laws allow, but whoever wrote an environment of their own should know before they train on it."""

from __future__ import annotations

import numpy as np

from muster.envs.probing import Make, possible_pairs, random_assignment, started
from muster.envs.singles import BatchOfSingles

STEPS = 100
LARGE_FEATURE = 30.0
"""Networks start out with weights for features of about 1."""
LARGE_PRIOR = 2.0
"""Evolution's first candidates correct a prior by less than a tenth: next to one that differs by more than this from
pair to pair they change no decision."""


def advice(make: Make) -> dict[str, str]:
    """A sentence on each thing that is worth changing, for a user's own class; nothing for other environments."""
    env = started(make, 16)
    if not isinstance(env, BatchOfSingles):
        return {}
    found = {}
    rng = np.random.default_rng(0)
    largest: dict[str, float] = {}
    spreads: list[float] = []
    earned, again, choices, running = 0.0, False, 0, np.ones(env.n_envs, np.bool_)
    was_task = np.ones((env.n_envs, env.n_tasks), np.bool_)
    gone = np.zeros_like(was_task)
    for _ in range(min(env.max_steps, STEPS)):
        seen = env.observe()
        for name in ("agent_features", "task_features", "pair_features", "task_pair_features"):
            largest[name] = max(largest.get(name, 0.0), float(np.abs(getattr(seen, name)).max(initial=0.0)))
        if seen.prior is not None and (possible := possible_pairs(seen)).any():
            spreads.append(float(seen.prior[possible].std()))
        gone |= was_task & ~seen.task_alive
        again |= bool((gone & seen.task_alive)[running].any())
        was_task = seen.task_alive
        choices += int((possible_pairs(seen).sum(axis=2) > 1).sum())
        result = env.step(random_assignment(seen, rng))
        earned += float(np.abs(result.reward).sum())
        running &= ~(result.terminated | result.truncated)
    for name, size in largest.items():
        if size > LARGE_FEATURE:
            found[name] = f"numbers up to {size:.3g}; learning goes better if they are scaled to about 1"
    if spreads and (spread := float(np.median(spreads))) > LARGE_PRIOR:
        found["prior"] = (
            f"differs by {spread:.3g} from pair to pair; evolution begins with corrections of less than a tenth: scale "
            "it to a few tenths, or raise --es.sigma and --es.learning-rate"
        )
    if earned == 0:
        found["reward"] = f"none in {STEPS} steps of random play: a learner has nothing to tell policies apart by"
    if not choices:
        found["choice"] = "no agent ever had more than one task to choose from"
    if again and seen.task_ids is None:
        found["task_ids"] = "places of tasks are used again; give each task an id, so that `previous` and noise follow"
    if not env.baselines():
        found["rules"] = "none; name your own rule in rules(), so that there is something to beat"
    return found
