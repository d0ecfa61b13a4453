"""Every setting of a training run, checked when made; TOML in and out."""

from __future__ import annotations

import dataclasses
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args, get_type_hints

from tyro.conf import Positional

from muster.errors import InputError, UnknownNameError
from muster.inference.settings import Effort, Method, Rounding
from muster.policy.settings import NoiseSettings
from muster.scoring.kinds import ModelKind

LearnerKind = Literal["a2c", "es"]
Schedule = Literal["constant", "cosine"]


@dataclass(frozen=True)
class A2CSettings:
    """Synchronous advantage actor-critic on the scores themselves (the paper's Algorithms 1 and 2)."""

    envs: int = 256
    """Environments played side by side."""
    return_steps: int = 5
    """n of the n-step return: decisions between two updates."""
    discount: float = 0.999
    policy_rate: float = 1e-3
    """Learning rate of the scoring model."""
    value_rate: float = 1e-3
    """Learning rate of the critic."""
    policy_weight: float = 1.0
    """lambda: weight of the policy loss."""
    optimiser: Literal["adam", "sgd"] = "adam"
    schedule: Schedule = "constant"
    """Learning rates over the run: constant (the paper's), or a cosine down to 0."""
    critic: Literal["entity", "conv"] = "entity"
    """entity: pooled networks per object, cheap on a CPU; conv: the paper's residual CNN over the grid."""
    low_precision: bool = False
    """Run the positional model's CNN in bfloat16 while training: half the time on processors that have it."""
    noise: NoiseSettings = field(default_factory=NoiseSettings)

    def __post_init__(self) -> None:
        _positive(self, "envs", "return_steps", "policy_rate", "value_rate", "policy_weight")
        if not 0 <= self.discount <= 1:
            raise InputError(f"discount must be from 0 to 1, got {self.discount}")


@dataclass(frozen=True)
class ESSettings:
    """Evolution strategy: antithetic pairs, common episodes, rank-shaped fitness, Adam. Needs no torch."""

    pairs: int = 32
    """Antithetic pairs of candidates per update."""
    episodes: int = 16
    """Episodes each candidate plays, the same for all."""
    sigma: float = 0.07
    """Standard deviation of the candidates round the parameters."""
    rate: float = 0.03
    """Learning rate of Adam."""
    weight_decay: float = 0.0
    """Share of the parameters that an update takes away, times the learning rate (decoupled, as in AdamW)."""
    schedule: Schedule = "cosine"
    win_weight: float = 1.0
    """What a win adds to an episode's fitness, in worlds that can be won."""
    return_weight: float = 0.5
    """What the sum of rewards counts for beside it."""

    def __post_init__(self) -> None:
        _positive(self, "pairs", "episodes", "sigma", "rate")
        if not 0 <= self.weight_decay * self.rate < 1:
            raise InputError(f"weight_decay times rate must be from 0 to below 1, got {self.weight_decay * self.rate}")


@dataclass(frozen=True)
class TrainSettings:
    """What to learn, how, for how long, and where to."""

    env: Positional[str]
    """The world to learn on, such as rescue:2x4."""
    inference: Method = "quad"
    """Procedure that turns scores into assignments."""
    model: ModelKind = "dm"
    """dm: direct model; pem: positional embedding model (needs a grid)."""
    learner: LearnerKind = "a2c"
    minutes: float | None = None
    """Minutes of CPU time to train for (5 if neither this nor steps is given)."""
    steps: int | None = None
    """Environment steps to train for."""
    seed: int = 0
    pair_features: bool = True
    """Let the model see relative positions too, where the world offers them as a choice; the paper's does not."""
    centred: bool = False
    """Let the model read positions from the middle of all that live (battles); the paper's reads those on the map."""
    effort: Effort = "fast"
    rounding: Rounding = "strict"
    forced: bool | None = None
    """Assign every agent that fits somewhere; None: unless idling can be a good choice in this world."""
    log_every: int = 100_000
    """Environment steps between two rows of the log; with a2c the best policy is the one with the best row."""
    checkpoint_every: int = 500_000
    """Environment steps between two checkpoints."""
    evaluate_every: int = 2_000_000
    """Environment steps between two evaluations on held-out episodes."""
    evaluate_episodes: int = 500
    a2c: A2CSettings = field(default_factory=A2CSettings)
    es: ESSettings = field(default_factory=ESSettings)

    def __post_init__(self) -> None:
        for name, kind in (("inference", Method), ("model", ModelKind), ("learner", LearnerKind), ("effort", Effort)):
            if getattr(self, name) not in get_args(kind):
                raise UnknownNameError(name, str(getattr(self, name)), get_args(kind))
        if self.minutes is not None and self.steps is not None:
            raise InputError("give the length of the run as minutes or as steps, not both")
        if self.minutes is not None and not self.minutes > 0:
            raise InputError(f"minutes must be positive, got {self.minutes}")
        if self.steps is not None and self.steps < 1:
            raise InputError(f"steps must be at least 1, got {self.steps}")
        if self.learner == "es" and self.model == "pem":
            raise InputError("evolution tunes the direct model only; use --model dm or --learner a2c")
        _positive(self, "log_every", "checkpoint_every", "evaluate_every", "evaluate_episodes")


def _positive(settings: Any, *names: str) -> None:
    for name in names:
        if not getattr(settings, name) > 0:
            raise InputError(f"{name} must be positive, got {getattr(settings, name)}")


def to_toml(settings: Any) -> str:
    """The settings as TOML; None is left out."""
    import tomlkit

    def plain(value: Any) -> Any:
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            pairs = ((f.name, plain(getattr(value, f.name))) for f in dataclasses.fields(value))
            return {name: entry for name, entry in pairs if entry is not None}
        return value

    return tomlkit.dumps(plain(settings))


def from_toml(path: str | Path, **overrides: Any) -> TrainSettings:
    """Settings from a TOML file; unknown keys are errors; overrides that are not None win."""
    try:
        table = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not TOML: {error}") from None
    table |= {name: value for name, value in overrides.items() if value is not None}
    return build(TrainSettings, table, str(path))


def build(kind: Any, table: Any, where: str) -> Any:
    """An instance of the settings dataclass `kind` from nested plain values, naming what does not fit."""
    if not isinstance(table, dict):
        raise InputError(f"{where} must be a table of settings, got {table!r}")
    fields = {f.name: f for f in dataclasses.fields(kind)}
    hints = get_type_hints(kind)
    values: dict[str, Any] = {}
    for name, value in table.items():
        if name not in fields:
            raise UnknownNameError(f"setting in {where}", name, fields)
        hint = hints[name]
        if dataclasses.is_dataclass(hint):
            values[name] = build(hint, value, f"{where}, {name}")
            continue
        accepted = [t for t in (get_args(hint) or (hint,)) if isinstance(t, type)]
        right = value in get_args(hint) or (
            any(isinstance(value, t) and not (t is not bool and isinstance(value, bool)) for t in accepted)
            or (float in accepted and isinstance(value, int) and not isinstance(value, bool))
        )
        if not right:
            raise InputError(f"{name} in {where} must be {_wanted(hint)}, got {value!r}")
        values[name] = value
    missing = [
        f.name
        for f in fields.values()
        if f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING and f.name not in values
    ]
    if missing:
        raise InputError(f"{where} lacks {', '.join(missing)}")
    return kind(**values)


def _wanted(hint: Any) -> str:
    options = get_args(hint) or (hint,)
    return " or ".join(getattr(option, "__name__", repr(option)) for option in options if option is not type(None))
