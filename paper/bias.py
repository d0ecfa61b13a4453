"""The expected gradient of each likelihood beside the true one, on assignments small enough to sample without end.

    python -m paper.bias [--markdown] [--out FILE]

One decision: random scores h, a random reward for every assignment, noise on h, LP. The true gradient of the expected
reward in h is that of the noise's density (the score function), by Monte Carlo; the others are what `ppo` and `a2c`
would add up. Episodes: the same problem several times in a row with correlated noise, where only agents that keep their
task earn anything; parameters are h and a bonus beta on the task that an agent has. Cosine and length are those of an
expected gradient to the true one. Writes paper/bias.json; `--markdown` prints the tables from there.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from muster.assign import Solver
from muster.data import Floats, Ints, Problem
from muster.learning.losses.choices import Choices
from muster.policy.noise import GUMBEL_STD
from paper.tables.engine import clean_commit

RECORD = Path(__file__).with_suffix(".json")
SIZES = ((1, 3), (2, 2), (2, 4), (3, 3), (3, 5), (4, 6))
INSTANCES, SAMPLES = 8, 100_000
BATCHES = 10
"""Of so many samples, where earlier noise makes the true gradient small beside that of a draw."""
NOISES = (1.0, 0.4)
"""Standard deviations of the noise, beside scores of standard deviation 1."""
SIGMA, STEPS = 0.7017, 5
"""sigma and p that the paper prints for LP on marines."""
EPISODE, EPISODES, EPISODE_SIZE, EPISODE_INSTANCES = 8, 100_000, (3, 4), 4
READINGS = {
    "standard deviation, innovations": (False, False),
    "variance, innovations": (True, False),
    "standard deviation, totals": (False, True),
    "variance, totals": (True, True),
}
"""Of the paper's noise N(., sigma / p): whether it gives the variance, and whether each decision's whole noise is
remembered rather than its own draw."""

Row = dict[str, Any]


class Noise(NamedTuple):
    """Of a decision: a draw and what is remembered of p earlier ones."""

    std: float
    """Of a draw."""
    totals: bool = False
    gumbel: bool = False

    @property
    def tau(self) -> float:
        """Scale of a Gumbel draw."""
        return self.std / GUMBEL_STD

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[Floats, Floats]:
        """Draws of mean 0, and the slopes of their log-density in the mean."""
        if self.gumbel:
            gumbels = -np.log(rng.exponential(size=shape))
            return self.tau * (gumbels - np.euler_gamma), (1 - np.exp(-gumbels)) / self.tau
        draws = rng.normal(0.0, self.std, shape)
        return draws, draws / self.std**2

    def remember(self, history: list[Floats], draw: Floats, total: Floats) -> list[Floats]:
        """The last p of what is added to later decisions."""
        return [*history, total if self.totals else draw][-STEPS:]


def reading(variance: bool, totals: bool) -> tuple[Noise, float]:
    """A reading of the paper's noise, and the variance that its update takes the whole noise to have."""
    std = math.sqrt(SIGMA / STEPS) if variance else SIGMA / STEPS
    return Noise(std, totals), SIGMA if variance else SIGMA**2


def assign(scores: Floats, idling: bool) -> Ints:
    """[S, N] best assignments, one agent a task."""
    solver = Solver("lp", effort="fast", assign_all=not idling, certify=False)
    return solver.run(Problem(scores))[0].assignment


def compare(found: Floats, true: Floats) -> tuple[float, float]:
    """Cosine, and length as a multiple of the true one; no cosine where there is no gradient."""
    length, whole = float(np.linalg.norm(found)), float(np.linalg.norm(true))
    return float((found * true).sum() / (length * whole)) if length else math.nan, length / whole


def choice_slopes(h: Floats, history: Floats, taken: Ints, tau: float, idling: bool, exchanging: bool) -> Floats:
    """[S, N, M] slopes in h of the log-likelihood of the choices `taken`."""
    states, n, m = history.shape
    ones = np.ones(history.shape)
    choices = Choices(
        taken,
        history.astype(np.float32),
        ones,
        np.ones((states, m)),
        np.ones((states, n), np.bool_),
        ones.astype(np.bool_),
        idling,
        exchanging,
    )
    scores = np.broadcast_to(h, history.shape).astype(np.float32), None
    before = choices.likelihood(scores, tau)
    # The loss is a mean over states and agents, and this a sum over agents in each state.
    return -choices.clipped_loss(scores, tau, before, np.ones(states))[2][0] * float(states * n)


