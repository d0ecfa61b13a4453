"""What workers gain, and what an update would take with up to 1,000 of them.

    python -m benchmarks.workers speed                 # 2 workers beside 1, on the clock: needs an idle machine
    python -m benchmarks.workers costs > costs.json    # what the parts of an update cost, in CPU seconds
    python -m benchmarks.workers simulate costs.json   # an update's seconds by the number of workers

`speed` takes about two minutes. The same updates are made by 1 and by 2 workers in turn; it prints steps a second, the
ratio on the clock, and what explains it: CPU seconds of either, and of an update with 2 the share of the workers' time
in which they had nothing to do, and its messages. On a busy machine only CPU seconds and messages mean anything.

`costs` measures, for evolution, what it costs to play n candidates, to draw and to use a number of noise, and to send a
message. `simulate` adds them up: every worker draws all perturbations and plays its share, and the run tells the
workers one after the other, hears them and moves the centre.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from muster.learning.candidates import Generation, Learn, draw_noise, move
from muster.learning.crew import Crew, closing
from muster.learning.hiring import hire
from muster.learning.learners import make_learner
from muster.learning.optimiser import Adam
from muster.learning.processes import Processes
from muster.learning.settings import TrainSettings
from muster.learning.tally import Figures

WORLDS = {
    "ES, battle:w15v17": {"env": "battle:w15v17", "learner": "es", "inference": "quad"},
    "ES, a Python environment": {"env": "examples.delivery:Delivery", "learner": "es", "inference": "lp"},
    "A2C, a Python environment": {"env": "examples.delivery:Delivery", "learner": "a2c", "inference": "lp"},
}
NETWORK_SECONDS, NETWORK_BYTES = 0.0005, 125e6
"""Of a message between machines: a round trip, and bytes a second (1 Gbit/s)."""
POPULATIONS = (64, 512, 4096)


class Pace:
    """A learner's updates against the clock."""

    def __init__(self, settings: TrainSettings, crew: Crew | None) -> None:
        self.crew, self.learner = crew, make_learner(settings, crew)
        self.steps, self.seconds, self.cpu_seconds = 0, 0.0, 0.0
        self.rows: list[Figures] = []
        self.learner.update()  # starts the workers, and loads the kernels

    def update(self) -> None:
        """One more."""
        if self.crew:
            self.crew.figures()
        steps, began, cpu = self.learner.steps, time.perf_counter(), self._cpu()
        self.learner.update()
        self.seconds += time.perf_counter() - began
        self.cpu_seconds += self._cpu() - cpu
        self.steps += self.learner.steps - steps
        if self.crew:
            self.rows.append(self.crew.figures())

    def _cpu(self) -> float:
        return time.process_time() + (self.crew.cpu_seconds if self.crew else 0.0)


def speed(name: str, seconds: float) -> dict[str, Any]:
    """Environment steps a second with 1 and with 2 workers, which take turns, update by update."""
    settings = {count: TrainSettings(**WORLDS[name], steps=1, workers=count) for count in (1, 2)}  # type: ignore[arg-type]
    with closing(hire(settings[2])) as crew:
        one, two = Pace(settings[1], None), Pace(settings[2], crew)
        until = time.perf_counter() + seconds
        while not one.steps or time.perf_counter() < until:
            one.update()
            two.update()
            print(f"{name}: {one.seconds:.1f} s with 1, {two.seconds:.1f} s with 2", file=sys.stderr, flush=True)
    assert one.steps == two.steps  # the same bits, so the same episodes
    return {
        "what": name,
        "updates": len(two.rows),
        "steps_per_second": {"1": round(one.steps / one.seconds), "2": round(two.steps / two.seconds)},
        "ratio": round(one.seconds / two.seconds, 3),
        "cpu_seconds": {"1": round(one.cpu_seconds, 2), "2": round(two.cpu_seconds, 2)},
        **{key: round(float(np.mean([row[key] for row in two.rows])), 3) for key in two.rows[0]},
    }


def costs(env: str) -> dict[str, Any]:
    """CPU seconds of an update's parts."""
    play, size = {}, 0
    for count in (2, 2, 8, 32):  # the first time to load the kernels
        learner: Any = make_learner(TrainSettings(env=env, learner="es", steps=1, es={"pairs": count // 2}))
        size = len(learner.theta)
        generation: Generation = learner._next()
        began = time.process_time()
        learner.field.play(generation)
        play[count] = time.process_time() - began
    settings = TrainSettings(env=env, learner="es", steps=1)
    rng, adam, theta = np.random.default_rng(0), Adam(size), np.zeros(size)
    began = time.process_time()
    noise = draw_noise(rng, settings.es, size)
    drawn = time.process_time()
    move(theta, adam, np.zeros(64), noise, settings.es, 0.1)
    moved = time.process_time()
    with closing(Crew(Processes(), 2)) as crew:
        make_learner(settings, crew)
        message = [Learn(np.zeros(64), 0.1, 1)]
        crew.call({0: message, 1: message}, lambda seat: [])
        crew.figures()
        told = time.process_time()
        for _ in range(200):
            crew.call({0: message, 1: message}, lambda seat: [])
        told = (time.process_time() - told) / 400
    return {
        "env": env,
        "parameters": size,
        "episodes": settings.es.episodes,
        "play": play,
        "draw": (drawn - began) / noise.size,
        "move": (moved - drawn) / noise.size,
        "message": told,
    }


def simulate(measured: dict[str, Any], candidates: int, workers: int, network: bool = True) -> float:
    """Seconds of an update."""
    play = {int(count): seconds for count, seconds in measured["play"].items()}
    share = math.ceil(candidates / workers)
    most = max(play)
    # Between measured shares along the line; above, in proportion; a pair is the least that was measured.
    counts = sorted(play)
    seconds = share / most * play[most] if share > most else float(np.interp(share, counts, [play[c] for c in counts]))
    numbers = candidates // 2 * measured["parameters"]
    if workers == 1:
        return numbers * (measured["draw"] + measured["move"]) + seconds
    seconds += numbers * (measured["draw"] + measured["move"])  # in every worker, and meanwhile in the run
    seconds += workers * measured["message"]
    if network:
        told, heard = 8 * candidates + 300, 16 * measured["episodes"] * share + 300
        seconds += NETWORK_SECONDS + workers * (told + heard) / NETWORK_BYTES
    return seconds


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("what", choices=("speed", "costs", "simulate"))
    asked.add_argument("file", nargs="?", help="costs.json, for simulate")
    asked.add_argument("--seconds", type=float, default=25.0, help="of each row of speed, after the first updates")
    asked.add_argument("--env", default="battle:w15v17")
    given = asked.parse_args()
    if given.what == "speed":
        for name in WORLDS:
            print(json.dumps(speed(name, given.seconds)), flush=True)
    elif given.what == "costs":
        print(json.dumps(costs(given.env), indent=2))
    elif given.file is None:
        asked.error("simulate needs the file that costs wrote")
    else:
        measured = json.loads(Path(given.file).read_text())
        print("| workers | " + " | ".join(f"{population:,} candidates" for population in POPULATIONS) + " |")
        print("|---:" * (len(POPULATIONS) + 1) + "|")
        for workers in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000):
            cells = []
            for population in POPULATIONS:
                one, here = simulate(measured, population, 1), simulate(measured, population, min(workers, population))
                more = "" if workers <= population else ", no more to share"
                cells.append(f"{here:.3g} s ({one / here:.3g}x{more})")
            print(f"| {workers:,} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
