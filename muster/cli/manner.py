"""How a learned policy is to be played: flags that evaluate, compare, scale and play have in common."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from muster.assign.settings import Effort, Method
from muster.errors import InputError

if TYPE_CHECKING:
    from muster.envs.vector import Policy


@dataclass(frozen=True, kw_only=True)
class Manner:
    """Flags of every command in which a policy plays."""

    inference: Method | None = None
    """Another procedure under a learned policy's scores; plan only where they were learned for it."""
    effort: Effort | None = None
    """How hard quad or plan tries; lp plays as it was learned."""
    rollouts: int | None = None
    """Look ahead: try so many candidates on copies of the env before each decision, and play the best one's move."""
    until: float | None = None
    """Look ahead with as many candidates as can be tried in so many seconds a decision."""
    horizon: int | None = None
    """Decisions that candidates are played for; by default to the end of the episode."""
    candidates: Literal["theta", "scores"] | None = None
    """theta: the policy with moved weights (direct models, the default for them); scores: with noise on its scores."""

    @property
    def asked(self) -> bool:
        """Whether anything is to be other than the policy itself has it."""
        return any(
            value is not None
            for value in (self.inference, self.effort, self.rollouts, self.until, self.horizon, self.candidates)
        )

    def players(self, policies: Sequence[str], rules: Container[str]) -> list[str | Policy]:
        """Several policies; fixed rules among learned ones are there to be compared with, and play as they are."""
        learned = [policy for policy in policies if policy not in rules]
        return [name if name in rules and learned else self.player(name, rules) for name in policies]

    def player(self, policy: str, rules: Container[str]) -> str | Policy:
        """The policy of that name, to be played as the flags say; a name that is none is left for who plays it."""
        from muster.policy.files import run_critic
        from muster.policy.names import is_learned, load

        if not self.asked or (policy not in rules and not is_learned(policy)):
            return policy
        if policy in rules:
            raise InputError(
                f"--inference, --effort and look-ahead are for learned policies; {policy!r} is a fixed rule"
            )
        found = load(policy).variant(name=policy)
        if self.inference:
            found = found.with_inference(method=self.inference)
        if self.effort:
            if found.inference.method not in ("quad", "routes"):
                raise InputError(f"--effort is for quad and plan; {policy} is played by {found.inference.method}")
            found = found.with_inference(effort=self.effort)
        if self.rollouts is not None or self.until is not None:
            critic = run_critic(policy) if self.horizon is not None else None
            found = found.with_rollouts(
                self.rollouts, critic, until=self.until, horizon=self.horizon, candidates=self.candidates
            )
        elif self.horizon is not None or self.candidates is not None:
            raise InputError("--horizon and --candidates are for look-ahead: add --rollouts K or --until SECONDS")
        return found
