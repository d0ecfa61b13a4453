"""Objects that read alike are scored once, which changes no score."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from muster.data import BatchObservation
from muster.models.direct import DirectModel, init_parameters
from muster.models.spec import ModelSpec

SPEC = ModelSpec(
    "dm", task_scores=True, agent_width=3, task_width=2, pair_width=2, task_pair_width=1, hidden=8, prior=True
)


def observation(
    rng: np.random.Generator, batch: int, n: int, m: int, *, kinds: int = 2, **more: object
) -> BatchObservation:
    """Few kinds of agents and of everything about pairs, so that many are alike and many are nearly so."""
    allowed = rng.random((batch, n, m)) < 0.9
    return BatchObservation(
        agent_features=rng.integers(0, kinds, (batch, n, 3)).astype(np.float32),
        task_features=rng.integers(0, kinds, (batch, m, 2)).astype(np.float32),
        pair_features=(rng.random((batch, n, m, 2)) < 0.05).astype(np.float32),
        task_pair_features=(rng.random((batch, m, m, 1)) < 0.05).astype(np.float32),
        agent_alive=rng.random((batch, n)) < 0.8,
        task_alive=rng.random((batch, m)) < 0.8,
        contributions=np.ones((batch, n, m)),
        capacities=np.ones((batch, m)),
        allowed=allowed,
        prior=(rng.random((batch, n, m)) < 0.05).astype(np.float64),
    )


@pytest.mark.parametrize("models", [1, 3])
def test_scores_of_a_pair_do_not_depend_on_who_else_is_there(models):
    rng = np.random.default_rng(models)
    drawn = [init_parameters(SPEC, np.random.default_rng(k)) for k in range(models)]
    for one in drawn:
        one["h.weight3"] = rng.normal(size=one["h.weight3"].shape).astype(np.float32)
        one["g.weight3"] = rng.normal(size=one["g.weight3"].shape).astype(np.float32)
    together = DirectModel({name: np.stack([one[name] for one in drawn]) for name in drawn[0]}, task_scores=True)
    batch, n, m = 4 * models, 7, 4
    seen = observation(rng, batch, n, m)
    h, g = together(seen)
    assert g is not None
    assert any(len(np.unique(seen.agent_features[b], axis=0)) < n for b in range(batch))
    for b in range(batch):
        model = DirectModel(drawn[b // 4], task_scores=True)
        for i in range(n):
            alone = BatchObservation(
                **{
                    name: array[b : b + 1, i : i + 1] if name in OF_AGENTS else array[b : b + 1]
                    for name, array in vars_of(seen).items()
                }
            )
            assert np.array_equal(model(alone)[0][0, 0], h[b, i])
        backwards = BatchObservation(
            **{
                name: array[b : b + 1, ::-1] if name in OF_AGENTS else array[b : b + 1]
                for name, array in vars_of(seen).items()
            }
        )
        assert np.array_equal(model(backwards)[0][0, ::-1], h[b])
        assert np.array_equal(model(backwards)[1][0], g[b])
    dead = ~(seen.agent_alive[:, :, None] & seen.task_alive[:, None] & seen.allowed)
    assert not h[dead].any()
    assert h[~dead].all()


def test_features_of_the_environment_are_read_as_if_every_agent_had_them():
    rng = np.random.default_rng(2)
    seen = observation(rng, 3, 4, 5)
    shared = rng.normal(size=(3, 2)).astype(np.float32)
    spec = dataclasses.replace(SPEC, task_scores=False, global_width=2)
    parameters = init_parameters(spec, rng)
    parameters["h.weight3"] = rng.normal(size=parameters["h.weight3"].shape).astype(np.float32)
    model = DirectModel(parameters, task_scores=False)
    both = np.concatenate([seen.agent_features, np.repeat(shared[:, None], 4, axis=1)], axis=2)
    h, _ = model(dataclasses.replace(seen, global_features=shared))
    own, _ = model(dataclasses.replace(seen, agent_features=both))
    assert np.array_equal(h, own)
    other, _ = model(dataclasses.replace(seen, global_features=shared[::-1]))
    assert not np.array_equal(h, other)


OF_AGENTS = ("agent_features", "pair_features", "agent_alive", "contributions", "allowed", "prior")


def vars_of(seen: BatchObservation) -> dict[str, np.ndarray]:
    names = (*OF_AGENTS, "task_features", "task_pair_features", "task_alive", "capacities")
    return {name: getattr(seen, name) for name in names}
