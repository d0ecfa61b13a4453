"""Before its first update a run decides as the inference on the environment's prior does, at every size."""

from __future__ import annotations

import numpy as np
import pytest

import muster
from muster.assign.settings import InferenceSettings
from muster.learning.learners import make_learner
from muster.learning.settings import TrainSettings
from muster.policy.learned import prior_policy
from tests.learning.toy import Crews

CREWS = "tests.learning.toy:Crews"


@pytest.mark.parametrize("inference", ["lp", "quad"])
@pytest.mark.parametrize(
    ("learner", "model"), [("ppo", "dm"), ("es", "dm"), ("srl", "dm"), ("ppo", "context"), ("es", "linear")]
)
def test_a_run_starts_as_the_prior_at_every_size(inference, learner, model):
    if model == "context":
        pytest.importorskip("torch")
    first = make_learner(TrainSettings(CREWS, inference=inference, learner=learner, model=model)).policy()
    for times in (1, 2, 5):
        env = muster.make(Crews, 20, n_agents=4 * times, n_tasks=6 * times)
        prior = prior_policy(env, InferenceSettings(inference, first.inference.effort, assign_all=False))
        seen = env.observe()
        expected = prior.act(seen)
        np.testing.assert_array_equal(first.act(seen), expected)
        if inference == "quad":  # whose task_prior makes crews that the prior alone would not
            assert crews(expected) > 1.2 * crews(first.without_task_scores().act(seen))


def crews(assignment) -> int:
    """Jobs that have both their agents."""
    return sum((np.bincount(row[row >= 0] // 2) == 2).sum() for row in assignment)


def test_only_what_is_learned_of_two_tasks_shrinks_at_larger_sizes():
    first = make_learner(TrainSettings(CREWS, inference="quad", learner="es", model="dm")).policy()
    learned = first.variant(parameters=first.parameters | {"g.bias3": np.full(1, -0.1, np.float32)})
    seen = muster.make(Crews, 20, n_agents=20, n_tasks=30).observe()
    living = seen.agent_alive.sum(axis=1)[:, None, None]
    g, eye = learned.scores(seen)[1], np.eye(30, dtype=np.bool_)
    assert g == pytest.approx(seen.task_prior - 0.1 * np.where(eye, 1.0, np.minimum(4 / living, 1.0)), abs=1e-6)
