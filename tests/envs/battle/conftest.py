from __future__ import annotations

from collections.abc import Callable

import numpy as np

from muster.envs.battle import from_options
from muster.envs.battle import layout as lay
from muster.envs.battle.env import BattleEnv
from muster.rng import episode_seeds


def begin(text: str, n_envs: int = 1, seed: int = 0, first: int = 0) -> BattleEnv:
    """An environment with a battle going on in every slot."""
    env = from_options(text, n_envs)
    slots = np.arange(n_envs)
    env.reset(slots, episode_seeds(seed, first + slots))
    return env


def fight(env: BattleEnv, heuristic: str, decisions: int = 10_000, seed: int = 0) -> BattleEnv:
    """Run a heuristic until all battles end, or for so many decisions."""
    policy = BattleEnv.baselines()[heuristic](env)
    slots = np.arange(env.n_envs)
    policy.reset(slots, episode_seeds(seed, slots))
    for _ in range(decisions):
        if (env.counters[:, lay.ENDED] != 0).all():
            break
        env.step(policy.act(env.observe()))
    return env


def frames(env: BattleEnv, heuristic: str, check: Callable[[BattleEnv], None], decisions: int) -> None:
    """Run a heuristic in slot 0 frame by frame, calling `check` after each frame."""
    policy = BattleEnv.baselines()[heuristic](env)
    policy.reset(np.array([0]), episode_seeds(0, np.array([0])))
    counters = env.counters[0]
    for _ in range(decisions):
        orders = policy.act(env.observe())
        before = env.get_state()
        for count in range(1, lay.DECISION_FRAMES + 1):
            env.set_state(before)
            env.kernel.run_frames(orders, count, 0, env.n_envs)
            check(env)
            if counters[lay.ENDED]:
                return


def gaps(env: BattleEnv) -> tuple[np.ndarray, np.ndarray]:
    """[U, U] pixels between the boxes of any two units of slot 0, along x and along y; negative where they overlap."""
    units = env.units[0].astype(np.int64)
    kinds = env.types[units[lay.TYPE]]
    found = []
    for at, low, high in ((units[lay.PX], lay.T_LEFT, lay.T_RIGHT), (units[lay.PY], lay.T_UP, lay.T_DOWN)):
        first, last = at - kinds[:, low], at + kinds[:, high]
        found.append(np.maximum(first[None, :] - last[:, None], first[:, None] - last[None, :]) - 1)
    return found[0], found[1]
