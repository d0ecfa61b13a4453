"""Which form of model carries from the envs of a run to others: what it reads, and by what its g is multiplied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from muster.data import BatchObservation
from muster.envs.vector import BatchEnv
from muster.errors import InputError
from muster.learning.settings import TrainSettings
from muster.models.kinds import Form, PairScale


def form_of(settings: TrainSettings, env: BatchEnv) -> Form:
    """What was asked for; a model that sees everyone needs no positions on the map where there are distances."""
    if settings.form is not None:
        return settings.form
    can = settings.pair_features and names_distances(env)
    return "local" if settings.model == "context" and can else "plain"


def names_distances(env: BatchEnv) -> bool:
    """Whether the environment says which of its pair features are distances."""
    return len(env.distances) == 2 and env.distance_unit > 0


def parts_of(settings: TrainSettings, env: BatchEnv, seen: BatchObservation) -> dict[str, Any]:
    """What a model of these settings must know of an environment beyond the widths of its features."""
    found = local_form(env, seen) if form_of(settings, env) == "local" else {}
    if settings.model != "context":
        return found
    found["places"] = env.positions
    # Only an environment that shows its pairs shows their distances.
    if names_distances(env) and seen.pair_features.shape[-1]:
        found |= {"distances": env.distances, "distance_unit": env.distance_unit}
    return found


def local_form(env: BatchEnv, seen: BatchObservation) -> dict[str, Any]:
    """What a model must know of an environment to read nothing that says where on the map: its columns."""
    if not names_distances(env):
        raise InputError(
            f"{env.name} does not say which of its pair features are distances (distances, distance_unit): "
            "leave out --form local"
        )
    return {
        "blind": env.positions,
        "distances": env.distances,
        "distance_unit": env.distance_unit,
        "distance_prior": seen.prior is None,
    }


def choose_pair_scale(settings: TrainSettings, envs: Sequence[BatchEnv]) -> PairScale:
    """What was asked for, or what carries to other sizes."""
    if settings.inference == "routes":
        # Costs of going from task to task are what they are, however many agents there are.
        if settings.pair_scale not in (None, "none"):
            raise InputError("costs of routes are not scaled: leave out --pair-scale with --inference routes")
        return "none"
    # The actor-critic's gradients know of no factor on g: there it must be 1 in training.
    alike = len({env.n_agents for env in envs}) == 1
    local = form_of(settings, envs[0]) == "local"
    usual: PairScale = "fade" if local else "size" if alike or settings.learner in ("es", "srl") else "none"
    if settings.learner == "a2c" and settings.form is None:
        usual = "size" if alike else "none"
    wanted = settings.pair_scale or usual
    if settings.learner == "a2c" and (wanted == "fade" or (wanted == "size" and not alike)):
        raise InputError(
            f"a g that is scaled in training (pair_scale {wanted}) is learned by evolution: add --learner es, or "
            "--pair-scale none"
        )
    if wanted == "fade" and not local:
        raise InputError("a g that fades goes by the environment's distances: add --form local")
    return wanted
