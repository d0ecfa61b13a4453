"""The differentiable layer: its gradients against finite differences and closed forms, its losses, what it refuses."""

from __future__ import annotations

import math

import numpy as np
import pytest

from muster.errors import InputError, UnknownNameError

torch = pytest.importorskip("torch")

from muster import Problem, Solver, assign  # noqa: E402
from muster.torch import assign_layer, nearest_points  # noqa: E402


def scores_of(seed: int, *shape: int, spread: float = 2.0):
    return torch.tensor(spread * np.random.default_rng(seed).normal(size=shape), requires_grad=True)


def indicators(assignment, m):
    return (np.asarray(assignment)[..., None] == np.arange(m)).astype(float)


@pytest.mark.parametrize("shape", [(3, 1, 4), (3, 4, 3), (2, 5, 5)])
def test_gradients_of_the_regularised_layer_are_those_of_finite_differences(shape):
    layer, scores = assign_layer("regularised", epsilon=0.8), scores_of(1, *shape)
    assert torch.autograd.gradcheck(layer, (scores,))


def test_with_capacities_and_masks_it_stays_within_them():
    layer, scores = assign_layer("regularised"), scores_of(2, 4, 6, 3)
    allowed = np.random.default_rng(0).random((4, 6, 3)) < 0.7
    capacities = np.broadcast_to([2.0, 1.0, 3.0], (4, 3))
    found = layer(scores, allowed=allowed, capacities=capacities).detach().numpy()
    assert (found >= -1e-9).all()
    assert (found.sum(axis=2) <= 1 + 1e-9).all()
    assert (found.sum(axis=1) <= capacities + 1e-9).all()
    assert not found[~allowed].any()


def test_the_nearest_point_to_a_point_of_the_polytope_is_that_point():
    inside = np.full((1, 3, 3), 1 / 3)
    solver = Solver(method="lp")
    found, vertices = nearest_points(inside, lambda scores: indicators(solver(Problem(scores)).assignment, 3))
    assert found == pytest.approx(inside, abs=1e-9)
    assert len(vertices[0]) > 1


def test_one_agent_and_one_task_have_the_normal_distribution():
    """E[y] = Phi(h / eps) and its derivative phi(h / eps) / eps."""
    layer, scores = assign_layer(epsilon=0.7, samples=20_000), torch.tensor([[[0.4]]], requires_grad=True)
    found = layer(scores)
    found.sum().backward()
    z = 0.4 / 0.7
    assert found.item() == pytest.approx(0.5 * (1 + math.erf(z / math.sqrt(2))), abs=0.01)
    assert scores.grad.item() == pytest.approx(math.exp(-z * z / 2) / math.sqrt(2 * math.pi) / 0.7, rel=0.03)


def test_gradients_of_the_perturbed_layer_are_those_of_finite_differences():
    weights = torch.tensor(np.random.default_rng(3).normal(size=(1, 2, 3)))

    def mean(scores):
        return (assign_layer(epsilon=1.0, samples=40_000, seed=5)(scores) * weights).sum()

    scores = scores_of(4, 1, 2, 3, spread=1.0)
    mean(scores).backward()
    step = 0.2
    for i in range(2):
        for j in range(3):
            moved = torch.zeros(1, 2, 3, dtype=torch.float64)
            moved[0, i, j] = step
            slope = (mean(scores.detach() + moved) - mean(scores.detach() - moved)) / (2 * step)
            assert scores.grad[0, i, j].item() == pytest.approx(slope.item(), abs=0.03)


def test_with_task_scores_gradients_reach_them():
    layer = assign_layer(method="quad", epsilon=0.5, samples=20_000)
    h, g = scores_of(6, 1, 2, 2, spread=0.3), torch.zeros(1, 2, 2, dtype=torch.float64, requires_grad=True)
    layer(h, g, capacities=np.full((1, 2), 2.0)).sum().backward()
    # A task score of j with itself counts for everyone who is there: more of it, fewer idle.
    assert g.grad[0, 0, 0] > 0.05
    assert g.grad[0, 1, 1] > 0.05


@pytest.mark.parametrize("method", ["lp", "quad"])
def test_the_loss_is_not_negative_and_its_gradient_is_what_the_layer_says_too_much(method):
    layer = assign_layer(method=method, effort="exact", epsilon=0.5, samples=64, seed=1)
    h = scores_of(7, 3, 3, 4)
    given = () if method == "lp" else (scores_of(8, 3, 4, 4, spread=0.2),)
    target = torch.tensor(indicators(np.array([[0, 1, 2], [3, -1, 0], [1, 2, 3]]), 4))
    loss = layer.loss(h, target, *given)
    assert (loss > 0).all()
    loss.sum().backward()
    same = assign_layer(method=method, effort="exact", epsilon=0.5, samples=64, seed=1)(h.detach(), *given)
    assert torch.allclose(h.grad, same - target)


def test_the_regularised_loss_has_the_gradient_of_finite_differences_and_is_0_at_its_own_answer():
    layer, scores = assign_layer("regularised"), scores_of(9, 3, 3, 3)
    target = torch.tensor(indicators(np.array([[0, 1, 2]] * 3), 3))
    assert torch.autograd.gradcheck(lambda h: layer.loss(h, target), (scores,))
    assert layer.loss(scores, layer(scores).detach()).detach().numpy() == pytest.approx(0.0, abs=1e-9)


