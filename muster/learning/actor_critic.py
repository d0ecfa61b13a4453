"""The actor-critic: plays with correlated noise on the scores (Algorithms 1 and 2), and learns from what it played.

The action is the scores themselves, or each agent's choice (`A2CSettings.likelihood`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from muster.assign.settings import InferenceSettings
from muster.assign.solver import Solver
from muster.data import BatchObservation, Floats32
from muster.envs.vector import BatchEnv
from muster.errors import InputError
from muster.learning.blocks import SpreadWorlds, Weights
from muster.learning.collapse import Watch
from muster.learning.crew import Crew
from muster.learning.episodes import EXPLORATION, WEIGHTS, stream
from muster.learning.memory import add_gradient, memory_of, recall
from muster.learning.optimiser import rate_factor
from muster.learning.pairs import begin_without_pairs, exchanges_count, rate_groups, when_to_pair, without_pairs
from muster.learning.parts import part, under
from muster.learning.proximal import Played, idle_share
from muster.learning.returns import n_step_returns, traced_returns
from muster.learning.rollouts import Manner, Rollout, TrainingError, Worker
from muster.learning.settings import A2CSettings
from muster.learning.tally import Figures, combine
from muster.learning.torch_critic import TorchCritic
from muster.models.direct import DirectModel, Parameters, Scores
from muster.models.gradient import policy_gradient, score_gradient
from muster.models.heads import HEADS
from muster.models.likelihood import importance_ratio, log_likelihood
from muster.models.networks import ScoringModel, network_from, parameters_of
from muster.models.spec import ModelSpec
from muster.policy.decision import Decision, Explore, Limit, alive_pairs, decide
from muster.policy.learned import LearnedPolicy
from muster.policy.noise import GUMBEL_DEVIATION

CHOICELESS = 5
"""Updates without a choice, or without one in doubt from the start, after which it is time to say so."""
DOUBT = 0.02
"""Mean entropy of the options below which noise is too small to try anything else."""


class ActorCritic:
    """The learner: plays, and updates scoring model and critic after every n decisions."""

    last_is_best = False

    def __init__(
        self,
        envs: Sequence[BatchEnv],
        spec: ModelSpec,
        inference: InferenceSettings,
        settings: A2CSettings,
        seed: int,
        header: dict[str, Any] | None = None,
        crew: Crew | None = None,
    ) -> None:
        self.spec, self.inference, self.settings = spec, inference, settings
        self.recipe = settings.recipe
        self.header = header or {}
        self.rng = stream(seed, EXPLORATION)
        torch.manual_seed(seed)
        self.model = ScoringModel(spec, stream(seed, WEIGHTS))
        self.model.low_precision = settings.low_precision
        self.values = TorchCritic(spec, envs[0].observe().planes, conv=settings.critic == "conv")
        # The kernels' view of the parameters: the same memory, which optimisers and loading change in place.
        self._model_views = self.model.views()
        optimiser = torch.optim.Adam if settings.optimiser == "adam" else torch.optim.SGD
        groups: list[dict[str, Any]] = [{"params": list(self.model.parameters()), "share": 1.0}]
        n_agents = max(env.n_agents for env in envs)
        if settings.pairs_from and not spec.task_scores:
            raise InputError("a2c.pairs_from is when g is learned, and only QUAD has one; use --inference quad")
        if settings.likelihood == "choices":
            begin_without_pairs(self._model_views)
            groups = rate_groups(self.model, n_agents)
        given = self.recipe.pairs_from if settings.likelihood == "choices" else 0.0
        self.pairs_from = when_to_pair(n_agents) if given is None else given
        self.exchanging = exchanges_count(spec.task_scores, n_agents)
        self.pairs = spec.task_scores
        """Whether there is a g to play and to learn now; see `A2CSettings.pairs_from`."""
        self._pack()
        self.model_optimiser = optimiser(groups, lr=self.recipe.policy_rate)
        self.critic_optimiser = optimiser(self.values.network.parameters(), lr=self.recipe.value_rate)
        self.solver = Solver.of(inference, threads=1)  # one core a run
        noise, quad, heads = self.recipe.noise, spec.task_scores, [HEADS[what] for what in spec.learned]
        self.worlds = [Worker(env, seed, noise, quad, k, heads) for k, env in enumerate(envs)]
        self.spread = SpreadWorlds(crew, self.worlds) if crew else None
        self.n_envs = sum(env.n_envs for env in envs)
        self.steps = 0
        self.watch = Watch()
        self.kept: dict[str, NDArray[Any]] = {}
        """What was learned when the rewards were best."""
        self.choiceless = 0
        """Updates, up to the last, in which no agent had a choice."""
        self.certain = 0
        """First updates in which next to no choice was in doubt; -1 once one was."""

    def counts(self) -> Mapping[str, int]:
        """How often the run went back to its best state, if it did."""
        return {"collapses": self.watch.collapses} if self.watch.collapses else {}

    def advice(self) -> str | None:
        """What a user should hear, if anything."""
        if self.choiceless >= CHOICELESS:
            return (
                f"no agent had a choice in {CHOICELESS} updates: there was but one task to take and nobody to exchange "
                "it with, so choices teach nothing here. Let agents idle (--assign-all False), or check what is allowed"
            )
        if self.certain >= CHOICELESS:
            return (
                "the noise hardly ever makes an agent choose otherwise, so there is little to learn from: raise "
                f"--a2c.noise.sigma (now {self.recipe.noise.sigma})"
            )
        if not self.watch.collapses:
            return None
        return (
            "the rewards fell below their best and stayed there, or every agent idled: the run goes on from its best "
            "state, with half the learning rates, as it will each time (collapses in the log). If that is often, lower "
            "--a2c.policy-rate or raise --a2c.entropy"
        )

    def _pack(self) -> None:
        """Pack the weights for the kernels: once an update, after which they are constant."""
        self._direct = DirectModel(self._model_views, self.pairs) if self.spec.kind == "dm" else None
        self.values.pack()

    def policy(self) -> LearnedPolicy:
        """The policy as it stands."""
        return LearnedPolicy(
            "a2c", self.spec, parameters_of(self.model), self.inference, self.recipe.noise, self.header
        )

    def start(self, parameters: Parameters) -> None:
        """Begin with these numbers in the scoring model."""
        self.model.load_state_dict(network_from(self.spec, parameters).state_dict())
        self._pack()

    def update(self, progress: float = 0.0) -> Figures:
        """One round of the worker's and the learner's loops; `progress` in [0, 1] is how far the run has come."""
        recipe = self.recipe
        waiting = progress < self.pairs_from and without_pairs(self._model_views)
        if self.pairs != (self.spec.task_scores and not waiting):
            self.pairs = not self.pairs
            self._pack()
        factor = rate_factor(recipe.schedule, progress) * 0.5**self.watch.collapses
        for group in self.model_optimiser.param_groups:
            group["lr"] = recipe.policy_rate * factor * group["share"]
        self.critic_optimiser.param_groups[0]["lr"] = recipe.value_rate * factor
        return self.learn(self.play())

    @torch.no_grad()
    def play(self) -> list[Rollout]:
        """n decisions in every environment of every environment, with noise on the scores."""
        steps, remember = self.recipe.return_steps, self.settings.likelihood != "played"
        limits = self._direct.limits if self._direct is not None and self.spec.learned else None
        manner = Manner(steps, self.settings.discount, remember, self.decide, self.spec.view, self.values, limits)
        self.model.eval()
        if self.spread:
            weights = Weights(self._model_views, self.values.told, self.pairs)
            rollouts = self.spread.play(weights, steps, self.rng)
        else:
            rollouts = [world.play(manner, self.rng) for world in self.worlds]
        self.steps += steps * self.n_envs
        return rollouts

    def decide(self, observation: BatchObservation, explore: Explore, limit: Limit | None = None) -> Decision:
        """One decision of the present policy; `limit` puts learned limits in place, with noise."""
        return decide(observation, self.spec, self.scores, self.solver, explore, limit)

    def learn(self, rollouts: Sequence[Rollout]) -> Figures:
        """The optimisation steps on what was played."""
        shares = [rollout.rewards.shape[1] / self.n_envs for rollout in rollouts]
        choices = self.settings.likelihood == "choices"
        losses = (self._learn_choices if choices else self._learn_scores)(rollouts, shares)
        if self.spec.kind == "pem":
            for rollout in rollouts:
                self._refresh_statistics(rollout.last)
        self._pack()
        if choices:
            self._look_after(rollouts)
        names = [world.env.name for world in self.worlds]
        return combine(names, [rollout.figures for rollout in rollouts]) | losses

    def _learn_scores(self, rollouts: Sequence[Rollout], shares: Sequence[float]) -> Figures:
        """One step: n-step returns, and the likelihood of the played scores or of their innovations."""
        value_loss, policy_loss, size = 0.0, 0.0, 0.0
        advantages = []
        self.critic_optimiser.zero_grad(set_to_none=True)
        for rollout, share in zip(rollouts, shares, strict=True):
            after = self.values(rollout.after).astype(np.float64)
            returns = n_step_returns(rollout.rewards, rollout.ended, after, self.settings.discount)
            target = returns.reshape(-1).astype(np.float32)
            value, loss = self.values.gradient(rollout.seen, target, share)
            advantages.append(target - value)
            value_loss += share * loss
            size += share * float(np.abs(advantages[-1]).mean())
        self._descend(self.critic_optimiser, "value loss", value_loss)
        self.model_optimiser.zero_grad(set_to_none=True)
        for rollout, share, advantage in zip(rollouts, shares, advantages, strict=True):
            policy_loss += share * self._policy_gradient(rollout, advantage, share)
        self._descend(self.model_optimiser, "policy loss", policy_loss)
        return {"value_loss": value_loss, "policy_loss": policy_loss, "advantage": size}

    def _learn_choices(self, rollouts: Sequence[Rollout], shares: Sequence[float]) -> Figures:
        """One pass in minibatches: TD(lambda), advantages of deviation 1, clipped ratios of the agents' choices."""
        recipe = self.recipe
        played = [self._remember(rollout) for rollout in rollouts]
        self.values.fit(np.concatenate([one.target for one in played]))
        orders = [np.array_split(self.rng.permutation(len(one.target)), recipe.minibatches) for one in played]
        figures = {"value_loss": 0.0, "policy_loss": 0.0, "advantage": 0.0, "entropy": 0.0}
        for turn in range(recipe.minibatches):
            self.critic_optimiser.zero_grad(set_to_none=True)
            self.model_optimiser.zero_grad(set_to_none=True)
            value_loss = policy_loss = 0.0
            for one, order, share in zip(played, orders, shares, strict=True):
                if not len(order[turn]):
                    continue
                batch = one.take(order[turn])
                value_loss += share * self.values.gradient(batch.seen, batch.target, share)[1]
                loss, entropy = self._choice_gradient(batch, share)
                policy_loss += share * loss
                figures["entropy"] += share * entropy / recipe.minibatches
            self._descend(self.critic_optimiser, "value loss", value_loss)
            self._descend(self.model_optimiser, "policy loss", policy_loss)
            self._pack()
            figures["value_loss"] += value_loss / recipe.minibatches
            figures["policy_loss"] += policy_loss / recipe.minibatches
        nothing = figures["entropy"] == 0 and not any(one.able for one in played)
        self.choiceless = self.choiceless + 1 if nothing else 0
        self.certain = self.certain + 1 if self.certain >= 0 and figures["entropy"] < DOUBT else -1
        figures["advantage"] = sum(share * one.size for one, share in zip(played, shares, strict=True))
        return figures

    @property
    def tau(self) -> float:
        """Scale of Gumbel innovations of deviation sigma/p: the temperature of the softmax."""
        return self.recipe.noise.innovation / GUMBEL_DEVIATION

    def _remember(self, rollout: Rollout) -> Played:
        """What was played, with targets of the values and the likelihood that each choice had."""
        values = self.values(rollout.seen).astype(np.float64).reshape(rollout.rewards.shape)
        after = self.values(rollout.after).astype(np.float64)
        returns = traced_returns(
            rollout.rewards, rollout.ended, values, after, self.settings.discount, self.recipe.trace
        )
        return Played.of(rollout, self.inference, returns, returns - values, self.tau, self.exchanging)

    def _choice_gradient(self, batch: Played, share: float) -> tuple[float, float]:
        """Loss and mean entropy of the choices; adds the loss's gradient, times the env's share, to the model's."""
        if self._direct is not None:
            now: Scores = self._direct(batch.seen)
        else:
            h, g = self.model(batch.seen)
            g = g if self.pairs else None
            now = h.detach().numpy(), None if g is None else g.detach().numpy()
        weight = share * self.settings.policy_weight
        loss, entropy, slopes = batch.slopes(now, self.tau, self.recipe.clip, self.recipe.entropy, weight)
        if self._direct is not None:
            more, limit_slopes = batch.limit_slopes(self._direct.limits(batch.seen), self.recipe, weight)
            self._add_to_pairs(score_gradient(self._direct, batch.seen, slopes, limit_slopes), 1.0)
            loss += more
        else:
            ends = [(end, slope) for end, slope in zip((h, g), slopes, strict=True) if end is not None]
            torch.autograd.backward([end for end, _ in ends], [torch.from_numpy(slope) for _, slope in ends])
        return loss, entropy

    def _look_after(self, rollouts: Sequence[Rollout]) -> None:
        """Keep what was learned while rewards are at their best; go back to it when they have collapsed."""
        reward = float(np.mean([rollout.figures["reward"] for rollout in rollouts]))
        spread = float(np.mean([rollout.spread for rollout in rollouts]))
        episodes = sum(rollout.figures["episodes"] for rollout in rollouts)
        verdict = self.watch.see(reward, spread, episodes, idle_share(rollouts))
        if verdict == "best":
            self.kept = self._learned()
        elif verdict == "collapsed":
            self._set_learned(self.kept)

    def scores(self, seen: BatchObservation) -> Scores:
        """h and g as the model gives them now."""
        if self._direct is not None:
            return self._direct(seen)
        h, g = self.model.scores(seen)
        return h, g if self.pairs else None

    def _policy_gradient(self, rollout: Rollout, advantage: Floats32, share: float) -> float:
        """Loss of the policy; adds its gradient, times lambda and the env's share, to the model's parameters'."""
        weight, noise, seen, played = self.settings.policy_weight, self.recipe.noise, rollout.seen, rollout.played
        sigma = noise.sigma
        assert sigma is not None
        if self.settings.likelihood == "innovations":
            # Drawn from N(h + history, sigma / p): the same as played less history from N(h, sigma / p).
            sigma = noise.innovation
            played = rollout.without_history()
        if self._direct is not None:
            gain = np.float32(weight) * advantage
            loss, gradients = policy_gradient(self._direct, seen, rollout.scores, played, gain, sigma)
            self._add_to_pairs(gradients, share)
            return loss / weight
        new = self.model(seen)
        total = torch.zeros(())
        for mean, mask, was, action in zip(new, alive_pairs(seen), rollout.scores, played, strict=True):
            if was is None or action is None:
                continue
            likelihood = log_likelihood(torch.from_numpy(action), mean, sigma)
            before = log_likelihood(torch.from_numpy(action), torch.from_numpy(was), sigma)
            ratio = importance_ratio(likelihood, before).detach()
            per_state = (ratio * likelihood * torch.from_numpy(mask)).flatten(1).sum(1)
            total = total - (torch.from_numpy(advantage) * per_state).mean()
        (share * weight * total).backward()  # type: ignore[no-untyped-call]
        return float(total.detach())

    def _add_to_pairs(self, gradients: Parameters, share: float) -> None:
        for name, parameter in self.model.pairs.items():
            if name.replace("_", ".", 1) in gradients:  # while g waits it has none
                add_gradient(parameter, gradients[name.replace("_", ".", 1)], share)

    @torch.no_grad()
    def _refresh_statistics(self, seen: BatchObservation) -> None:
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
            if self.recipe.gradient_norm:
                torch.nn.utils.clip_grad_norm_(group["params"], self.recipe.gradient_norm)
        optimiser.step()

    def get_state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Everything needed to go on bit for bit: arrays, and plain values."""
        arrays = self._learned() | {f"kept/{name}": array for name, array in self.kept.items()}
        of_worlds = self.spread.get_state() if self.spread else [world.get_state() for world in self.worlds]
        for k, (of_world, _) in enumerate(of_worlds):
            arrays |= {f"environment{k}/{name}": array for name, array in of_world.items()}
        worlds, watch = [plain for _, plain in of_worlds], self.watch.get_state()
        plain = {"rng": self.rng.bit_generator.state, "steps": self.steps, "environments": worlds, "watch": watch}
        return arrays, plain | {"choiceless": self.choiceless, "certain": self.certain}

    def set_state(self, arrays: dict[str, NDArray[Any]], plain: dict[str, Any]) -> None:
        """Go on from what `get_state` returned."""
        self._set_learned(arrays)
        self.kept = part(arrays, "kept")
        for k, (world, of_world) in enumerate(zip(self.worlds, plain["environments"], strict=True)):
            world.set_state(part(arrays, f"environment{k}"), of_world)
        if self.spread:
            self.spread.set_state()
        self.rng.bit_generator.state, self.steps = plain["rng"], plain["steps"]
        self.watch.set_state(plain["watch"])
        self.choiceless, self.certain = plain["choiceless"], plain.get("certain", -1)

    def _learned(self) -> dict[str, NDArray[Any]]:
        """Copies of parameters, statistics and the optimisers' memories."""
        arrays = under("model", parameters_of(self.model))
        arrays |= under("critic", {k: v.detach().numpy().copy() for k, v in self.values.network.state_dict().items()})
        arrays["critic_scale"] = np.array([self.values.scale])
        for name, optimiser in (("model", self.model_optimiser), ("critic", self.critic_optimiser)):
            arrays |= under(f"{name}_optimiser", memory_of(optimiser))
        return arrays

    def _set_learned(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Go on from what `_learned` returned."""
        self.model.load_state_dict(network_from(self.spec, part(arrays, "model")).state_dict())
        of_critic = {k: torch.from_numpy(np.array(v)) for k, v in part(arrays, "critic").items()}
        self.values.network.load_state_dict(of_critic)
        # Runs of before critics had a scale do not.
        self.values.scale = float(arrays["critic_scale"][0]) if "critic_scale" in arrays else 1.0
        for name, optimiser in (("model", self.model_optimiser), ("critic", self.critic_optimiser)):
            recall(optimiser, part(arrays, f"{name}_optimiser"))
        self._pack()
