"""A network on top of a linear policy starts as that policy, and every run there is of one."""

from __future__ import annotations

import numpy as np
import pytest

from muster.envs.registry import make
from muster.evaluation.evaluate import evaluate
from muster.policy.learned import LearnedPolicy, prior_policy
from paper import stages


@pytest.mark.parametrize("problem", stages.PROBLEMS.values(), ids=list(stages.PROBLEMS))
def test_the_prior_of_a_staged_env_decides_as_the_linear_policy(problem):
    staged = f"paper.stages:{problem.staged.__name__},seed=1"
    start = LearnedPolicy.load(problem.staged.start_of(1))
    plain = evaluate(start, problem.staged.single, 4, 5).records.outcome
    assert np.array_equal(evaluate(prior_policy(make(staged)), staged, 4, 5).records.outcome, plain)


def test_runs_start_from_the_linear_policy_of_their_own_seed():
    for key, learner, seed, (env, *flags) in stages.runs_of().values():
        assert stages.PROBLEMS[key].staged.start_of(seed).exists()
        assert env.endswith(f",seed={seed}")
        assert flags[flags.index("--learner") + 1] == learner
        assert flags[-1] == str(seed)