def test_a_predictor_trained_through_the_layer_recovers_the_assignments():
    """Scores are linear in features, assignments are all that is seen: the loss finds the same decisions."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(64, 4))
    true = (features @ rng.normal(size=(4, 9))).reshape(64, 3, 3)
    target = torch.tensor(indicators([assign(one, assign_all=True).assignment for one in true], 3))
    layer = assign_layer("perturbed", epsilon=0.3, samples=16, assign_all=True)
    predictor = torch.nn.Linear(4, 9, dtype=torch.float64)
    torch.nn.init.zeros_(predictor.weight)
    optimiser = torch.optim.Adam(predictor.parameters(), 0.1)
    for _ in range(40):
        optimiser.zero_grad()
        layer.loss(predictor(torch.tensor(features)).reshape(64, 3, 3), target).mean().backward()
        optimiser.step()
    learned = predictor(torch.tensor(features)).detach().numpy().reshape(64, 3, 3)
    decided = indicators([assign(one, assign_all=True).assignment for one in learned], 3)
    assert (decided == target.numpy()).all(axis=(1, 2)).mean() > 0.9


def test_one_instance_is_a_batch_of_one():
    layer, scores = assign_layer("regularised"), scores_of(3, 1, 4, 4)
    assert torch.equal(layer(scores[0]), layer(scores)[0])


@pytest.mark.parametrize(
    ("settings", "error", "told"),
    [
        ({"variant": "softmax"}, UnknownNameError, "softmax"),
        ({"method": "amax"}, InputError, "lp or quad"),
        ({"variant": "regularised", "method": "quad"}, InputError, "concave"),
        ({"epsilon": 0.0}, InputError, "positive"),
        ({"samples": 5}, InputError, "even"),
        ({"variant": "regularised", "seed": 5}, InputError, "deterministic: leave out samples and seed"),
        ({"variant": "regularised", "samples": 8}, InputError, "deterministic: leave out samples and seed"),
    ],
)
def test_settings_that_make_no_layer_are_refused(settings, error, told):
    with pytest.raises(error, match=told):
        assign_layer(**settings)


def test_wrong_arguments_are_named():
    layer, scores = assign_layer(), scores_of(0, 2, 3, 3)
    with pytest.raises(InputError, match="task_scores are for method quad"):
        layer(scores, torch.zeros(2, 3, 3))
    with pytest.raises(UnknownNameError, match="capacity"):
        layer(scores, capacity=np.ones((2, 3)))
    with pytest.raises(InputError, match=r"\[B, N, M\]"):
        layer.loss(scores, torch.zeros(2, 3))
    with pytest.raises(InputError, match=r"capacities must have 2 dimensions, got 1 \(shape \(3,\)\); .* leading B"):
        layer(scores, capacities=torch.ones(3))
    with pytest.raises(InputError, match=r"finite numbers; .* `allowed`"):
        layer(scores - torch.inf)


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.float16, torch.bfloat16])
def test_scores_that_are_no_floats_of_32_or_64_bits_are_refused(dtype):
    """Means of assignments and gradients would be cut to whole numbers, or lose most of their digits."""
    scores = torch.ones(2, 3, 3)
    assert assign_layer()(scores).dtype == scores.dtype
    with pytest.raises(InputError, match=f"scores must be a torch tensor of float32 or float64, got {dtype}"):
        assign_layer()(scores.to(dtype))
    with pytest.raises(InputError, match=f"task_scores must be a torch tensor of float32 or float64, got {dtype}"):
        assign_layer(method="quad")(scores, scores.to(dtype))
    with pytest.raises(InputError, match="got ndarray"):
        assign_layer()(np.ones((3, 3)))


@pytest.mark.parametrize("variant", ["perturbed", "regularised"])
def test_targets_that_are_no_mean_of_assignments_are_refused(variant):
    layer, scores = assign_layer(variant), scores_of(0, 2, 3, 3)
    mean = torch.full((2, 3, 3), 1 / 3)
    assert (layer.loss(scores, mean) > 0).all()
    two, above = torch.eye(3).repeat(2, 1, 1), torch.zeros(2, 3, 3)
    two[1, 0] = above[1, :2, 1] = 1.0
    allowed = torch.ones(2, 3, 3, dtype=torch.bool)
    allowed[0, 2, 1] = False
    for target, told, limits in (
        (mean * torch.nan, "from 0 to 1; not so at \\[0, 0, 0", {}),
        (-mean, "from 0 to 1", {}),
        (two, "one task for each agent; not so at \\[1, 0", {}),
        (above, "its capacity; not so at \\[1, 1", {}),
        (mean, "forbidden; not so at \\[0, 2, 1", {"allowed": allowed}),
        (np.zeros((2, 3, 3)), "got .* and ndarray", {}),
    ):
        with pytest.raises(InputError, match=told):
            layer.loss(scores, target, **limits)
    layer.loss(scores, above, capacities=torch.full((2, 3), 2.0, requires_grad=True))
