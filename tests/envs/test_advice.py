"""What `muster check-env` advises about priors, and why."""

from __future__ import annotations

import dataclasses

import numpy as np

from examples.couriers import Couriers
from muster.assign.solver import Solver
from muster.envs.checks import check_env, run
from muster.envs.registry import make
from muster.learning.es import restore
from muster.learning.learners import make_learner
from muster.learning.settings import ESSettings, TrainSettings
from muster.models.direct import DirectModel, init_parameters
from muster.models.spec import ModelSpec
from muster.policy.decision import decide
from muster.policy.learned import make_scorer
from muster.rng import episode_seeds


class InMetres(Couriers):
    """The same on a square of a hundred metres, if only for the prior."""

    def observe(self):
        seen = super().observe()
        return dataclasses.replace(seen, prior=100 * seen.prior)


def test_a_prior_too_large_to_be_corrected_is_named(monkeypatch):
    monkeypatch.setattr(run, "CHECKS", {})  # advice comes after the checks, which both pass
    assert not [found for found in check_env(Couriers) if found.status == "advice"]
    advice = {found.check: found.detail for found in check_env(InMetres) if found.status == "advice"}
    assert list(advice) == ["prior"]
    assert "before --model dm scale it to a few tenths" in advice["prior"]


def test_first_candidates_of_a_direct_model_change_decisions_next_to_a_small_prior_only():
    candidates, states = 64, 16
    env = make(Couriers, candidates * states)
    env.reset(np.arange(env.n_envs), np.tile(episode_seeds(0, np.arange(states)), candidates))
    seen = env.observe()
    spec, rng, solver = ModelSpec.of(seen, "dm", False), np.random.default_rng(1), Solver(method="lp", certify=False)
    start = init_parameters(spec, np.random.default_rng(0))
    sigma = ESSettings().of_model("dm").sigma
    near = {
        name: (array + sigma * rng.standard_normal((candidates, *array.shape))).astype(np.float32)
        for name, array in start.items()
    }
    changed = []
    for factor in (1, 4):
        large = dataclasses.replace(seen, prior=factor * seen.prior)
        before, after = (decide(large, spec, DirectModel(model, False), solver) for model in (start, near))
        changed.append((before.assignment != after.assignment).mean())
    assert changed[0] > 0.01
    assert changed[1] == 0


def test_first_candidates_of_a_linear_model_change_as_many_decisions_at_any_scale_of_the_prior():
    changed = []
    for name in ("examples.couriers:Couriers", f"{__name__}:InMetres"):
        settings = TrainSettings(env=name, steps=1).filled(pairs=32, episodes=4)
        assert settings.model == "linear"
        learner = make_learner(settings)
        (env,) = learner.envs
        env.reset(np.arange(env.n_envs), np.tile(episode_seeds(0, np.arange(4)), 64))
        seen, solver = env.observe(), Solver.of(learner.inference, threads=1)
        theta = settings.es.sigma * learner.next_generation().perturbations(64)
        models = (make_scorer(learner.spec, restore(one, learner.spec)) for one in (np.zeros_like(theta), theta))
        before, after = (decide(seen, learner.spec, model, solver) for model in models)
        changed.append((before.assignment != after.assignment).mean())
    assert changed[0] > 0.1
    assert abs(changed[0] - changed[1]) < 0.01