def one_step(n: int, m: int, std: float, idling: bool) -> Iterator[Row]:
    """The likelihood of choices, with and without exchanges, over all instances of a size."""
    noise, found = Noise(std, gumbel=True), {True: [], False: []}  # type: dict[bool, list[tuple[float, float]]]
    for instance in range(INSTANCES):
        rng = np.random.default_rng(instance)
        h, reward = rng.normal(size=(n, m)), rewards(rng, n, m)
        draws, slopes = noise.draw(rng, (SAMPLES, n, m))
        taken = assign(h + draws, idling)
        advantage = reward(taken)
        advantage -= advantage.mean()
        true = np.einsum("s,sij->ij", advantage, slopes) / SAMPLES
        # Without earlier noise a choice's slopes depend on the assignment alone, and there are few.
        _, first, counts = np.unique(taken, axis=0, return_index=True, return_counts=True)
        for exchanging in found:
            each = choice_slopes(h, np.zeros((len(first), n, m)), taken[first], noise.tau, idling, exchanging)
            expected = np.einsum("s,sij->ij", advantage[first] * counts / SAMPLES, each)
            found[exchanging].append(compare(expected, true))
    for exchanging, pairs in found.items():
        cosines, lengths = np.array(pairs).T
        none = bool(np.isnan(cosines).any())
        yield {
            "size": f"{n}x{m}",
            "noise": std,
            "idling": idling,
            "exchanges": exchanging,
            "cosine": None if none else float(cosines.mean()),
            "worst": None if none else float(cosines.min()),
            "length": float(lengths.mean()),
        }


def rewards(rng: np.random.Generator, n: int, m: int) -> Callable[[Ints], Floats]:
    """A reward for each assignment: something for each pair, and as much for the whole."""
    pairs, whole = rng.normal(size=(n, m + 1)), rng.normal(size=(m + 1,) * n)
    return lambda taken: pairs[np.arange(n), taken].sum(axis=1) + whole[tuple(taken.T)]


def readings() -> Iterator[Row]:
    """The paper's likelihood after p decisions, in each reading of its noise: one decision, its own reward."""
    n, m = EPISODE_SIZE
    for name, (variance, totals) in READINGS.items():
        noise, taken_for = reading(variance, totals)
        pairs, stds = [], []
        for instance in range(EPISODE_INSTANCES):
            rng = np.random.default_rng(instance)
            h, reward = rng.normal(size=(n, m)), rewards(rng, n, m)
            true, noisy = np.zeros((n, m)), np.zeros((n, m))
            for _ in range(BATCHES):
                history: list[Floats] = []
                for _ in range(STEPS + 1):
                    draw, slope = noise.draw(rng, (SAMPLES, n, m))
                    total = draw + sum(history)
                    history = noise.remember(history, draw, total)
                advantage = reward(assign(h + total, idling=False))
                advantage -= advantage.mean()
                true += np.einsum("s,sij->ij", advantage, slope)
                noisy += np.einsum("s,sij->ij", advantage, total / taken_for)
            pairs.append(compare(noisy, true))
            stds.append(total.std())
        cosine, length = np.mean(pairs, axis=0)
        yield {"reading": name, "std": float(np.mean(stds)), "cosine": float(cosine), "length": float(length)}


class Episode(NamedTuple):
    """Episodes of one instance: what was decided, by decision."""

    slopes: list[Floats]
    """[S, N, M] of the draws' density."""
    noise: list[Floats]
    """[S, N, M] whole noise."""
    history: list[Floats]
    taken: list[Ints]
    had: list[Ints]
    """[S, N] the tasks before, -1 at first."""
    returns: list[Floats]
    """[S] reward from here on."""


def run_episodes(h: Floats, worth: Floats, noise: Noise, rng: np.random.Generator) -> Episode:
    """Decide on the same problem again and again; agents that keep their task earn what it is worth to them."""
    n, m = h.shape
    found = Episode([], [], [], [], [], [])
    had, remembered, earned = np.full((EPISODES, n), -1), [np.zeros((EPISODES, n, m))], []
    for _ in range(EPISODE):
        draw, slope = noise.draw(rng, (EPISODES, n, m))
        history = sum(remembered)
        taken = assign(h + history + draw, idling=False)
        remembered = noise.remember(remembered, draw, draw + history)
        earned.append((worth[np.arange(n), taken] * (taken == had)).sum(axis=1))
        for part, one in zip(found, (slope, draw + history, history, taken, had), strict=False):
            part.append(one)
        had = taken
    found.returns.extend(np.cumsum(earned[::-1], axis=0)[::-1])
    return found


