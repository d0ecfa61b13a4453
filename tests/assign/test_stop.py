"""Every long computation looks at the stop flag every few milliseconds."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from muster.assign import assign
from muster.assign.stop import stoppable

RAISED_AFTER = 0.1
"""CPU seconds after which the flag is raised; every case takes longer by itself."""
MOST = 1.0 if "ASAN_OPTIONS" in os.environ else 0.1
"""CPU seconds that may pass until the answer: the next look at the flag (5 ms), and putting the answer together; under
sanitizers all of it is several times slower."""


def table(*shape: int) -> Any:
    return np.random.default_rng(0).normal(size=shape)


def weights(*shape: int) -> Any:
    return np.random.default_rng(1).uniform(1.0, 3.0, shape)


def products(n: int, m: int) -> Any:
    """Scores -i·j: the hardest kind for methods that augment paths."""
    return -np.outer(np.arange(1.0, n + 1), np.arange(1.0, m + 1))


def sparse_table(size: int, each: int) -> Any:
    from scipy import sparse

    rng = np.random.default_rng(2)
    agents, tasks = np.repeat(np.arange(size), each), rng.integers(size, size=size * each)
    pairs = np.unique(agents * size + tasks)
    return sparse.coo_array((rng.random(len(pairs)), divmod(pairs, size)), (size, size))


CASES: dict[str, Callable[[], dict[str, Any]]] = {
    "plain": lambda: {"scores": products(1000, 1000), "method": "lp", "assign_all": True},
    "transport": lambda: {
        "scores": products(1500, 700),
        "capacities": np.full(700, 3.0),
        "method": "lp",
        "assign_all": True,
    },
    "generalised": lambda: {
        "scores": products(1000, 500),
        "contributions": weights(1000, 500),
        "capacities": np.full(500, 5.0),
        "method": "lp",
        "assign_all": True,
    },
    "lp best": lambda: {
        "scores": table(200, 50),
        "contributions": weights(200, 50),
        "capacities": np.full(50, 7.0),
        "method": "lp",
        "effort": "best",
    },
    "lp exact": lambda: {
        "scores": 10.0 + table(100, 20),
        "contributions": weights(100, 20),
        "capacities": np.full(20, 7.3),
        "method": "lp",
        "effort": "exact",
    },
    "quad": lambda: {
        "scores": table(600, 500),
        "task_scores": table(500, 500),
        "capacities": np.full(500, 3.0),
        "method": "quad",
    },
    "quad best": lambda: {
        "scores": table(200, 150),
        "task_scores": table(150, 150),
        "capacities": np.full(150, 3.0),
        "method": "quad",
        "effort": "best",
    },
    "quad exact": lambda: {"scores": table(40, 20), "task_scores": table(20, 20), "method": "quad", "effort": "exact"},
    "minimums": lambda: {
        "scores": table(60, 30),
        "contributions": weights(60, 30),
        "capacities": np.full(30, 9.0),
        "minimums": np.full(30, 5.0),
        "method": "lp",
        "effort": "exact",
    },
    "sparse": lambda: {"scores": sparse_table(30_000, 8), "method": "lp"},
    "routes": lambda: {
        "scores": -np.abs(table(20, 300)),
        "task_scores": -np.abs(table(300, 300)),
        "method": "routes",
        "time_limit": 60.0,
    },
}


@pytest.mark.skipif(not hasattr(time, "pthread_getcpuclockid"), reason="no clocks of threads here")
@pytest.mark.parametrize("case", CASES)
def test_a_raised_flag_ends_it(case, monkeypatch):
    """In CPU time of the thread that solves, which other work on the machine does not lengthen."""
    monkeypatch.setenv("MUSTER_NUM_THREADS", "1")
    given = CASES[case]()
    flag = np.zeros(1, np.int64)
    clock = time.pthread_getcpuclockid(threading.get_ident())
    began = time.clock_gettime(clock)
    ended = threading.Event()
    raised: list[float] = []

    def raise_flag() -> None:
        while time.clock_gettime(clock) < began + RAISED_AFTER:
            if ended.wait(0.001):
                return
        raised.append(time.clock_gettime(clock))
        flag[0] = 1

    watcher = threading.Thread(target=raise_flag)
    watcher.start()
    try:
        with stoppable(flag):
            found = assign(**given)
    finally:
        after = time.clock_gettime(clock)
        ended.set()
        watcher.join()
    assert raised, f"took {after - began:.3f} s by itself"
    assert found.status == "time_limit"
    assert after - raised[0] < MOST
