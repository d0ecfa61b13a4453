"""The bias of the paper's update, made visible: what each likelihood does to a bonus for keeping one's task.

    python paper/bias.py [--environment battle:m10v10] [--inference lp] [--rounds 40] [POLICY ...]

Let every score have a bonus beta on "was my task a decision ago". At beta = 0, its gradient under a likelihood is the
sum, over the pairs that were just played, of advantage times slope of the log-likelihood. An untrained policy plays;
the mean over rollouts of that gradient is given with its t value, with a critic that knows nothing and with one that
was trained meanwhile. Then the share of decisions in which each policy leaves a task that it could have kept.
"""

from __future__ import annotations

import argparse

import numpy as np

from muster.data import Bools, Floats, Ints
from muster.envs.registry import make
from muster.learning.actor_critic import ActorCritic
from muster.learning.choices import choice_slopes
from muster.learning.episodes import VALIDATION
from muster.learning.learners import make_learner
from muster.learning.proximal import NONE, Played
from muster.learning.returns import traced_returns
from muster.learning.rollouts import Rollout
from muster.learning.settings import RECIPES, A2CSettings, TrainSettings
from muster.policy.decision import alive_pairs
from muster.policy.learned import LearnedPolicy
from muster.policy.names import adapt, load
from muster.policy.settings import NoiseSettings
from muster.rng import episode_seeds

NOISE = RECIPES["choices"].noise
NORMAL = NoiseSettings(NOISE.sigma, NOISE.correlated_steps, "normal", task_scores=False)
BATTLES = 128


def kept_pairs(rollout: Rollout) -> Bools:
    """[T·B, N, M]: the pair was played a decision ago, in the same episode, and can be played again."""
    steps, batch = rollout.rewards.shape
    before = rollout.assignment.reshape(steps, batch, -1)
    pairs = alive_pairs(rollout.seen)[0]
    kept = np.zeros((steps, batch, *pairs.shape[1:]), np.bool_)
    for t, b, i in np.argwhere((before[:-1] >= 0) & ~rollout.ended[:-1, :, None]):
        kept[t + 1, b, i, before[t, b, i]] = True
    return kept.reshape(pairs.shape) & pairs


def even_advantage(learner: ActorCritic, rollout: Rollout) -> tuple[Floats, Floats]:
    """Returns [T, B] and advantages of mean 0 and deviation 1."""
    values = learner.values(rollout.seen).astype(np.float64).reshape(rollout.rewards.shape)
    after = learner.values(rollout.after).astype(np.float64)
    returns = traced_returns(rollout.rewards, rollout.ended, values, after, learner.settings.discount, 0.95)
    advantage = returns - values
    return returns, (advantage - advantage.mean()) / (advantage.std() + 1e-8)


def gradients(learner: ActorCritic, rollout: Rollout) -> dict[str, float]:
    """Of the bonus, per state, by likelihood; and the mean noise on the pairs just played."""
    returns, advantage = even_advantage(learner, rollout)
    kept, states = kept_pairs(rollout), advantage.size
    sigma, steps = NOISE.sigma, NOISE.correlated_steps
    assert sigma is not None
    assert steps is not None
    if learner.settings.likelihood == "choices":
        played = Played.of(rollout, learner.inference, returns, advantage, learner.tau, learner.exchanging)
        slope = np.zeros(kept.shape)
        gain = np.broadcast_to(advantage.reshape(-1, 1), rollout.assignment.shape).copy()
        h = rollout.scores[0]
        choice_slopes(played.decisions, h, NONE, learner.tau, gain, 0.0, slope, np.zeros(NONE.shape))
        return {"choices": float((slope * kept).sum() / states)}
    weight = advantage.reshape(-1, 1, 1) * kept / states
    noise = (rollout.played[0] - rollout.scores[0]).astype(np.float64)
    drawn = (rollout.without_history()[0] - rollout.scores[0]).astype(np.float64)
    return {
        "played": float((weight * noise).sum() / sigma**2),
        "innovations": float((weight * drawn).sum() / (sigma / steps) ** 2),
        "noise": float(noise[kept].mean()),
    }


