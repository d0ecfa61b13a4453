"""Speed of two checkouts, measured in turn in one run: python -m benchmarks.before_after BEFORE AFTER [--rounds 7].

Each checkout has one process, by the Python of its own .venv if it has one, which does the same work in every round:
the two take turns, so that whatever else the machine does slows both. Times are CPU seconds on one thread, of the
quickest round; the ratio is the median over rounds of before / after, so above 1 the second is quicker.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

Work = Callable[[], int]
"""Does a fixed amount of work and returns how much it was."""


def environment(name: str, batch: int, steps: int, baseline: str | None = None, policy: str | None = None) -> Work:
    """Steps of an environment under a baseline, a learned policy, or assignments drawn beforehand."""
    import numpy as np

    from muster.envs.registry import make
    from muster.policy.names import resolve
    from muster.rng import episode_seeds

    env = make(name, batch)
    acting = resolve(baseline or policy, env) if baseline or policy else None
    drawn = np.random.default_rng(0).integers(env.n_tasks, size=(64, batch, env.n_agents))
    # The names of today, or those from before 0.2.0.
    reset_env = getattr(env, "start", None) or env.reset
    reset_policy = acting and (getattr(acting, "begin", None) or acting.reset)
    act = acting and acting.act
    if policy and env.reads_reasons:
        act = getattr(acting, "orders", None) or acting.actions
    begun = 0

    def begin(slots: np.ndarray) -> None:
        nonlocal begun
        seeds = episode_seeds(0, begun + np.arange(len(slots)))
        reset_env(slots, seeds)
        if reset_policy:
            reset_policy(slots, seeds)
        begun += len(slots)

    def work() -> int:
        for k in range(steps):
            result = env.step(act(env.observe()) if act else drawn[k % 64])
            ended = np.flatnonzero(result.terminated | result.truncated)
            if ended.size:
                begin(ended)
        return steps * batch

    begin(np.arange(batch))
    return work


def inference(method: str, size: tuple[int, int], batch: int, times: int) -> Work:
    """Solves of a batch of random problems."""
    try:
        from benchmarks.instances import as_problem, make_instances
        from muster.assign import Solver
    except ImportError:  # before 0.2.0
        from muster.benchmarks.instances import as_problem, make_instances  # type: ignore[import-not-found,no-redef]
        from muster.inference.solver import Solver  # type: ignore[import-not-found,no-redef]

    problem = as_problem(make_instances(size, "hits", batch, kind="random" if method == "quad" else None))
    solver = Solver(method, threads=1, certify=False)

    def work() -> int:
        for _ in range(times):
            solver(problem)
        return times * batch

    return work


def single(method: str, times: int, size: tuple[int, int] = (5, 10)) -> Work:
    """Calls of muster.assign with one small table each."""
    import numpy as np

    import muster

    rng = np.random.default_rng(0)
    tables = rng.normal(size=(64, *size))
    more = {"task_scores": rng.normal(size=(size[1], size[1])) * 0.1} if method == "quad" else {}

    def work() -> int:
        for k in range(times):
            muster.assign(tables[k % 64], method=method, **more)
        return times

    return work


def training(env: str, learner: str, updates: int, method: str = "quad") -> Work:
    """Updates of a learner."""
    from muster.learning import settings
    from muster.learning.learners import make_learner

    given = {"es": settings.ESSettings(pairs=4, episodes=4)}
    if not hasattr(settings, "PPOSettings"):  # before 0.2.0
        learner = "a2c" if learner == "ppo" else learner
    made = make_learner(settings.TrainSettings(env=env, learner=learner, inference=method, steps=10**9, **given))

    def work() -> int:
        for _ in range(updates):
            made.update(0.0)
        return updates

    return work


CASES: dict[str, tuple[str, Callable[[], Work]]] = {
    "rescue:2x4, random": ("steps", lambda: environment("rescue:2x4", 256, 10000)),
    "rescue:5x10, random": ("steps", lambda: environment("rescue:5x10", 256, 6000)),
    "battle:m10v10, c": ("decisions", lambda: environment("battle:m10v10", 64, 250, "c")),
    "battle:w15v17, wcnoks": ("decisions", lambda: environment("battle:w15v17", 64, 100, "wcnoks")),
    "fleet:24, fleet-24-lp-dm": (
        "decisions",
        lambda: environment("fleet:24,city=small", 256, 120, policy="fleet-24-lp-dm"),
    ),
    "rescue:5x10, rescue-5x10-lp-dm": (
        "decisions",
        lambda: environment("rescue:5x10", 256, 200, policy="rescue-5x10-lp-dm"),
    ),
    "battle:m10v10, battle-m10v10-lp-dm": (
        "decisions",
        lambda: environment("battle:m10v10", 64, 250, policy="battle-m10v10-lp-dm"),
    ),
    "LP 5x10, one call": ("calls", lambda: single("lp", 2000)),
    "LP 10x10, one call": ("calls", lambda: single("lp", 2000, (10, 10))),
    "QUAD 5x10, one call": ("calls", lambda: single("quad", 500)),
    "LP 5x10, batch 256": ("solves", lambda: inference("lp", (5, 10), 256, 200)),
    "LP 80x82, batch 16": ("solves", lambda: inference("lp", (80, 82), 16, 10)),
    "QUAD 5x10, batch 256": ("solves", lambda: inference("quad", (5, 10), 256, 20)),
    "QUAD 80x82, batch 16": ("solves", lambda: inference("quad", (80, 82), 16, 2)),
    "ES on rescue:2x4, QUAD": ("updates", lambda: training("rescue:2x4", "es", 10)),
    "PPO on rescue:2x4, QUAD": ("updates", lambda: training("rescue:2x4", "ppo", 40)),
    "PPO on rescue:5x10, QUAD": ("updates", lambda: training("rescue:5x10", "ppo", 10)),
    "PPO on battle:w15v17, QUAD": ("updates", lambda: training("battle:w15v17", "ppo", 3)),
    "PPO on battle:m10v10, LP": ("updates", lambda: training("battle:m10v10", "ppo", 3, "lp")),
    "ES on battle:w15v17, QUAD": ("updates", lambda: training("battle:w15v17", "es", 1)),
}


def serve() -> None:
    """Do the case that each line of standard input names, and answer with work done and CPU seconds.

    A checkout from before there was such a thing answers that nothing was done.
    """
    made: dict[str, Work] = {}
    for line in sys.stdin:
        name = line.strip()
        if name not in made:
            try:
                made[name] = CASES[name][1]()
            except (ImportError, AttributeError):
                made[name] = lambda: 0
        began = time.process_time()
        done = made[name]()
        print(done, time.process_time() - began, flush=True)


class Checkout:
    """A process that imports muster from one folder."""

    def __init__(self, folder: str) -> None:
        path = {"PYTHONPATH": os.path.abspath(folder), "MUSTER_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"} | {
            "NUMBA_NUM_THREADS": "1",
            "MUSTER_NUM_THREADS": "1",
        }
        own = os.path.join(os.path.abspath(folder), ".venv", "bin", "python")
        command = [own if os.path.exists(own) else sys.executable, os.path.abspath(__file__), "--serve"]
        self.process = subprocess.Popen(
            command, env=os.environ | path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=folder
        )

    def measure(self, name: str) -> tuple[float, float]:
        """Work done and CPU seconds."""
        to, back = self.process.stdin, self.process.stdout
        assert to is not None
        assert back is not None
        to.write(name + "\n")
        to.flush()
        done, seconds = back.readline().split()
        return float(done), float(seconds)


def main() -> None:
    """Measure both checkouts and print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", metavar="FOLDER", help="two checkouts: before, after")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve()
        return
    if len(given.folders) != 2:
        parser.error("name two folders: the checkout before and the one after")
    both = [Checkout(folder) for folder in given.folders]
    print("| work on one thread | before | after | after / before |")
    print("|---|---:|---:|---:|")
    for name, (unit, _) in CASES.items():
        if given.only not in name:
            continue
        if not all(checkout.measure(name)[0] for checkout in both):
            print(f"| {name} | not in both | | |", flush=True)
            continue
        rounds = []
        for k in range(given.rounds):
            order = both if k % 2 == 0 else both[::-1]
            found = {checkout: checkout.measure(name) for checkout in order}
            rounds.append([found[checkout] for checkout in both])
        done = rounds[0][0][0]
        before, after = (done / min(pair[k][1] for pair in rounds) for k in (0, 1))
        ratio = statistics.median(pair[0][1] / pair[1][1] for pair in rounds)
        print(f"| {name} | {before:,.0f} {unit}/s | {after:,.0f} {unit}/s | {ratio:.2f} |", flush=True)
    for checkout in both:
        assert checkout.process.stdin is not None
        checkout.process.stdin.close()
        checkout.process.wait()


if __name__ == "__main__":
    main()
