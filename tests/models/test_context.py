"""The context model: what holds for any weights, and in environments that show little."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

import muster
from muster.data import BatchObservation
from muster.envs.registry import make
from muster.errors import InputError, ModelFileError
from muster.learning.envs import prepare
from muster.learning.learners import make_learner
from muster.learning.settings import TrainSettings
from muster.learning.train import Loop
from muster.models.context import relate
from muster.models.context_model import ContextModel
from muster.models.direct import init_parameters, parameter_shapes
from muster.models.spec import ModelSpec
from muster.models.torch_networks import ScoringModel, network_from, parameters_of
from muster.policy.learned import LearnedPolicy
from muster.policy.names import resolve
from muster.policy.settings import PAPER_NOISE

ENVS = [
    ("rescue:3x6", "quad"),
    ("rescue:3x6", "lp"),
    ("battle:m5v5", "lp"),
    ("pursuit:4x2", "quad"),
    ("tests.learning.toy:Priced", "lp"),
    ("tests.learning.toy:Roomy", "quad"),
]


def perturbed(env: str, inference: str, **settings) -> tuple[ModelSpec, dict, BatchObservation]:
    """A model whose every array says something, and what it reads of an environment a few decisions on."""
    asked = TrainSettings(env=env, inference=inference, model="context", seed=3, num_envs=8, **settings)
    setup = prepare(asked)
    made, spec = setup.envs[0], setup.spec
    rng = np.random.default_rng(1)
    for _ in range(2):
        made.step(rng.integers(0, made.n_tasks, (made.n_envs, made.n_agents)))
    parameters = init_parameters(spec, rng)
    parameters = {k: v + rng.normal(0, 0.1, v.shape).astype(np.float32) for k, v in parameters.items()}
    return spec, parameters, spec.read(made.observe())


def close(one, other, seen: BatchObservation) -> bool:
    """Whether h and g are alike between all that live."""
    pairs = zip(one, other, (seen.pairs, seen.task_pairs), strict=True)
    return all(a is None or np.allclose(a[there], b[there], atol=2e-5) for a, b, there in pairs)


@pytest.mark.parametrize(("env", "inference"), ENVS)
def test_kernels_and_torch_agree(env, inference):
    spec, parameters, seen = perturbed(env, inference)
    kernels = ContextModel(spec, parameters)(seen)
    assert close(kernels, network_from(spec, parameters).scores(seen), seen)
    assert np.abs(kernels[0]).max() > 0.01


@pytest.mark.parametrize(("env", "inference"), ENVS)
def test_renumbering_agents_and_tasks_renumbers_the_scores(env, inference):
    spec, parameters, seen = perturbed(env, inference)
    model = ContextModel(spec, parameters)
    rng = np.random.default_rng(0)
    agents, tasks = rng.permutation(seen.agent_alive.shape[1]), rng.permutation(seen.task_alive.shape[1])
    turned = renumbered(seen, agents, tasks)
    h, g = model(seen)
    expected = h[:, agents][:, :, tasks], None if g is None else g[:, tasks][:, :, tasks]
    assert close(model(turned), expected, turned)


@pytest.mark.parametrize(("env", "inference"), ENVS)
def test_what_is_not_there_changes_nothing_whatever_its_numbers(env, inference):
    spec, parameters, seen = perturbed(env, inference)
    model = ContextModel(spec, parameters)
    more = padded(seen, 2, 3)
    n, m = seen.agent_alive.shape[1], seen.task_alive.shape[1]
    h, g = model(more)
    assert close((h[:, :n, :m], None if g is None else g[:, :m, :m]), model(seen), seen)


@pytest.mark.parametrize(("env", "inference"), ENVS)
def test_an_answer_does_not_depend_on_the_rest_of_the_batch(env, inference):
    spec, parameters, seen = perturbed(env, inference)
    model = ContextModel(spec, parameters)
    alone = [model(part(seen, slice(k, k + 1)))[0][0] for k in range(8)]
    assert np.array_equal(np.stack(alone), model(seen)[0])


def test_every_agent_and_task_is_heard():
    """Scores of a pair change when another agent or another task moves."""
    spec, parameters, seen = perturbed("rescue:3x6", "lp")
    before = ContextModel(spec, parameters)(seen)[0]
    for who, index in (("agents", 2), ("tasks", 5)):
        env = make("rescue:3x6", 8, seed=3)
        env.show(pair_features=True, planes=False)
        cells = env.agent_cells if who == "agents" else env.task_cells
        still = ContextModel(spec, parameters)(spec.read(env.observe()))[0]
        cells[:, index] = (cells[:, index] + 3) % 8
        moved = ContextModel(spec, parameters)(spec.read(env.observe()))[0]
        assert (np.abs(moved - still)[:, 0, 0] > 1e-6).mean() > 0.5
    assert before.shape == (8, 3, 6)


def test_positions_on_the_map_are_not_read_only_how_far_others_are():
    spec, parameters, _ = perturbed("rescue:3x6,grid=40", "quad")
    env = make("rescue:3x6,grid=40", 8)
    env.show(pair_features=True, planes=False)
    env.agent_cells[:], env.task_cells[:] = env.agent_cells // 2, env.task_cells // 2
    model = ContextModel(spec, parameters)
    seen = spec.read(env.observe())
    before = model(seen)
    env.agent_cells += 15
    env.task_cells += 15
    assert close(model(spec.read(env.observe())), before, seen)


def test_another_town_far_away_is_not_heard():
    """Two copies of an environment a thousand cells apart are scored as one alone: so it generalises to any size."""
    spec, parameters, _ = perturbed("rescue:3x6", "quad")
    one = make("rescue:3x6,grid=2000", 4)
    two = make("rescue:6x12,grid=2000", 4)
    rng = np.random.default_rng(2)
    one.agent_cells[:], one.task_cells[:] = rng.integers(0, 10, (4, 3, 2)), rng.integers(0, 10, (4, 6, 2))
    two.agent_cells[:] = np.concatenate([one.agent_cells, one.agent_cells + 1000], axis=1)
    two.task_cells[:] = np.concatenate([one.task_cells, one.task_cells + 1000], axis=1)
    for env in (one, two):
        env.unsolved[:] = True
        env.show(pair_features=True, planes=False)
    model = ContextModel(spec, parameters)
    seen = spec.read(one.observe())
    h, g = model(spec.read(two.observe()))
    assert close((h[:, :3, :6], g[:, :6, :6]), model(seen), seen)


def test_a_model_starts_as_the_distances_it_corrects():
    spec = prepare(TrainSettings(env="rescue:3x6", inference="lp", model="context", num_envs=2)).spec
    env = make("rescue:3x6", 4)
    seen = spec.read(env.observe())
    h, _ = ContextModel(spec, init_parameters(spec, np.random.default_rng(0)))(seen)
    assert h == pytest.approx(-0.5 * 8 * seen.pair_features[..., spec.distances[0]], abs=1e-5)


def test_an_environment_without_distances_or_positions_is_heard_by_what_is_said():
    spec, _, seen = perturbed("tests.learning.toy:Roomy", "lp")
    assert spec.places == spec.distances == ()
    assert not any(name.endswith("_reach") for name in parameter_shapes(spec))
    assert all(not relation.distance.any() for relation in relate(spec, seen).values())
    battle, _, of_battle = perturbed("battle:m5v5", "lp")
    assert battle.places
    assert relate(battle, of_battle)["agent", "agent"].distance.any()


def test_what_a_model_reads_follows_from_the_environment():
    asked = TrainSettings(env="rescue:2x4", model="context", inference="lp", num_envs=2)
    spec = prepare(asked).spec
    assert (spec.places, spec.blind) == ((0, 1), (0, 1))
    assert spec.distances
    plain = prepare(dataclasses.replace(asked, form="plain")).spec
    assert plain.blind == ()
    assert plain.distances
    paper = prepare(dataclasses.replace(asked, form="paper")).spec
    assert (paper.blind, paper.distances) == ((), ())


def test_a_policy_is_saved_and_loaded_as_it_is_and_a_damaged_one_refused(tmp_path):
    learner = make_learner(TrainSettings(env="rescue:2x4", model="context", inference="quad", num_envs=2))
    policy = learner.policy()
    policy.save(tmp_path / "policy.safetensors")
    again = LearnedPolicy.load(tmp_path / "policy.safetensors")
    seen = make("rescue:5x10", 6).observe()
    assert np.array_equal(again.act(seen), policy.act(seen))
    assert again.spec == policy.spec
    del policy.parameters["round1.task_task_logit"]
    policy.save(tmp_path / "damaged.safetensors")
    with pytest.raises(ModelFileError, match=r"missing \['round1.task_task_logit'\]"):
        LearnedPolicy.load(tmp_path / "damaged.safetensors")


def test_it_decides_in_every_environment_of_its_kind_and_looks_ahead_with_noisy_scores():
    spec, parameters, _ = perturbed("rescue:3x6", "lp")
    learner = make_learner(TrainSettings(env="rescue:3x6", model="context", inference="lp", num_envs=2))
    policy = LearnedPolicy("context", spec, parameters, learner.inference, PAPER_NOISE, {"env": "rescue:3x6"})
    assert muster.evaluate(policy, "rescue:6x12,grid=12", 4).records.outcome.shape == (4,)
    assert muster.evaluate(policy.with_rollouts(3), "rescue:2x4", 2).records.outcome.shape == (2,)
    with pytest.raises(InputError, match="is a context; use candidates 'scores'"):
        resolve(policy.with_rollouts(3, candidates="theta"), make("rescue:2x4"))


@pytest.mark.parametrize("inference", ["lp", "quad"])
def test_ppo_moves_every_part_of_it(inference):
    ppo = {"rollout_length": 4}
    learner = make_learner(
        TrainSettings(env="tests.learning.toy:Roomy", model="context", inference=inference, num_envs=16, ppo=ppo)
    )
    before = learner.policy().parameters
    for _ in range(3):
        learner.update()
    after = learner.policy().parameters
    still = [name for name in before if np.array_equal(before[name], after[name])]
    assert not [name for name in still if before[name].size]


def test_the_gradient_is_that_of_finite_differences():
    spec, parameters, seen = perturbed("rescue:3x6", "quad")
    network = network_from(spec, parameters)
    h, g = network(seen)
    slope = (np.random.default_rng(0).normal(size=h.shape) * seen.pairs).astype(np.float32)
    torch.autograd.backward([h, g], [torch.from_numpy(slope), torch.zeros_like(g)])
    for name in ("round0.agent_task_relation", "round1.task_task_logit", "round0.task_agent_reach"):
        gradient = network.pairs[name.replace(".", "_")].grad.numpy()
        at = np.unravel_index(np.abs(gradient).argmax(), gradient.shape)
        found = []
        for step in (2e-3, -2e-3):
            moved = parameters | {name: parameters[name].copy()}
            moved[name][at] += step
            found.append(float((ContextModel(spec, moved)(seen)[0].astype(np.float64) * slope).sum()))
        assert (found[0] - found[1]) / 4e-3 == pytest.approx(gradient[at], rel=0.05)


def test_a_context_model_goes_on_from_a_direct_one_and_from_its_own_kind(tmp_path):
    def first(**settings) -> LearnedPolicy:
        return Loop(TrainSettings(**{"num_envs": 4} | settings), None).learner.policy()

    seen = make("rescue:4x8", 8).observe()
    name = "rescue-2x4-lp-dm"
    new = first(env="rescue:3x6", model="context", form="plain", inference="lp", from_policy=name)
    assert np.array_equal(new.act(seen), muster.load(name).act(seen))
    path = str(tmp_path / "context.safetensors")
    new.save(path)
    again = first(env="rescue:3x6", model="context", form="plain", inference="quad", from_policy=path)
    assert np.array_equal(again.act(seen), new.act(seen))
    for settings, message in (
        ({"model": "dm"}, "is a context model, which no other can go on from; use --model context"),
        ({"model": "context"}, "another --form"),
        ({"model": "context", "form": "paper"}, "features of a pair"),
    ):
        with pytest.raises(InputError, match=message):
            first(env="rescue:3x6", inference="lp", from_policy=path, **settings)


def test_widths_that_heads_cannot_share_are_refused():
    spec = perturbed("rescue:3x6", "lp")[0]
    with pytest.raises(InputError, match="30 cannot be among 4"):
        dataclasses.replace(spec, context=30)
    with pytest.raises(InputError, match="es trains direct and linear models"):
        TrainSettings(env="rescue:2x4", model="context", learner="es")


def test_the_torch_network_keeps_its_arrays_under_the_names_of_files():
    spec, parameters, _ = perturbed("rescue:3x6", "quad")
    assert parameters_of(ScoringModel(spec, np.random.default_rng(0))).keys() == parameters.keys()
    assert {name: array.shape for name, array in parameters.items()} == parameter_shapes(spec)


def part(seen: BatchObservation, states) -> BatchObservation:
    return dataclasses.replace(seen, **{name: array[states] for name, array in arrays(seen).items()})


def arrays(seen: BatchObservation) -> dict[str, np.ndarray]:
    found = {entry.name: getattr(seen, entry.name) for entry in dataclasses.fields(BatchObservation)}
    return {name: array for name, array in found.items() if array is not None}


AXES = {
    "agent_features": "n", "task_features": "m", "pair_features": "nm", "task_pair_features": "mm", "agent_alive": "n",
    "task_alive": "m", "contributions": "nm", "capacities": "m", "allowed": "nm", "prior": "nm", "task_prior": "mm",
    "previous": "n", "agent_ids": "n", "task_ids": "m", "switch_cost": "nm", "agent_cells": "n", "task_cells": "m",
    "planes": "", "global_features": "",
}  # fmt: skip


def renumbered(seen: BatchObservation, agents, tasks) -> BatchObservation:
    found = arrays(seen)
    for name in found:
        for axis, letter in enumerate(AXES[name], 1):
            found[name] = np.take(found[name], agents if letter == "n" else tasks, axis=axis)
    return dataclasses.replace(seen, **found)


def padded(seen: BatchObservation, more_agents: int, more_tasks: int) -> BatchObservation:
    """With dead agents and tasks, whose numbers are none."""
    found = arrays(seen)
    for name, array in found.items():
        widths = [(0, 0)] * array.ndim
        for axis, letter in enumerate(AXES[name], 1):
            widths[axis] = (0, more_agents if letter == "n" else more_tasks)
        nothing = False if array.dtype == bool else np.nan if array.dtype.kind == "f" else 0
        found[name] = np.pad(array, widths, constant_values=nothing)
    return dataclasses.replace(seen, **found)
