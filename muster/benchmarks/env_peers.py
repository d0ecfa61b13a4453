"""Steps a second of the nearest worlds elsewhere; run as a script by an interpreter that has them installed.

Prints a JSON list of {"world", "steps_per_second"} or {"world", "skipped"}. It knows nothing of muster.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

BATCH, AGENTS, TASKS, GRID = 256, 5, 10, 16
SECONDS = 3.0

Found = dict[str, Any]


def jumanji_foraging() -> Found:
    """Level-based foraging, the nearest grid world: agents walk on a grid and collect food."""
    from jumanji.environments import LevelBasedForaging
    from jumanji.environments.routing.lbf.generator import RandomGenerator

    generator = RandomGenerator(grid_size=GRID, num_agents=AGENTS, num_food=TASKS, fov=GRID)
    name = f"LevelBasedForaging, {GRID}x{GRID}, {AGENTS} agents, {TASKS} food, {BATCH} in a batch"
    return _jumanji(LevelBasedForaging(generator=generator), name)


def jumanji_rescue() -> Found:
    """Search and rescue of jumanji: continuous, not a grid, but the same story."""
    from jumanji.environments import SearchAndRescue

    return _jumanji(SearchAndRescue(), f"SearchAndRescue (continuous), as it comes, {BATCH} in a batch")


def _jumanji(env: Any, name: str) -> Found:
    """Random actions, drawn beforehand; a batch of compiled worlds that begin again when they end.

    Only the reward is kept, so the compiler may leave the observation out: this is the world alone.
    """
    import jax
    from jumanji.wrappers import VmapAutoResetWrapper

    batch, rounds, spec = VmapAutoResetWrapper(env), 50, env.action_spec
    key, shape = jax.random.PRNGKey(0), (rounds, BATCH, *spec.shape)
    if jax.numpy.issubdtype(spec.dtype, jax.numpy.floating):
        actions = jax.random.uniform(key, shape, minval=spec.minimum, maxval=spec.maximum)
    else:
        actions = jax.random.randint(key, shape, spec.minimum, spec.maximum + 1)

    @jax.jit
    def run(state: Any) -> Any:
        def step(state: Any, action: Any) -> Any:
            state, timestep = batch.step(state, action)
            return state, timestep.reward

        return jax.lax.scan(step, state, actions)

    state, _ = jax.jit(batch.reset)(jax.random.split(key, BATCH))
    state, _ = jax.block_until_ready(run(state))
    began, steps = time.process_time(), 0
    while time.process_time() - began < SECONDS:
        state, _ = jax.block_until_ready(run(state))
        steps += BATCH * rounds
    return {"world": f"jumanji {version('jumanji')} {name}", "steps_per_second": steps / (time.process_time() - began)}


def pettingzoo_pursuit() -> Found:
    """Pursuit: pursuers on a 16x16 grid catch evaders; one world at a time, observation included, as it comes."""
    import numpy as np
    from pettingzoo.sisl import pursuit_v5

    env = pursuit_v5.parallel_env(x_size=GRID, y_size=GRID, n_pursuers=AGENTS, n_evaders=TASKS)
    env.reset(seed=0)
    rng = np.random.default_rng(0)
    began, steps = time.process_time(), 0
    while time.process_time() - began < SECONDS:
        if not env.agents:
            env.reset()
        env.step({agent: int(rng.integers(5)) for agent in env.agents})
        steps += 1
    name = f"pettingzoo {version('pettingzoo')} pursuit, {GRID}x{GRID}, {AGENTS} pursuers, {TASKS} evaders"
    return {"world": name, "steps_per_second": steps / (time.process_time() - began)}


def main() -> None:
    """Measure what is installed."""
    peers: list[Callable[[], Found]] = [jumanji_foraging, jumanji_rescue, pettingzoo_pursuit]
    found: list[Found] = []
    for peer in peers:
        try:
            found.append(peer())
        except ImportError as missing:
            found.append({"world": peer.__name__.replace("_", " "), "skipped": str(missing)})
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    os.environ["JAX_PLATFORMS"] = "cpu"
    main()