def train_critic(learner: ActorCritic, rollout: Rollout) -> None:
    """One step of the critic alone."""
    target = even_advantage(learner, rollout)[0].reshape(-1).astype(np.float32)
    learner.critic_optimiser.zero_grad(set_to_none=True)
    loss = learner.values.gradient(rollout.seen, target, 1.0)[1]
    learner._descend(learner.critic_optimiser, "value loss", loss)
    learner._pack()


def measure(world: str, inference: str, rounds: int) -> dict[str, list[dict[str, float]]]:
    """Gradients of every round: by an ignorant critic, then by one trained for as many rounds."""
    found: dict[str, list[dict[str, float]]] = {"first rounds": [], "trained critic": []}
    for likelihood, noise in (("innovations", NORMAL), ("choices", NOISE)):
        a2c = A2CSettings(likelihood=likelihood, envs=128, return_steps=32, noise=noise)  # type: ignore[arg-type]
        learner = make_learner(TrainSettings(env=world, inference=inference, a2c=a2c))  # type: ignore[arg-type]
        assert isinstance(learner, ActorCritic)
        for phase, rows in found.items():
            for _ in range(rounds):
                rollout = learner.play()[0]
                rows.append(gradients(learner, rollout))
                if phase == "first rounds":
                    continue
                train_critic(learner, rollout)
            if phase == "first rounds":
                for _ in range(rounds):
                    train_critic(learner, learner.play()[0])
    return found


def switch_rate(policy: LearnedPolicy, world: str) -> float:
    """Share of the tasks which an agent could have kept and left for another or for none."""
    env = make(world, BATTLES)
    adapt(policy, env)
    env.reset(np.arange(BATTLES), episode_seeds(VALIDATION, np.arange(BATTLES)))
    running = np.ones(BATTLES, np.bool_)
    before: Ints | None = None
    could = left = 0
    while running.any():
        seen = env.observe()
        assignment = policy.act(seen)
        if before is not None:
            held = np.take_along_axis(alive_pairs(seen)[0], np.maximum(before, 0)[:, :, None], axis=2)[:, :, 0]
            held &= (before >= 0) & running[:, None]
            could, left = could + int(held.sum()), left + int((held & (assignment != before)).sum())
        step = env.step(assignment)
        before = assignment
        running &= ~(step.terminated | step.truncated)
    return left / max(could, 1)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("policies", nargs="*", help="policies whose switch rates to count")
    parser.add_argument("--environment", default="battle:m10v10")
    parser.add_argument("--inference", default="lp")
    parser.add_argument("--rounds", type=int, default=40, help="rollouts a phase, 128 environments x 32 decisions each")
    asked = parser.parse_args()
    print(f"{asked.world} {asked.inference}, {asked.rounds} rollouts: gradient on keeping one's task (t)", flush=True)
    for phase, rows in measure(asked.world, asked.inference, asked.rounds).items():
        for name in ("played", "innovations", "choices"):
            values = np.array([row[name] for row in rows if name in row])
            t = values.mean() / (values.std(ddof=1) / np.sqrt(len(values)))
            print(f"  {phase:15} {name:12} {values.mean():+8.3f}  ({t:+.1f})", flush=True)
        noise = np.mean([row["noise"] for row in rows if "noise" in row])
        print(f"  {phase:15} mean noise on the pairs just played {noise:+.3f}", flush=True)
    fresh = make_learner(TrainSettings(env=asked.world, inference=asked.inference)).policy()
    for name, policy in [("untrained", fresh), *((name, load(name)) for name in asked.policies)]:
        print(f"  switch rate {switch_rate(policy, asked.world):.3f}  {name}", flush=True)


if __name__ == "__main__":
    main()
