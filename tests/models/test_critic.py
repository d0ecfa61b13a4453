"""The entity critic against the same network in torch."""

import numpy as np
import pytest
import torch
from torch import nn

from muster.envs.registry import make
from muster.models.critic import EntityCritic, critic_shapes, init_critic
from muster.models.spec import ModelSpec
from muster.rng import episode_seeds
from tests.models.test_networks import enriched

FAR_BELOW = -1e6


class TorchCritic(nn.Module):
    """The same in torch."""

    def __init__(self, spec: ModelSpec, width: int) -> None:
        super().__init__()
        self.agent = nn.Sequential(nn.Linear(spec.agent_width, width), nn.ReLU(), nn.Linear(width, width))
        self.task = nn.Sequential(nn.Linear(spec.task_width, width), nn.ReLU(), nn.Linear(width, width))
        inputs = 4 * width + 2 + spec.global_width
        self.head = nn.Sequential(nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, observation):
        pooled = []
        for net, features, alive in (
            (self.agent, observation.agent_features, observation.agent_alive),
            (self.task, observation.task_features, observation.task_alive),
        ):
            here = torch.from_numpy(alive).unsqueeze(-1).float()
            x = net(torch.from_numpy(features))
            count = here.sum(1)
            # Far below any living object's value, yet finite; where none lives the maximum counts as 0.
            highest = (x + FAR_BELOW * (1.0 - here)).amax(1) * (count > 0)
            pooled += [(x * here).sum(1) / count.clamp(min=1.0), highest, here.mean(1)]
        if observation.global_features is not None:
            pooled.append(torch.from_numpy(observation.global_features))
        return self.head(torch.cat(pooled, dim=-1)).squeeze(-1)

    def arrays(self):
        return {name: value.detach().numpy() for name, value in self.named_parameters()}


def test_values_do_not_depend_on_the_order_of_objects():
    env = make("rescue:3x5", 4)
    spec = ModelSpec.of(env.observe(), "dm", False)
    shapes = critic_shapes(spec.agent_width, spec.task_width, spec.global_width)
    critic = EntityCritic(init_critic(shapes, np.random.default_rng(0)))
    values = critic(env.observe())
    assert values.shape == (4,)
    env.permute(np.array([2, 0, 1]), np.array([4, 2, 0, 1, 3]))
    assert critic(env.observe()) == pytest.approx(values, abs=1e-6)


@pytest.mark.parametrize("everything", [False, True])
@pytest.mark.parametrize(
    ("name", "n_envs", "width"), [("rescue:3x5", 300, 32), ("battle:w5v6", 70, 32), ("battle:zh4v4", 1, 7)]
)
def test_values_and_their_gradient_equal_torchs(name, n_envs, width, everything):
    env = make(name, n_envs)
    env.reset(np.arange(n_envs), episode_seeds(3, np.arange(n_envs)))
    rng = np.random.default_rng(0)
    for _ in range(30):  # some objects are gone by then, in some environments all of a side
        env.step(rng.integers(0, env.n_tasks, (n_envs, env.n_agents)))
    seen = enriched(env.observe()) if everything else env.observe()
    torch.manual_seed(0)
    spec = ModelSpec.of(seen, "dm", False)
    network = TorchCritic(spec, width)
    shapes = critic_shapes(spec.agent_width, spec.task_width, spec.global_width, width)
    assert shapes == {name: array.shape for name, array in network.arrays().items()}
    target = 2 * rng.standard_normal(n_envs).astype(np.float32)  # both branches of the loss
    expected = network(seen)
    expected_loss = torch.nn.functional.smooth_l1_loss(expected, torch.from_numpy(target))
    expected_loss.backward()
    critic = EntityCritic(network.arrays())
    values, loss, gradients = critic.gradient(seen, target)
    assert np.array_equal(values, critic(seen))
    assert values == pytest.approx(expected.detach().numpy(), abs=1e-5)
    assert loss == pytest.approx(float(expected_loss.detach()), rel=1e-5)
    assert list(gradients) == list(shapes)
    for key, parameter in network.named_parameters():
        assert gradients[key] == pytest.approx(parameter.grad.numpy(), rel=1e-3, abs=1e-6), key
