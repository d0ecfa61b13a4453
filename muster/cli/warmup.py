"""`muster warmup`: compile every kernel ahead of time."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

from muster.assign.settings import Method
from muster.cli.compilers import Part, compile_with
from muster.settings import AtLeast, check_fields

if TYPE_CHECKING:
    from rich.console import Console

ROUNDED: dict[str, Any] = {
    "scores": [[4.0, 2.0], [3.0, 4.0], [3.0, 1.0]] * 3,
    "contributions": [[3.0, 2.0], [2.0, 3.0], [2.0, 1.0]] * 3,
    "capacities": [11.5, 7.5],
}
"""A problem that agents split themselves between tasks in, with contributions that differ by agent and by task, and
with too many assignments to look at them all."""

VARIANTS = (
    "battle:w3v3,first_order=-5",
    "battle:m2v2,planes=true",
    "rescue:2x4,mud=0.3",
    "rescue:2x4,planes=true",
    "pursuit:4x2,features=raw",
)
"""Environments whose settings have kernels of their own."""


MOST_WORKERS = 4
"""Processes by default: more would mostly wait for LP, QUAD and the battles, at half a gigabyte each."""


@dataclass(frozen=True)
class Warmup:
    """Compile everything ahead of time: inference, environments, scoring, learning. Minutes once, then seconds."""

    workers: Annotated[int | None, AtLeast(1)] = None
    """Processes that compile side by side, each with about half a gigabyte; None: one a core, at most four."""

    def __post_init__(self) -> None:
        check_fields(self)

    def run(self) -> None:
        """Use each part once, saying how long it took."""
        from rich.console import Console

        from muster.kernel_cache import be_quiet, kept_in
        from muster.parallel import thread_count

        # What is compiled is listed here.
        be_quiet()
        console = Console()
        began = time.perf_counter()
        folder = kept_in()
        workers = self.workers or min(MOST_WORKERS, thread_count())
        if workers > 1 and folder:
            compile_with(workers, list(parts()), lambda name, seconds: _tell(console, name, seconds))
        else:
            # One process could not use what another has compiled and not kept.
            _compile_here(console)
        console.print(f"all ready after {time.perf_counter() - began:.1f} s", highlight=False)
        be_quiet(False)
        console.print(
            f"kept in {folder}"
            if folder
            else "kept nowhere: no folder can be written to; set NUMBA_CACHE_DIR to one that can",
            highlight=False,
            soft_wrap=True,
        )


def _tell(console: Console, name: str, seconds: float) -> None:
    console.print(f"{name} … {seconds:.1f} s", highlight=False)


def _compile_here(console: Console) -> None:
    """Use one part after the other, naming each while it is compiled."""
    for part in parts():
        console.print(f"{part.name} … ", end="", highlight=False)
        started = time.perf_counter()
        part.use()
        console.print(f"{time.perf_counter() - started:.1f} s", highlight=False)


def parts() -> Iterator[Part]:
    """Everything that has kernels, with a use of each."""
    from muster.envs.registry import EXAMPLES

    yield from _procedures()
    yield from _worlds()
    yield Part("fleet, recorded days", _play_days, ("inference, lp", f"{EXAMPLES[-1]}, replay"))
    yield Part("service, JSON", _read_json)
    before: tuple[str, ...] = ("inference, quad", f"{EXAMPLES[0]}, replay")
    for learner in ("es", "srl", "imitate", "a2c") if find_spec("torch") else ("es", "srl", "imitate"):
        yield Part(f"learning, {learner}", partial(_learn, EXAMPLES[0], learner), before)
        before = (f"learning, {learner}",)


def _procedures() -> Iterator[Part]:
    """What turns scores into assignments."""
    from muster.assign import assign

    for method in get_args(Method):
        # Without task scores QUAD is LP.
        more: dict[str, Any] = {"task_scores": [[0.5, 0.1], [0.1, 0.0]]} if method == "quad" else {}
        before = ("inference, lp",) if method == "quad" else ()
        yield Part(f"inference, {method}", partial(assign, [[1.0, 0.5]], method=method, **more), before)
    before = ("inference, lp",)
    for effort in ("fast", "best", "exact"):
        name = f"inference, lp that has to be rounded, {effort}"
        yield Part(name, partial(assign, **ROUNDED, method="lp", effort=effort), before)
        before = (name,)
    yield Part("inference, quad that is not proven", _bound_pairs, ("inference, quad",))
    yield Part("inference, plans that stay", partial(assign, [[1.0, 0.5]], previous=[0]), ("inference, quad",))
    yield Part("inference, tables of pairs", _solve_pairs, ("inference, lp",))


def _worlds() -> Iterator[Part]:
    """Each environment with its rules, a replay and learned policies; those of one environment share its kernels."""
    from muster.envs.registry import EXAMPLES, baselines_of
    from muster.evaluation.evaluate import evaluate
    from muster.policy.names import shipped

    for env in EXAMPLES:
        family = env.partition(":")[0]
        learned = [
            name
            for model in ("dm", "context")
            for name in [name for name in shipped() if name.startswith(f"{family}-") and name.endswith(f"-{model}")][:1]
        ]
        uses: dict[str, Callable[[], object]] = {
            **{name: partial(evaluate, name, env, episodes=1) for name in baselines_of(env)},
            "replay": partial(_record, env),
            **{name: partial(evaluate, name, env, episodes=1, noise=True) for name in learned},
        }
        # Only the rules of battles ask no procedure.
        before: tuple[str, ...] = () if family == "battle" else ("inference, lp", "inference, plan")
        for name, use in uses.items():
            yield Part(f"{env}, {name}", use, before)
            before = (f"{env}, {name}",)
    for env in VARIANTS:
        (like,) = (name for name in EXAMPLES if name.partition(":")[0] == env.partition(":")[0])
        yield Part(env, partial(evaluate, baselines_of(env)[0], env, episodes=1), (f"{like}, replay",))


def _bound_pairs() -> None:
    """A problem too large for QUAD's proof, whose bound is looked for."""
    import numpy as np

    from muster.assign import assign

    draw = np.random.default_rng(0)
    h, g = draw.random((16, 16)), draw.standard_normal((16, 16))
    assign(h, task_scores=g, capacities=[2.0] * 16, method="quad", effort="best")


def _solve_pairs() -> None:
    """Tables of few pairs among many have kernels of their own, for contributions that are the same and that differ."""
    import numpy as np

    from muster.assign.solver import Solver
    from muster.assign.sparse import SparseProblem, solve_sparse

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
