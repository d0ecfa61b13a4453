"""Sharing a batch out among threads."""

import threading
import time

import pytest

from muster.parallel import share_out


@pytest.mark.parametrize(("size", "threads"), [(0, 2), (1, 4), (7, 3), (8, 2), (5, 0)])
def test_every_item_is_done_once_by_no_more_threads_than_allowed(size, threads):
    done, names = [], set()
    lock = threading.Lock()

    def work(begin, end):
        with lock:
            done.extend(range(begin, end))
            names.add(threading.get_ident())

    share_out(size, threads, work)
    assert sorted(done) == list(range(size))
    assert len(names) <= max(1, threads)


@pytest.mark.parametrize("culprit", [0, 9])
def test_an_error_in_any_share_reaches_the_caller(culprit):
    def work(begin, end):
        if begin <= culprit < end:
            raise ValueError(f"item {culprit}")

    with pytest.raises(ValueError, match=f"item {culprit}"):
        share_out(10, 2, work)


def test_an_interrupt_waits_for_the_other_threads():
    """They write to arrays that the caller goes on to use."""
    finished = []

    def work(begin, end):
        if begin == 0:
            raise KeyboardInterrupt
        time.sleep(0.2)
        finished.append(begin)

    with pytest.raises(KeyboardInterrupt):
        share_out(2, 2, work)
    assert finished == [1]