def gradient(episode: Episode, slopes: list[Floats], too_high: float) -> Floats:
    """Expected gradient in h and beta; the critic knows the mean return of each state, plus so many deviations."""
    total, bonus = 0.0, 0.0
    for had, returns, slope in zip(episode.had, episode.returns, slopes, strict=True):
        _, state = np.unique(had, axis=0, return_inverse=True)
        value = np.bincount(state, returns) / np.bincount(state)
        advantage = returns - value[state] - too_high * returns.std()
        weighed = np.einsum("s,sij->ij", advantage, slope) / len(returns)
        kept = had[..., None] == np.arange(slope.shape[2])
        total, bonus = total + weighed, bonus + float(np.einsum("s,sij,sij->", advantage, slope, kept)) / len(returns)
    return np.append(total, bonus)


def episodes() -> Iterator[Row]:
    """Every likelihood over episodes, with a critic that is right about each state and one that expects too much."""
    n, m = EPISODE_SIZE
    cases = {name: reading(*each) for name, each in READINGS.items() if "innovations" in name}
    cases["choices"] = Noise(SIGMA / STEPS, gumbel=True), 0.0
    for name, (noise, taken_for) in cases.items():
        found: dict[float, list[tuple[float, ...]]] = {0.0: [], 1.0: []}
        for instance in range(EPISODE_INSTANCES):
            rng = np.random.default_rng([1, instance])
            h, worth = rng.normal(0.0, 0.2, (n, m)), rng.uniform(0.5, 1.5, (n, m))
            episode = run_episodes(h, worth, noise, rng)
            true = gradient(episode, episode.slopes, 0.0)
            if noise.gumbel:
                both = zip(episode.history, episode.taken, strict=True)
                slopes = [choice_slopes(h, history, taken, noise.tau, False, True) for history, taken in both]
            else:
                slopes = [one / taken_for for one in episode.noise]
            for too_high in found:
                guess = gradient(episode, slopes, too_high)
                found[too_high].append((*compare(guess, true), float(true[-1]), float(guess[-1])))
        for too_high, rows in found.items():
            cosine, length, true_bonus, bonus = np.mean(rows, axis=0)
            row = {"likelihood": name, "too_high": too_high, "cosine": float(cosine), "length": float(length)}
            yield row | {"keep_true": float(true_bonus), "keep": float(bonus)}


def tables(record: Row) -> Iterator[str]:
    """The record as Markdown."""
    yield from ("| one decision, choices (`ppo`) | noise | all assigned | no exchanges | idling | no exchanges |",)
    yield "|---|---|---|---|---|---|"
    kinds = [(idling, exchanges) for idling in (False, True) for exchanges in (True, False)]
    cells = {(r["size"], r["noise"], r["idling"], r["exchanges"]): r for r in record["one_step"]}
    for size, std in dict.fromkeys((r["size"], r["noise"]) for r in record["one_step"]):
        shown = [_cell(cells[size, std, *kind]) for kind in kinds]
        yield f"| {size} | {std:g} | {' | '.join(shown)} |"
    yield from ("", "| one decision, `a2c`: sigma / p is, remembered are | std of the noise | cosine | length |")
    yield "|---|---|---|---|"
    for row in record["readings"]:
        yield f"| {row['reading']} | {row['std']:.2f} | {row['cosine']:.2f} | {row['length']:.2f} |"
    yield from (
        "",
        "| episodes | critic too high by | cosine | length | slope of beta / the true one |",
        "|---|---|---|---|---|",
    )
    for row in record["episodes"]:
        head = f"| {row['likelihood']} | {row['too_high']:g} | {row['cosine']:.2f} | {row['length']:.2f}"
        yield f"{head} | {row['keep']:.2f} / {row['keep_true']:.2f} |"


def _cell(row: Row) -> str:
    if row["cosine"] is None:
        return "–"
    return f"{row['cosine']:.3f} ({row['worst']:.2f}), {row['length']:.2f}"


def main() -> None:
    """Measure and write, or print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--out", type=Path, default=RECORD)
    given = parser.parse_args()
    if not given.markdown:
        record: Row = {"command": "python -m paper.bias"}
        record |= {"commit": clean_commit()} if given.out == RECORD else {}
        each = [one_step(n, m, std, idle) for n, m in SIZES for std in NOISES for idle in (False, True)]
        record["one_step"] = [row for rows in each for row in rows]
        record |= {"readings": list(readings()), "episodes": list(episodes())}
        given.out.write_text(json.dumps(record, indent=1) + "\n")
    print("\n".join(tables(json.loads(given.out.read_text()))))


if __name__ == "__main__":
    main()
