"""How much of structured learning's gradient is signal, by how long candidates keep their noise.

    muster train battle:m10v10 --inference lp --learner srl --srl.hold 8 --minutes 1.2 --seed 90 --out runs/held
    python paper/gradients.py runs/held

A policy stays as it is while a critic learns its values. Then each way to try candidates gives a gradient of every one
of some batches of states. Signal is the mean of the products of gradients of two batches, noise what their own squares
have beyond it. The last column is the cosine of the signal with that of candidates that differ in one decision only and
are played to the end: what is wanted, at a higher price.
"""

from __future__ import annotations

import argparse
from typing import NamedTuple

import numpy as np

from muster.data import BatchObservation, Floats
from muster.learning.learner_settings import SRLSettings
from muster.learning.learners import make_learner
from muster.learning.settings import TrainSettings
from muster.learning.structured import Structured, candidate_weights
from muster.learning.trials import Player, Trials
from muster.policy.names import resolve

WORLD = "battle:m10v10"
TO_THE_END = 100
SPREADING, LEARNING, BETWEEN = 60, 150, 4
"""Rounds of play before the critic learns, updates of the critic, rounds of play between two batches."""


class Way(NamedTuple):
    """How candidates are tried; the critic values what comes after, but at the end."""

    hold: int
    horizon: int


WANTED = Way(1, TO_THE_END)
WAYS = (WANTED, Way(1, 10), Way(2, 10), Way(4, 10), Way(8, 10), Way(8, TO_THE_END), Way(2, 5))


def gradients(learner: Structured, ways: tuple[Way, ...], batches: int) -> dict[Way, Floats]:
    """[batches, D] of each way, in the same states."""
    place, settings = learner.envs[0], learner.settings
    env, temperature = place.env, settings.temperature
    trials = {way: Trials(env, learner.spec, settings.candidates, *way, settings.discount) for way in ways}
    usual: dict[Way, float] = {}
    found: dict[Way, list[Floats]] = {way: [] for way in ways}
    for _ in range(batches):
        for _ in range(BETWEEN):
            learner.play(place)
        seen = learner.spec.view(env.observe())
        for way in ways:
            values = nothing if way.horizon == TO_THE_END else learner.critic
            noise = learner.draw(env.n_envs, env.n_agents, env.n_tasks)
            tried = trials[way].play(Player(learner.spec, learner.scores, learner.solver, values), noise, learner.rng)
            spread = float(np.sqrt(tried.worth.var(axis=0).mean()))
            usual[way] = 0.9 * usual.get(way, spread) + 0.1 * spread
            weights = candidate_weights(tried.worth, temperature, usual[way])
            found[way].append(learner.actor.flatten(learner.gradient(seen, tried.first, weights)))
    return {way: np.array(rows) for way, rows in found.items()}


def nothing(seen: BatchObservation) -> Floats:
    """Nothing is still to be earned."""
    return np.zeros(len(seen.agent_alive))


def common(one: Floats, other: Floats) -> float:
    """Mean product of gradients [batches, D] of two different batches."""
    count = len(one)
    return float((one.sum(axis=0) @ other.sum(axis=0) - (one * other).sum()) / (count * (count - 1)))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("policy")
    parser.add_argument("--batches", type=int, default=80)
    asked = parser.parse_args()
    learner = make_learner(
        TrainSettings(env=WORLD, inference="lp", learner="srl", steps=1, seed=91, srl=SRLSettings(hold=8))
    )
    assert isinstance(learner, Structured)
    place = learner.envs[0]
    learner.start(resolve(asked.policy, place.env).parameters)
    learner._set_sigma(learner.settings.sigma)  # as in the run that made the policy, not by the scores that it has now
    for _ in range(SPREADING):
        learner.play(place)
    for _ in range(LEARNING):
        learner.learn_values(learner.value(place), 1.0)
    found = gradients(learner, WAYS, asked.batches)
    wanted = common(found[WANTED], found[WANTED])
    print("| noise kept for | rollout | signal / noise | cosine |\n|---|---|---|---|")
    for way, rows in found.items():
        signal = common(rows, rows)
        noise = float((rows**2).sum(axis=1).mean()) - signal
        cosine = common(rows, found[WANTED]) / np.sqrt(signal * wanted) if min(signal, wanted) > 0 else float("nan")
        end = "to the end" if way.horizon == TO_THE_END else str(way.horizon)
        print(f"| {way.hold} | {end} | {signal / noise:.3f} | {cosine:.2f} |")


if __name__ == "__main__":
    main()
