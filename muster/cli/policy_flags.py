"""How a learned policy decides: flags that evaluate, compare, scale and replay have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Literal

from muster.assign.settings import Effort, Method
from muster.errors import InputError

if TYPE_CHECKING:
    from muster.envs.vector import Policy


@dataclass(frozen=True, kw_only=True)
class PolicyFlags:
    """Flags of every command that runs a policy."""

    inference: Method | str | None = None
    """Another procedure on a learned policy's scores; routes only where they were learned for it."""
    effort: Effort | None = None
    """How hard quad or routes tries; lp decides as it was learned."""
    rollouts: int | None = None
    """Look ahead: try so many candidates on copies of the env before each decision, and take the best one's move."""
    until: float | None = None
    """Look ahead with as many candidates as can be tried in so many seconds a decision."""
    futures: int | None = None
    """Try each candidate, which is then another first decision, in so many random futures, the same for all; it is
    taken only if it is better beyond chance. By default 1."""
    standard_errors: float | None = None
    """With several futures: standard errors by which a candidate must be better to be taken; by default 1.5."""
    horizon: int | None = None
    """Decisions that candidates are followed for; by default to the end of the episode, or 15 with several futures."""
    candidates: Literal["theta", "scores"] | None = None
    """theta: the policy with moved weights (direct models, the default for them); scores: with noise on its scores."""

    @property
    def asked(self) -> bool:
        """Whether anything is to be other than the policy itself has it."""
        return any(getattr(self, flag.name) is not None for flag in fields(PolicyFlags))

    def policies_of(self, names: Sequence[str], env: str) -> list[str | Policy]:
        """Several policies; baselines among learned ones are there to be compared with, as they are."""
        from muster.envs.registry import baselines_of

        baselines = baselines_of(env) if self.asked else []
        learned = [name for name in names if name not in baselines]
        return [name if name in baselines and learned else self.policy_of(name, env) for name in names]

    def policy_of(self, policy: str, env: str) -> str | Policy:
        """The policy of that name, as the flags say; an unknown name is left for the caller to refuse."""
        from muster.envs.registry import baselines_of, make
        from muster.policy.files import run_critic
        from muster.policy.learned import PRIOR, prior_policy
        from muster.policy.names import is_learned, load

        if not self.asked:
            return policy
        if policy in baselines_of(env):
            raise InputError(f"--inference, --effort and look-ahead are for learned policies; {policy!r} is a baseline")
        if policy == PRIOR:
            found = prior_policy(make(env))
        elif is_learned(policy):
            found = load(policy).variant(name=policy)
        else:
            return policy
        if self.inference:
            found = found.with_inference(method=self.inference)
        if self.effort:
            if found.inference.method not in ("quad", "routes"):
                raise InputError(f"--effort is for quad and routes; {policy} decides by {found.inference.method}")
            found = found.with_inference(effort=self.effort)
        names = ("horizon", "futures", "standard_errors", "candidates")
        given = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        if self.rollouts is not None or self.until is not None:
            critic = run_critic(policy) if self.horizon is not None or self.futures else None
            return found.with_rollouts(self.rollouts, critic, until=self.until, **given)
        if given:
            raise InputError(
                f"--{next(iter(given)).replace('_', '-')} is for look-ahead: add --rollouts K or --until SECONDS"
            )
        return found
