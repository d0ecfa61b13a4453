"""`muster warmup`: compile every kernel ahead of time."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, get_args

from muster.inference.settings import Method

ROUNDED: dict[str, Any] = {
    "scores": [[4.0, 2.0], [3.0, 4.0], [3.0, 1.0]],
    "contributions": [[3.0, 2.0], [2.0, 3.0], [2.0, 1.0]],
    "capacities": [4.0, 2.5],
}
"""A problem that agents split themselves between tasks in, with contributions that differ by agent and by task."""

VARIANTS = (
    "battle:w3v3,first_order=-5",
    "battle:m2v2,planes=true",
    "rescue:2x4,mud=0.3",
    "rescue:2x4,planes=true",
    "pursuit:4x2,features=raw",
)
"""Worlds whose settings have kernels of their own."""


@dataclass(frozen=True)
class Warmup:
    """Compile everything ahead of time: inference, worlds, scoring, learning. Minutes once, then seconds."""

    def run(self) -> None:
        """Use each part once, saying how long it took."""
        from rich.console import Console

        from muster.kernel_cache import be_quiet, kept_in

        # What is compiled is listed here.
        be_quiet()
        console = Console()
        began = time.perf_counter()
        for name, use in parts():
            console.print(f"{name} … ", end="", highlight=False)
            started = time.perf_counter()
            use()
            console.print(f"{time.perf_counter() - started:.1f} s", highlight=False)
        console.print(f"all ready after {time.perf_counter() - began:.1f} s", highlight=False)
        be_quiet(False)
        folder = kept_in()
        console.print(
            f"kept in {folder}"
            if folder
            else "kept nowhere: no folder can be written to; set NUMBA_CACHE_DIR to one that can",
            highlight=False,
            soft_wrap=True,
        )


def parts() -> Iterator[tuple[str, Callable[[], object]]]:
    """Everything that has kernels, with a use of each."""
    from muster.envs.registry import EXAMPLES, make
    from muster.evaluation.evaluate import evaluate
    from muster.inference import assign
    from muster.policy.names import shipped

    for method in get_args(Method):
        # Without task scores QUAD is LP.
        more: dict[str, Any] = {"task_scores": [[0.5, 0.1], [0.1, 0.0]]} if method == "quad" else {}
        yield f"inference, {method}", partial(assign, [[1.0, 0.5]], method=method, **more)
    for effort in ("fast", "best", "exact"):
        yield f"inference, lp that has to be rounded, {effort}", partial(assign, **ROUNDED, method="lp", effort=effort)
    yield "inference, quad that is not proven", _bound_pairs
    yield "inference, plans that stay", partial(assign, [[1.0, 0.5]], previous=[0])
    yield "inference, tables of pairs", _solve_pairs
    for env in EXAMPLES:
        for name in make(env).baselines():
            yield f"{env}, {name}", partial(evaluate, name, env, episodes=1)
        yield f"{env}, replay", partial(_record, env)
        family = env.partition(":")[0]
        for model in ("dm", "context"):
            learned = [name for name in shipped() if name.startswith(f"{family}-") and name.endswith(f"-{model}")]
            for name in learned[:1]:
                yield f"{env}, {name}", partial(evaluate, name, env, episodes=1, noise=True)
    for env in VARIANTS:
        yield env, partial(evaluate, next(iter(make(env).baselines())), env, episodes=1)
    yield "fleet, recorded days", _play_days
    yield "service, JSON", _read_json
    for learner in ("es", "srl", "imitate", "a2c") if find_spec("torch") else ("es", "srl", "imitate"):
        yield f"learning, {learner}", partial(_learn, EXAMPLES[0], learner)


def _bound_pairs() -> None:
    """A problem too large for QUAD's proof, whose bound is looked for."""
    import numpy as np

    from muster.inference import assign

    draw = np.random.default_rng(0)
    h, g = draw.random((16, 16)), draw.standard_normal((16, 16))
    assign(h, task_scores=g, capacities=[2.0] * 16, method="quad", effort="best")


def _solve_pairs() -> None:
    """Tables of few pairs among many have kernels of their own, for contributions that are the same and that differ."""
    import numpy as np

    from muster.inference.solver import Solver
    from muster.inference.sparse import SparseProblem, solve_sparse

    here = np.zeros(1, np.int64)
    for use in ([1.0, 1.0], [1.0, 2.0]):
        pairs = np.arange(2)
        solve_sparse(SparseProblem.of(2, pairs, here.repeat(2), np.ones(2), np.array(use), np.ones(1)), Solver("lp"))


def _play_days() -> None:
    """Recorded days have kernels of their own; this one has two zones and one request."""
    import gzip

    from muster.evaluation.evaluate import evaluate

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "zones.csv").write_text("zone,column,row\n0,0,0\n1,2,0\n")
        (folder / "legs.csv").write_text("from,to,metres,minutes,fare\n0,1,400,2,2\n1,0,400,2,2\n")
        with gzip.open(folder / "trips.csv.gz", "wt") as file:
            file.write("date,set,second,pickup,dropoff\n2020-01-01,test,60,0,1\n")
        evaluate("greedy", f"fleet:1,trips={folder},set=test", episodes=1)


def _read_json() -> None:
    """Bodies of requests are read by a kernel."""
    from muster.service.forms import Forms

    Forms(lambda data: None).read(b"{}")


def _record(env: str) -> None:
    """A replay is played step by step, by kernels of its own."""
    from muster.envs.registry import make
    from muster.evaluation.film import film
    from muster.evaluation.replay import record
    from muster.policy.names import resolve

    world = make(env)
    film(record(resolve(next(iter(world.baselines())), world), world, 0), world)


def _learn(env: str, learner: str) -> None:
    from muster.learning.settings import TrainSettings
    from muster.learning.train import run_training

    teacher = "lp-distance" if learner == "imitate" else None
    settings = TrainSettings(env=env, learner=learner, teacher=teacher, steps=1, evaluate_every=10**9)  # type: ignore[arg-type]
    with tempfile.TemporaryDirectory() as folder:
        run_training(settings, Path(folder) / "run")
