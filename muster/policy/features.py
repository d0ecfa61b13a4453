"""Names of the features that a policy reads."""

from __future__ import annotations

from muster.envs.features import FeatureNames
from muster.envs.registry import make
from muster.errors import MusterError
from muster.policy.learned import LearnedPolicy


def features_of(policy: LearnedPolicy) -> FeatureNames:
    """Those that its file keeps, or else those of the env it was trained on, as far as the policy reads them."""
    spec = policy.spec
    widths = {
        "agent": spec.agent_width,
        "task": spec.task_width,
        "pair": spec.pair_width,
        "task_pair": spec.task_pair_width,
        "global": spec.global_width,
    }
    return FeatureNames.of(widths, policy.header.get("features") or _of_world(policy), policy.name)


def _of_world(policy: LearnedPolicy) -> dict[str, tuple[str, ...]]:
    """What the policy's environment says, as far as it can be made here and agrees with what the policy reads."""
    try:
        env = make(str(policy.header.get("env", "")))
        env.show(pair_features=policy.spec.pair_width > 0, planes=False)
        return {kind: tuple(names) for kind, names in env.feature_names().items()}
    except MusterError:
        return {}
