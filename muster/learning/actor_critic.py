"""A2C on scores: the policy's action is the scores themselves, played with correlated noise (Algorithms 1 and 2)."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn.functional import smooth_l1_loss

from muster.data import Bools, Floats, Floats32, Observation
from muster.envs.base import BatchEnv
from muster.errors import MusterError
from muster.inference.settings import InferenceSettings
from muster.inference.solver import Solver
from muster.learning.episodes import TrainingEpisodes
from muster.learning.returns import importance_ratio, log_likelihood, n_step_returns
from muster.learning.settings import A2CSettings
from muster.policy.learned import LearnedPolicy, alive_pairs, make_problem
from muster.policy.noise import CorrelatedNoise
from muster.scoring.direct import Scores, direct_scores
from muster.scoring.gradient import policy_gradient
from muster.scoring.networks import ConvCritic, EntityCritic, ScoringModel, network_from, parameters_of
from muster.scoring.spec import ModelSpec
from muster.scoring.values import state_values, value_gradient


class TrainingError(MusterError):
    """Training cannot go on; the message names the quantity that went wrong."""


@dataclass(frozen=True, slots=True)
class Rollout:
    """T decisions of B environments."""

    observations: list[Observation]
    played: list[Scores]
    """h and g with their noise, as the inference saw them."""
    scores: list[Scores]
    """h and g as the model gave them: the old policy."""
    rewards: Floats
    """[T, B]"""
    ended: Bools
    """[T, B]"""
    after: Observation
    outcomes: Floats
    """Outcome of each episode that ended."""
    episode_rewards: Floats


class ActorCritic:
    """The learner: plays, and updates scoring model and critic after every n decisions."""

    def __init__(
        self,
        env: BatchEnv,
        spec: ModelSpec,
        inference: InferenceSettings,
        settings: A2CSettings,
        seed: int,
        header: dict[str, Any] | None = None,
    ) -> None:
        self.env, self.spec, self.inference, self.settings = env, spec, inference, settings
        self.header = header or {}
        self.rng = np.random.default_rng([seed, 1])
        torch.manual_seed(seed)
        self.model = ScoringModel(spec, np.random.default_rng([seed, 2]))
        self.model.low_precision = settings.low_precision
        planes = env.observe().planes
        self.critic: nn.Module = EntityCritic(spec)
        if settings.critic == "conv":
            if planes is None:
                raise MusterError("the conv critic needs a world with feature planes; use the entity critic")
            self.critic = ConvCritic(planes.shape[1])
        # The kernels' view of the parameters: the same memory, which optimisers and loading change in place.
        self._model_views = self.model.views()
        self._critic_views = self.critic.views() if isinstance(self.critic, EntityCritic) else None
        optimiser = torch.optim.Adam if settings.optimiser == "adam" else torch.optim.SGD
        self.model_optimiser = optimiser(self.model.parameters(), lr=settings.policy_rate)
        self.critic_optimiser = optimiser(self.critic.parameters(), lr=settings.value_rate)
        # One core a run: several runs share a machine better than one run its threads.
        self.solver = Solver.of(inference, threads=1)
        n, m, noise = env.n_agents, env.n_tasks, settings.noise
        self.noise_h = CorrelatedNoise(env.n_envs, (n, m), noise.sigma, noise.correlated_steps)
        self.noise_g = CorrelatedNoise(
            env.n_envs, (m, m) if spec.task_scores else (0,), noise.sigma, noise.correlated_steps
        )
        self.episodes = TrainingEpisodes(env, seed)
        self.episodes.begin(np.arange(env.n_envs))
        self.steps = 0
        self.running_reward = np.zeros(env.n_envs)

    def policy(self) -> LearnedPolicy:
        """The policy as it stands."""
        return LearnedPolicy(
            "a2c", self.spec, parameters_of(self.model), self.inference, self.settings.noise, self.header
        )

    def update(self, progress: float = 0.0) -> dict[str, float]:
        """One round of the worker's and the learner's loops; `progress` in [0, 1] is how far the run has come."""
        if self.settings.schedule == "cosine":
            factor = 0.5 * (1.0 + np.cos(np.pi * min(progress, 1.0)))
            self.model_optimiser.param_groups[0]["lr"] = self.settings.policy_rate * factor
            self.critic_optimiser.param_groups[0]["lr"] = self.settings.value_rate * factor
        rollout = self.play()
        return self.learn(rollout)

    @torch.no_grad()
    def play(self) -> Rollout:
        """n decisions in every environment, with noise on the scores."""
        env, settings = self.env, self.settings
        self.model.eval()
        observations, played, scores = [], [], []
        rewards = np.zeros((settings.return_steps, env.n_envs))
        ended = np.zeros((settings.return_steps, env.n_envs), np.bool_)
        outcomes: list[Floats] = []
        episode_rewards: list[Floats] = []
        for t in range(settings.return_steps):
            seen = self.spec.view(env.observe())
            h, g = self.scores(seen)
            noisy_h = h + self.noise_h.add(self.rng.standard_normal(h.shape, np.float32))
            noisy_g = None if g is None else g + self.noise_g.add(self.rng.standard_normal(g.shape, np.float32))
            _finite("score", noisy_h, noisy_g)
            step = env.step(self.solver(make_problem(seen, noisy_h, noisy_g)).assignment)
            _finite("reward", step.reward)
            observations.append(seen)
            played.append((noisy_h, noisy_g))
            scores.append((h, g))
            rewards[t] = step.reward
            self.running_reward += step.reward
            ended[t] = step.terminated | step.truncated
            slots = np.flatnonzero(ended[t])
            if step.truncated.any():
                # A truncated episode would have gone on: its last state's value belongs to the return.
                cut = np.flatnonzero(step.truncated)
                rewards[t, cut] += settings.discount * self.values(self.spec.view(env.observe()))[cut]
            if slots.size:
                outcomes.append(env.outcome()[slots])
                episode_rewards.append(self.running_reward[slots])
                self.running_reward[slots] = 0.0
                self.episodes.begin(slots)
                self.noise_h.reset(slots)
                if g is not None:
                    self.noise_g.reset(slots)
        self.steps += settings.return_steps * env.n_envs
        nothing = np.zeros(0)
        return Rollout(
            observations,
            played,
            scores,
            rewards,
            ended,
            self.spec.view(env.observe()),
            np.concatenate([nothing, *outcomes]),
            np.concatenate([nothing, *episode_rewards]),
        )

    def learn(self, rollout: Rollout) -> dict[str, float]:
        """One optimisation step on what was played."""
        settings = self.settings
        after = self.values(rollout.after).astype(np.float64)
        target = n_step_returns(rollout.rewards, rollout.ended, after, settings.discount).reshape(-1).astype(np.float32)
        seen = join(rollout.observations)
        value, value_loss = self._value_gradient(seen, target)
        advantage = target - value
        self._descend(self.critic_optimiser, "value loss", value_loss)
        policy_loss = self._policy_gradient(rollout, seen, advantage)
        self._descend(self.model_optimiser, "policy loss", policy_loss)
        if self.spec.kind == "pem":
            self._refresh_statistics(rollout.observations[-1])
        return {
            "episodes": float(len(rollout.outcomes)),
            "outcome": float(rollout.outcomes.mean()) if len(rollout.outcomes) else float("nan"),
            "reward": float(rollout.episode_rewards.mean()) if len(rollout.episode_rewards) else float("nan"),
            "value_loss": value_loss,
            "policy_loss": policy_loss,
            "advantage": float(np.abs(advantage).mean()),
        }

    def scores(self, seen: Observation) -> Scores:
        """h and g as the model gives them now."""
        if self.spec.kind == "dm":
            return direct_scores(self._model_views, seen, self.spec.task_scores)
        h, g = self.model(seen)
        return h.numpy(), None if g is None else g.numpy()

    @torch.no_grad()
    def values(self, seen: Observation) -> Floats32:
        """The critic's values [B]."""
        if self._critic_views is not None:
            return state_values(self._critic_views, seen)
        self.critic.eval()
        found: Floats32 = self.critic(seen).numpy()
        return found

    def _value_gradient(self, seen: Observation, target: Floats32) -> tuple[Floats32, float]:
        """Values and their loss; leaves its gradient in the critic's parameters."""
        if self._critic_views is not None:
            values, loss, gradients = value_gradient(self._critic_views, seen, target)
            for name, parameter in self.critic.named_parameters():
                parameter.grad = torch.from_numpy(gradients[name])
            return values, loss
        self.critic.train()
        value = self.critic(seen)
        value_loss = smooth_l1_loss(value, torch.from_numpy(target))
        self.critic_optimiser.zero_grad(set_to_none=True)
        value_loss.backward()  # type: ignore[no-untyped-call]
        return value.detach().numpy(), float(value_loss.detach())

    def _policy_gradient(self, rollout: Rollout, seen: Observation, advantage: Floats32) -> float:
        """Loss of the policy; leaves its gradient, times lambda, in the model's parameters."""
        old, played = _stack(rollout.scores), _stack(rollout.played)
        weight, sigma = self.settings.policy_weight, self.settings.noise.sigma
        if self.spec.kind == "dm":
            gain = np.float32(weight) * advantage
            loss, gradients = policy_gradient(self._model_views, seen, old, played, gain, sigma)
            for name, parameter in self.model.pairs.items():
                parameter.grad = torch.from_numpy(gradients[name.replace("_", ".", 1)])
            return loss / weight
        new = self.model(seen)
        total = torch.zeros(())
        for mean, mask, was, action in zip(new, alive_pairs(seen), old, played, strict=True):
            if was is None or action is None:
                continue
            likelihood = log_likelihood(torch.from_numpy(action), mean, sigma)
            before = log_likelihood(torch.from_numpy(action), torch.from_numpy(was), sigma)
            ratio = importance_ratio(likelihood, before).detach()
            per_state = (ratio * likelihood * torch.from_numpy(mask)).flatten(1).sum(1)
            total = total - (torch.from_numpy(advantage) * per_state).mean()
        self.model_optimiser.zero_grad(set_to_none=True)
        (weight * total).backward()  # type: ignore[no-untyped-call]
        return float(total.detach())

    @torch.no_grad()
    def _refresh_statistics(self, seen: Observation) -> None:
        """Let BatchNorm see new states, between two rounds: within one it must not move.

        Were the update to normalise by its own batch, its scores would not be those that played, and the gradient would
        pull towards the difference: runs then collapse after a while.
        """
        self.model.train()
        self.model(seen)
        self.model.eval()

    def _descend(self, optimiser: torch.optim.Optimizer, name: str, loss: float) -> None:
        """One step of the optimiser, unless something is not finite."""
        if not np.isfinite(loss):
            raise TrainingError(f"{name} became {loss}; lower the learning rate or sigma")
        for group in optimiser.param_groups:
            # A sum is finite only if all its terms are.
            if not all(p.grad is None or np.isfinite(p.grad.numpy().sum()) for p in group["params"]):
                raise TrainingError(f"the gradient of the {name} is not finite; lower the learning rate")
        optimiser.step()

    def get_state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Everything needed to go on bit for bit: arrays, and plain values."""
        arrays: dict[str, NDArray[Any]] = {f"model/{k}": v for k, v in parameters_of(self.model).items()}
        arrays |= {f"critic/{k}": v.detach().numpy().copy() for k, v in self.critic.state_dict().items()}
        for name, optimiser in (("model", self.model_optimiser), ("critic", self.critic_optimiser)):
            for index, entry in optimiser.state_dict()["state"].items():
                arrays |= {f"{name}_optimiser/{index}/{k}": v.numpy().copy() for k, v in entry.items()}
        arrays |= {f"env/{k}": v for k, v in self.env.get_state().items()}
        for name, noise in (("noise_h", self.noise_h), ("noise_g", self.noise_g)):
            arrays |= {f"{name}/queue": noise.queue.copy(), f"{name}/total": noise.total.copy()}
        arrays["running_reward"] = self.running_reward.copy()
        plain = {
            "rng": self.rng.bit_generator.state,
            "steps": self.steps,
            "begun": self.episodes.begun,
            "oldest": [self.noise_h.oldest, self.noise_g.oldest],
        }
        return arrays, plain

    def set_state(self, arrays: dict[str, NDArray[Any]], plain: dict[str, Any]) -> None:
        """Go on from what `get_state` returned."""

        def part(prefix: str) -> dict[str, NDArray[Any]]:
            return {k.removeprefix(prefix + "/"): v for k, v in arrays.items() if k.startswith(prefix + "/")}

        self.model.load_state_dict(network_from(self.spec, part("model")).state_dict())
        self.critic.load_state_dict({k: torch.from_numpy(np.array(v)) for k, v in part("critic").items()})
        for name, optimiser in (("model", self.model_optimiser), ("critic", self.critic_optimiser)):
            state: dict[int, dict[str, torch.Tensor]] = {}
            for key, value in part(f"{name}_optimiser").items():
                index, _, entry = key.partition("/")
                state.setdefault(int(index), {})[entry] = torch.from_numpy(np.array(value))
            optimiser.load_state_dict({"state": state, "param_groups": optimiser.state_dict()["param_groups"]})
        self.env.set_state(part("env"))
        for name, noise, oldest in zip(
            ("noise_h", "noise_g"), (self.noise_h, self.noise_g), plain["oldest"], strict=True
        ):
            noise.queue[...] = arrays[f"{name}/queue"]
            noise.total[...] = arrays[f"{name}/total"]
            noise.oldest = oldest
        self.running_reward[...] = arrays["running_reward"]
        self.rng.bit_generator.state = plain["rng"]
        self.steps, self.episodes.begun = plain["steps"], plain["begun"]


def join(observations: list[Observation]) -> Observation:
    """One observation of T·B worlds from T of B worlds."""
    parts: dict[str, Any] = {}
    for entry in dataclasses.fields(Observation):
        arrays = [getattr(seen, entry.name) for seen in observations]
        parts[entry.name] = None if arrays[0] is None else np.concatenate(arrays)
    return Observation(**parts)


def _stack(scores: list[Scores]) -> Scores:
    """h and g of T·B states from T of B."""
    h, g = zip(*scores, strict=True)
    return np.concatenate(h), None if g[0] is None else np.concatenate(g)


def _finite(name: str, *arrays: NDArray[Any] | None) -> None:
    for array in arrays:
        if array is not None and not np.isfinite(array).all():
            raise TrainingError(f"a {name} is not finite; lower the learning rate, or check the world's rewards")
