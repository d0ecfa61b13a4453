"""Settings of the learners that need no torch: evolution, imitation, structured reinforcement learning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from muster.errors import InputError
from muster.policy.settings import NoiseSettings
from muster.settings import AtLeast, Between, Positive, check_fields

Schedule = Literal["constant", "cosine"]
Valuation = Literal["rollouts", "critic"]
ROLLOUT_HORIZON = 10


@dataclass(frozen=True)
class ESSettings:
    """Evolution strategy: antithetic pairs, common episodes, rank-shaped fitness, Adam. Needs no torch."""

    pairs: Annotated[int, AtLeast(1)] = 32
    """Antithetic pairs of candidates per update."""
    episodes: Annotated[int, AtLeast(1)] = 16
    """Episodes each candidate plays, the same for all."""
    sigma: Annotated[float, Positive()] = 0.07
    """Standard deviation of the candidates round the parameters."""
    rate: Annotated[float, Positive()] = 0.03
    """Learning rate of Adam."""
    weight_decay: Annotated[float, AtLeast(0)] = 0.0
    """Share of the parameters that an update takes away, times the learning rate (decoupled, as in AdamW)."""
    schedule: Schedule = "cosine"
    """Learning rate over the run: constant, or a cosine down to 0."""
    win_weight: float = 1.0
    """What a win adds to an episode's fitness, in environments that can be won."""
    return_weight: float = 0.5
    """What the sum of rewards counts for beside it."""

    def __post_init__(self) -> None:
        check_fields(self)
        if not 0 <= self.weight_decay * self.rate < 1:
            raise InputError(f"weight_decay times rate must be from 0 to below 1, got {self.weight_decay * self.rate}")


@dataclass(frozen=True)
class ImitationSettings:
    """Imitation of a teacher that labels every state. The direct model needs no torch."""

    loss: Literal["fenchel-young", "cross-entropy"] = "fenchel-young"
    """fenchel-young: what the solver answers to perturbed scores is to be what the teacher does, all agents at once;
    cross-entropy: each agent's softmax over all tasks, the others on the teacher's."""
    perturbations: Annotated[int, AtLeast(1)] = 4
    """Perturbed problems that are solved for each state (fenchel-young)."""
    epsilon: Annotated[float, Positive()] = 0.3
    """Standard deviation of the perturbations of h (fenchel-young)."""
    noise: Literal["normal", "gumbel"] = "normal"
    """What the perturbations are drawn from (fenchel-young)."""
    envs: Annotated[int, AtLeast(1)] = 128
    """Environments played side by side: the states of one update."""
    rate: Annotated[float, Positive()] = 3e-3
    """Learning rate of Adam."""
    warm_up: Annotated[int, AtLeast(0)] = 50
    """Updates over which the learning rate rises to that."""
    schedule: Schedule = "cosine"
    """Learning rate afterwards: a cosine down to 0, or constant."""
    gradient_norm: Annotated[float, AtLeast(0)] = 1.0
    """Longest gradient, longer ones are cut to it; 0: any."""
    weight_decay: Annotated[float, AtLeast(0)] = 0.01
    """Share of the parameters that an update takes away, times the learning rate (decoupled, as in AdamW)."""
    regret: bool = False
    """Learn only where the student's decision cost something by the teacher's own plan, and by how much (teachers that
    know what their plan is worth: topline and routes-distance of rescue)."""
    teacher_share: Annotated[float | None, Between(0, 1)] = None
    """Share of the environments in which the teacher is followed (0.25; 0 with regret, of which it has none)."""
    noisy_share: Annotated[float | None, Between(0, 1)] = None
    """Share in which the student is followed with noise on h, that of its loss; in the others it is followed as is
    (0.25; 0 with regret)."""
    low_precision: bool = False
    """Run the positional model's CNN in bfloat16 while training: half the time on processors that have it, ten
    times as long on others."""

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("teacher_share", "noisy_share"):
            if getattr(self, name) is None:
                object.__setattr__(self, name, 0.0 if self.regret else 0.25)
        together = self.shares[0] + self.shares[1]
        if together > 1:
            raise InputError(
                "teacher_share and noisy_share are shares of the same environments: together at most 1, got "
                f"{together:g}"
            )

    @property
    def shares(self) -> tuple[float, float]:
        """Of the environments: in which the teacher is followed, and the student with noise."""
        assert self.teacher_share is not None
        assert self.noisy_share is not None
        return self.teacher_share, self.noisy_share


@dataclass(frozen=True)
class SRLSettings:
    """Structured reinforcement learning: of several assignments what the better ones have in common. Needs no torch."""

    valuation: Valuation = "rollouts"
    """How an assignment is valued: rollouts on copies of the env, in which it can be tried, or a critic alone, for
    environments that cannot be copied."""
    states: Annotated[int, AtLeast(1)] = 32
    """Environments played side by side."""
    candidates: Annotated[int, AtLeast(2)] = 8
    """Assignments valued in each state: answers to the scores with noise on h."""
    sigma: Annotated[float, Positive()] = 0.5
    """Standard deviation of that noise; times that of h at the start, where that is above 1 (priors, --from)."""
    hold: Annotated[int, AtLeast(1)] = 8
    """Decisions for which a candidate keeps its noise in a rollout, and over which that of play is correlated."""
    horizon: Annotated[int | None, AtLeast(1)] = None
    """Decisions of a rollout; a critic values what comes after them (rollouts only: 10)."""
    spacing: Annotated[int, AtLeast(1)] = 4
    """Decisions played between two updates."""
    temperature: Annotated[float, Positive()] = 1.0
    """Of the softmax over the candidates' values, in deviations of a state's values."""
    discount: Annotated[float, Between(0, 1)] = 0.999
    """What a reward is worth one decision later."""
    rate: Annotated[float, Positive()] = 3e-3
    """Learning rate of the scoring model."""
    value_rate: Annotated[float, Positive()] = 2e-3
    """Learning rate of the critic."""
    schedule: Schedule = "cosine"
    """Learning rates over the run: constant, or a cosine down to 0."""
    gradient_norm: Annotated[float, AtLeast(0)] = 1.0
    """Longest gradient, longer ones are cut to it; 0: any."""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.valuation == "critic" and self.horizon is not None:
            raise InputError("a critic alone plays no rollouts: leave out horizon, or use the valuation rollouts")
        if self.valuation == "rollouts" and self.horizon is None:
            object.__setattr__(self, "horizon", ROLLOUT_HORIZON)

    @property
    def noise(self) -> NoiseSettings:
        """With which it plays: far smaller than a candidate's, so that states are those of the policy, or near them."""
        return NoiseSettings(0.5 * self.sigma, self.hold, innovations="normal", task_scores=False)
