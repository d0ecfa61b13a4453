"""The bounded queue: what has no room is told so, what takes too long is given up, nothing is lost."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from muster.assign.solver import Solver
from muster.assign.stop import stoppable
from muster.data import Problem
from muster.service.errors import RequestError
from muster.service.pool import Pool


def soon() -> float:
    return time.monotonic() + 5.0


def finish(work: Coroutine[Any, Any, Any]) -> Any:
    """Its result, on a thread of its own: tests in a browser leave a loop running on this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


def test_beyond_the_queue_there_is_a_refusal_that_says_when_to_come_back():
    async def ask_too_much() -> list[object]:
        released = threading.Event()
        pool = Pool(threads=1, queue=2)
        tasks = [asyncio.ensure_future(pool.run(soon(), released.wait)) for _ in range(5)]
        await asyncio.sleep(0.05)
        assert pool.held == 3
        released.set()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        assert pool.held == 0
        pool.close(5.0)
        return found

    found = finish(ask_too_much())
    assert found[:3] == [True] * 3
    for refusal in found[3:]:
        assert isinstance(refusal, RequestError)
        assert refusal.code == "busy"
        assert int(refusal.headers["Retry-After"]) >= 1


def test_what_takes_too_long_is_given_up_and_keeps_its_place_until_it_ends():
    async def wait() -> None:
        released = threading.Event()
        pool = Pool(threads=1, queue=2)
        with pytest.raises(RequestError) as refusal:
            await pool.run(time.monotonic() + 0.05, released.wait)
        assert refusal.value.code == "time_limit"
        assert pool.held == 1
        done: list[int] = []
        with pytest.raises(RequestError):
            await pool.run(time.monotonic() + 0.05, lambda: done.append(1))
        released.set()
        assert await pool.run(soon(), lambda: 7) == 7
        # No request waited for it any more when its turn came.
        assert done == []
        assert pool.held == 0
        pool.close(5.0)

    finish(wait())


def test_failures_come_back():
    async def fail() -> None:
        pool = Pool(threads=2, queue=2)
        with pytest.raises(ZeroDivisionError):
            await pool.run(soon(), lambda: 1 // 0)
        pool.close(5.0)

    finish(fail())


def test_a_solver_comes_to_an_end_when_told_to():
    rng = np.random.default_rng(0)
    problem = Problem(rng.normal(size=(1, 60, 60)), rng.normal(size=(1, 60, 60)))
    stop = np.zeros(1, np.int64)
    solver = Solver("quad", "best")
    with stoppable(stop):
        patient = solver(problem)
        stop[0] = 1
        hasty = solver(problem)
    assert patient.status[0] != "time_limit"
    assert hasty.status[0] == "time_limit"
    assert hasty.seconds < patient.seconds
    assert np.array_equal(solver(problem).assignment, patient.assignment)


def test_work_that_does_not_stop_is_counted_and_does_not_hold_up_the_end():
    async def wait() -> None:
        released = threading.Event()
        pool = Pool(threads=1, queue=2)
        with pytest.raises(RequestError):
            await pool.run(time.monotonic() + 0.05, released.wait)
        assert pool.overdue == 1
        began = time.monotonic()
        assert not pool.close(0.2)
        assert time.monotonic() - began < 2.0
        released.set()

    finish(wait())


def test_who_gives_up_stops_the_solver():
    async def ask() -> float:
        rng = np.random.default_rng(0)
        problem = Problem(rng.normal(size=(1, 60, 60)), rng.normal(size=(1, 60, 60)))
        pool = Pool(threads=1, queue=2)
        task = asyncio.ensure_future(pool.run(soon() + 60, lambda: Solver("quad", "best", time_limit=50)(problem)))
        await asyncio.sleep(0.2)
        task.cancel()
        began = time.monotonic()
        await pool.run(soon() + 60, lambda: None)
        pool.close(5.0)
        return time.monotonic() - began

    assert finish(ask()) < 5.0
