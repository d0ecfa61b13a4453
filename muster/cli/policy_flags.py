"""Inference and look-ahead of a learned policy: flags that evaluate, compare, scale and replay share."""

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
    """Solve a learned policy's scores by another method; routes only if it was trained with routes."""
    effort: Effort | None = None
    """Effort of quad or routes; lp and amax have none."""
    rollouts: int | None = None
    """Look ahead: run this many candidates on copies of the environment before each decision, and take the best."""
    until: float | None = None
    """Look ahead with as many candidates as fit into this many seconds per decision."""
    futures: int | None = None
    """Number of random futures, the same for all candidates, in which each is run (1). Another first decision is taken
    only if its mean is higher by --standard-errors."""
    standard_errors: float | None = None
    """Standard errors by which a candidate's mean over several futures must be higher (1.5)."""
    horizon: int | None = None
    """Length of a rollout in decisions; by default to the end of the episode, or 15 with several futures."""
    candidates: Literal["theta", "scores"] | None = None
    """theta: the policy with perturbed weights (the default for direct models); scores: with noise on its scores."""

    @property
    def any_set(self) -> bool:
        """Whether any of the flags is given."""
        return any(getattr(self, flag.name) is not None for flag in fields(PolicyFlags))

    def policies_of(self, names: Sequence[str], env: str) -> list[str | Policy]:
        """The named policies with the flags applied; baselines beside learned policies stay as they are."""
        from muster.envs.registry import baselines_of

        baselines = baselines_of(env) if self.any_set else []
        learned = [name for name in names if name not in baselines]
        return [name if name in baselines and learned else self.policy_of(name, env) for name in names]

    def policy_of(self, policy: str, env: str) -> str | Policy:
        """The named policy with the flags applied; the name itself without flags, or if no policy has that name."""
        from muster.envs.registry import baselines_of, make
        from muster.policy.files import run_critic
        from muster.policy.learned import PRIOR, prior_policy
        from muster.policy.names import is_learned, load

        if not self.any_set:
            return policy
        if policy in baselines_of(env):
            raise InputError(f"--inference, --effort and look-ahead are for learned policies; {policy!r} is a baseline")
        if policy == PRIOR:
            learned = prior_policy(make(env))
        elif is_learned(policy):
            learned = load(policy).variant(name=policy)
        else:
            return policy
        if self.inference:
            learned = learned.with_inference(method=self.inference)
        if self.effort:
            if learned.inference.method not in ("quad", "routes"):
                raise InputError(f"--effort is for quad and routes; {policy} decides by {learned.inference.method}")
            learned = learned.with_inference(effort=self.effort)
        names = ("horizon", "futures", "standard_errors", "candidates")
        options = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        if self.rollouts is not None or self.until is not None:
            critic = run_critic(policy) if self.horizon is not None or self.futures else None
            return learned.with_rollouts(self.rollouts, critic, until=self.until, **options)
        if options:
            raise InputError(
                f"--{next(iter(options)).replace('_', '-')} is for look-ahead: add --rollouts K or --until SECONDS"
            )
        return learned
