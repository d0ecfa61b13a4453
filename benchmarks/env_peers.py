"""Steps a second of the nearest environments elsewhere; run as a script by an interpreter that has them installed.

    python env_peers.py [WORD]

Prints a JSON list of {"env", "beside", "steps_per_second"} or {"env", "skipped"}, where "beside" names the env of
muster's it is compared with; with a word, only of those whose name has it. It knows nothing else of muster.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from typing import Any

BATCH, AGENTS, TASKS, GRID = 256, 5, 10, 16
SECONDS = 3.0
RESCUE = "rescue:5x10"

Found = dict[str, Any]


def jumanji_foraging() -> Found:
    """Level-based foraging, the nearest grid environment: agents walk on a grid and collect food."""
    from jumanji.environments import LevelBasedForaging
    from jumanji.environments.routing.lbf.generator import RandomGenerator

    generator = RandomGenerator(grid_size=GRID, num_agents=AGENTS, num_food=TASKS, fov=GRID)
    name = f"LevelBasedForaging, {GRID}x{GRID}, {AGENTS} agents, {TASKS} food, {BATCH} in a batch"
    return _jumanji(LevelBasedForaging(generator=generator), name)


def jumanji_rescue() -> Found:
    """Search and rescue of jumanji: continuous, not a grid, but the same story."""
    from jumanji.environments import SearchAndRescue

    return _jumanji(SearchAndRescue(), f"SearchAndRescue (continuous), default settings, {BATCH} in a batch")


def _jumanji(env: Any, name: str) -> Found:
    """Random actions, drawn beforehand; a batch of compiled environments that begin again when they end.

    Only the reward is kept, so the compiler may leave the observation out: this is the environment alone.
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
    return _row(f"jumanji {version('jumanji')} {name}", RESCUE, steps, began)


def pettingzoo_pursuit() -> Found:
    """Pursuit: pursuers on a 16x16 grid catch evaders; one environment at a time, observation included, by default."""
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
    return _row(name, RESCUE, steps, began)


def smax(allies: int, enemies: int, batch: int, beside: str, scripted: bool) -> Found:
    """Battles of jaxmarl: we act at random, the enemies too or by their script; compiled, and begun again on ending.

    Only the reward is kept, so the compiler may leave out an observation that is not used. With both sides at random
    no opponent has to decide: this is the environment alone, at its fastest.
    """
    import jax
    from jaxmarl.environments.smax import SMAX, HeuristicEnemySMAX, Scenario

    marines = jax.numpy.zeros((allies + enemies,), dtype=jax.numpy.uint8)
    scenario = Scenario(marines, allies, enemies, False, False)
    env = (HeuristicEnemySMAX if scripted else SMAX)(scenario=scenario)
    rounds = 50

    @jax.jit
    def run(state: Any, key: Any) -> Any:
        def step(state: Any, key: Any) -> Any:
            keys = jax.random.split(key, 3)
            ours = jax.random.randint(keys[0], (allies, batch), 0, env.num_ally_actions)
            theirs = jax.random.randint(keys[1], (enemies, batch), 0, env.num_enemy_actions)
            actions = dict(zip(env.agents, [*ours] if scripted else [*ours, *theirs], strict=True))
            _, state, rewards, _, _ = jax.vmap(env.step)(jax.random.split(keys[2], batch), state, actions)
            return state, rewards["ally_0"]

        return jax.lax.scan(step, state, jax.random.split(key, rounds))

    key = jax.random.PRNGKey(0)
    _, state = jax.jit(jax.vmap(env.reset))(jax.random.split(key, batch))
    state, _ = jax.block_until_ready(run(state, key))
    began, steps = time.process_time(), 0
    while time.process_time() - began < SECONDS:
        state, _ = jax.block_until_ready(run(state, key))
        steps += batch * rounds
    enemy = "scripted enemy" if scripted else "random enemy"
    name = f"SMAX {allies}m_vs_{enemies}m, {enemy}, {batch} in a batch"
    return _row(f"jaxmarl {version('jaxmarl')} {name}", beside, steps, began)


def _row(env: str, beside: str, steps: int, began: float) -> Found:
    return {"env": env, "beside": beside, "steps_per_second": steps / (time.process_time() - began)}


def main() -> None:
    """Measure what is installed."""
    peers: dict[str, Callable[[], Found]] = {
        "jumanji foraging": jumanji_foraging,
        "jumanji rescue": jumanji_rescue,
        "pettingzoo pursuit": pettingzoo_pursuit,
        "jaxmarl SMAX 10m_vs_11m": partial(smax, 10, 11, BATCH, "battle:m10v11", False),
        "jaxmarl SMAX 10m_vs_11m scripted": partial(smax, 10, 11, BATCH, "battle:m10v11", True),
        "jaxmarl SMAX 80m_vs_82m": partial(smax, 80, 82, 64, "battle:w80v82", False),
    }
    # Some of them greet on standard output, which is for the result alone.
    ours = os.dup(1)
    os.dup2(2, 1)
    found: list[Found] = []
    only = sys.argv[1] if len(sys.argv) > 1 else ""
    for name, peer in peers.items():
        if only not in name:
            continue
        try:
            found.append(peer())
        except ImportError as missing:
            found.append({"env": name, "skipped": str(missing)})
    with os.fdopen(ours, "w", encoding="utf-8") as out:
        json.dump(found, out)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    os.environ["JAX_PLATFORMS"] = "cpu"
    main()
