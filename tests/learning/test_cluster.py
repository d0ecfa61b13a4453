"""Workers of a Ray cluster: the bits of one process, and actors that are killed change nothing."""

from __future__ import annotations

import pytest

from muster.errors import InputError
from muster.learning.cluster import Cluster
from muster.learning.learners import make_learner
from muster.learning.workers import WorkerPool
from tests.learning.test_workers import same, settings_of

ray = pytest.importorskip("ray", reason="Ray is not installed: make cluster-test installs it")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def cluster():
    cluster = Cluster("local", 3)
    yield cluster
    cluster.close()


@pytest.mark.parametrize("name", ["es", "ppo-rescue"])
def test_a_cluster_gives_the_bits_of_one_process_though_actors_die(name, cluster):
    plain, pool = make_learner(settings_of(name)), WorkerPool(cluster, 3)
    spread = make_learner(settings_of(name), pool)
    for update in range(4):
        if update in (1, 2):
            ray.kill(pool.workers[update].actor)
        plain.update()
        spread.update()
    assert pool.replaced == 2
    assert same(plain.get_state()[0], spread.get_state()[0])
    for worker in pool.workers.values():
        worker.end()


def test_an_address_where_nothing_answers_is_refused(cluster):
    cluster.close()
    with pytest.raises(InputError, match=r"no Ray cluster answers at 127\.0\.0\.1:1: Connection refused; start one"):
        Cluster("127.0.0.1:1", 2)


def test_a_machine_too_busy_to_begin_a_cluster_is_told_in_a_sentence(cluster, monkeypatch):
    """Ray then raises an Exception of no class of its own."""

    def fail(**more):
        raise Exception("The current node timed out during startup.")

    monkeypatch.setattr(ray, "init", fail)
    with pytest.raises(InputError, match="no Ray cluster answers at local: Exception: The current node timed out"):
        Cluster("local", 2)
