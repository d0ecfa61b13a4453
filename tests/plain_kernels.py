"""Results of every family of kernels, a line each, for comparing compiled ones with plain Python."""

from __future__ import annotations

import hashlib

import numpy as np

import muster
from muster.data import Floats32
from muster.envs.battle.env import BattleEnv
from muster.envs.registry import make
from muster.evaluation.evaluate import evaluate
from muster.rng import episode_seeds
from muster.scoring.direct import Pairs, pack, pair_scores


def infer() -> None:
    rng = np.random.default_rng(0)
    scores, task_scores = rng.normal(size=(4, 3)), rng.normal(size=(3, 3))
    for kind, contributions in (("plain", None), ("mixed", rng.uniform(0.5, 1.5, (4, 3)))):
        for method in ("amax", "lp", "quad"):
            found = muster.assign(scores, task_scores, contributions, np.full(3, 2.0), method=method)
            print(f"{method}-{kind} {found.assignment.tolist()} {found.objective!r} {found.prices.tolist()}")


def rescue() -> None:
    for policy in ("topline", "closest", "rescue-2x4-quad-dm"):
        print(f"{policy} {evaluate(policy, 'rescue:2x4', episodes=2).mean}")


def score() -> None:
    rng = np.random.default_rng(1)

    def draw(*shape: int) -> Floats32:
        return rng.normal(size=shape).astype(np.float32)

    shapes = {"left": (2, 6), "right": (3, 6), "pair": (5, 6), "bias1": (6,)}
    shapes |= {"weight2": (6, 6), "bias2": (6,), "weight3": (6, 1), "bias3": (1,)}
    parameters = {f"h.{name}": draw(*shape) for name, shape in shapes.items()}
    alive = np.ones((2, 3), np.bool_), np.ones((2, 4), np.bool_)
    pairs = Pairs(draw(2, 3, 2), draw(2, 4, 3), draw(2, 3, 4, 5), *alive, np.zeros((0, 0, 0), np.bool_))
    print("scores", pair_scores(pack(parameters, "h"), pairs).tolist())


def fight() -> None:
    one = np.arange(1)
    for scenario in ("m3v3", "w3v3", "zh2v2"):
        env = make(f"battle:{scenario}", 1)
        env.start(one, episode_seeds(0, one))
        policy = BattleEnv.baselines()["wcnoks"](env)
        policy.begin(one, episode_seeds(0, one))
        for _ in range(12):
            env.step(policy.act(env.observe()))
        digest = hashlib.sha256()
        for name, array in sorted(env.get_state().items()):
            digest.update(name.encode() + np.ascontiguousarray(array).tobytes())
        print(scenario, digest.hexdigest())


if __name__ == "__main__":
    infer()
    rescue()
    score()
    fight()
