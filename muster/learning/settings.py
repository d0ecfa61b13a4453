"""Settings of a training run, checked when made."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar, Literal, NamedTuple, get_args

from muster.assign.settings import Method
from muster.custom import expanded, full_name, is_custom
from muster.errors import InputError, MusterError
from muster.models import Form, Learned, ModelKind
from muster.policy.settings import NoiseSettings
from muster.settings import AtLeast, Between, Positive, check_fields

LearnerName = Literal["ppo", "a2c", "es", "srl", "imitation"]
NUM_ENVS = {"ppo": 64, "a2c": 256, "srl": 32, "imitation": 128}
"""Default number of parallel environments, by learner."""
CUSTOM_ENVS = 64
"""Default number of parallel environments of a custom learner."""
ES_SIZES = {"pairs": 32, "episodes": 16}
"""Default sizes of an update of es, where there is time for many updates."""
CORRELATED_STEPS = 10
"""Decisions for which ppo keeps the noise of one."""
LOG_EVERY = 100_000
"""Environment steps between two rows of the log, unless chosen by speed or by a length in steps."""
Learn = Literal["capacities", "contributions", "capacities,contributions"]
LARGEST_SEED = 2**32 - 1
"""Largest seed of a run or a search: none of their sets of episodes is the sealed one (`muster.rng`)."""


@dataclass(frozen=True)
class PPOSettings:
    """PPO on the agents' choices: each agent's task given the others' and the noise of earlier decisions."""

    rollout_length: Annotated[int, AtLeast(1)] = 32
    """Decisions in each environment between two updates."""
    discount: Annotated[float, Between(0, 1)] = 0.999
    """Discount factor of rewards, for each decision."""
    learning_rate: Annotated[float, Positive()] = 3e-3
    """Initial learning rate of the scoring model; a cosine schedule takes it to 0."""
    gae_lambda: Annotated[float, Between(0, 1)] = 0.95
    """Lambda of generalised advantage estimation; 1: n-step returns."""
    minibatches: Annotated[int, AtLeast(1)] = 8
    """Minibatches of a rollout, one step of the optimisers each."""
    clip_range: Annotated[float, AtLeast(0)] = 0.2
    """Clip range of a choice's probability ratio: its gradient stops outside 1 ± clip_range; 0: no clipping."""
    entropy_coef: Annotated[float, AtLeast(0)] = 0.003
    """Entropy coefficient: weight of a choice's entropy relative to advantages of standard deviation 1."""
    sigma: Annotated[float, Positive()] = 0.5
    """Exploration: 10 times the standard deviation of a decision's Gumbel noise on a score, remembered for 10
    decisions."""

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def noise(self) -> NoiseSettings:
        """Exploration noise; under Gumbel noise an agent's choice is a softmax."""
        return NoiseSettings(self.sigma, CORRELATED_STEPS, "gumbel", task_scores=False)


@dataclass(frozen=True)
class A2CSettings:
    """A2C as in the paper (Algorithms 1 and 2): the scores with their noise are the action."""

    discount: ClassVar[float] = 0.999
    """Discount factor of rewards, for each decision."""
    rollout_length: Annotated[int, AtLeast(1)] = 5
    """n of the n-step return: decisions in each environment between two updates."""
    learning_rate: Annotated[float, Positive()] = 1e-3
    """Learning rate of the scoring model; constant."""
    critic_learning_rate: Annotated[float, Positive()] = 1e-3
    """Learning rate of the critic; constant."""
    policy_weight: Annotated[float, Positive()] = 1.0
    """lambda: weight of the policy loss."""
    optimiser: Literal["adam", "sgd"] = "adam"
    """Optimiser of scoring model and critic."""
    sigma: Annotated[float, Positive()] = 1.0
    """Exploration: correlated_steps times the standard deviation of a decision's normal noise on a score."""
    correlated_steps: Annotated[int, AtLeast(1)] = 5
    """Exploration: decisions for which the noise of one is remembered."""

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def noise(self) -> NoiseSettings:
        """Exploration noise."""
        return NoiseSettings(self.sigma, self.correlated_steps)


@dataclass(frozen=True)
class ESSettings:
    """Evolution strategies: antithetic pairs, common episodes, rank-shaped fitness, Adam."""

    pairs: Annotated[int, AtLeast(0)] = 0
    """Antithetic pairs of candidates per update; 0: 32, or fewer where that leaves few updates in the run's length."""
    episodes: Annotated[int, AtLeast(0)] = 0
    """Episodes of each candidate, the same for all; 0: 16, or fewer likewise."""
    sigma: Annotated[float | None, Positive()] = None
    """Standard deviation of the candidates' perturbations; None: 0.07, for a linear model 0.3."""
    learning_rate: Annotated[float | None, Positive()] = None
    """Initial learning rate of Adam, which falls to 0; None: 0.03, for a linear model 0.15."""

    def __post_init__(self) -> None:
        check_fields(self)

    def of_model(self, kind: str) -> ESSettings:
        """The settings with sigma and learning rate of this kind of model where they are open."""
        sigma, learning_rate = (0.3, 0.15) if kind == "linear" else (0.07, 0.03)
        return replace(self, sigma=self.sigma or sigma, learning_rate=self.learning_rate or learning_rate)


@dataclass(frozen=True)
class ImitationSettings:
    """Imitation of a teacher that labels every visited state (DAgger), or of a log of decisions."""

    loss: Literal["fenchel-young", "cross-entropy"] = "fenchel-young"
    """fenchel-young: the solver's answers to perturbed scores are to be the teacher's, all agents at once;
    cross-entropy: each agent's softmax over all tasks, the others on the teacher's."""
    learning_rate: Annotated[float, Positive()] = 3e-3
    """Learning rate of Adam after 50 warm-up updates; a cosine schedule takes it to 0."""
    states: Literal["mixed", "student", "regret"] = "mixed"
    """States in which the student learns. mixed: the teacher acts in a quarter of the environments, the student with
    noise on h in a quarter, the student in the others; student: it alone acts; regret: likewise, and decisions are
    weighted by their regret under the teacher's own plan (teachers with an expected return: topline and
    routes-distance of rescue)."""

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class TrainSettings:
    """Settings of a training run: environments, learner, inference, model, length, validation, workers."""

    env: str | tuple[str, ...]
    """The environment to learn on, such as rescue:2x4; or several of one kind, in turn."""
    learner: LearnerName | str | None = None
    """ppo: PPO on the agents' choices; a2c: as in the paper; es: evolution strategies; srl: structured reinforcement
    learning from candidates that are tried out; imitation: of a `teacher` or a log. None: imitation where there is one
    of these, es for routes and linear models, else ppo. package.module:Class is a custom one (docs/research/extend.md),
    and so with model and inference."""
    inference: Method | str | None = None
    """Procedure that turns scores into assignments. None: quad; for a linear model lp, unless the environment tells
    something of two tasks."""
    minutes: Annotated[float | None, Positive()] = None
    """Minutes of CPU time to train for (5 if neither this nor steps is given)."""
    steps: Annotated[int | None, AtLeast(1)] = None
    """Environment steps to train for, and as many more as complete the last update (of es, the episodes of all
    candidates)."""
    seed: Annotated[int, Between(0, LARGEST_SEED)] = 0
    """Seed of initial parameters, noise and episodes."""
    model: ModelKind | str | None = None
    """dm: direct model; pem: positional embedding model (needs a grid; extra `torch`); context: every agent and task
    sees all others (any environment; extra `torch` to learn); linear: the environment's prior plus a weighted sum of
    features, which a person can read. None: linear for a custom environment with a prior, where learner or settings do
    not ask for another, else dm."""
    teacher: str | None = None
    """Policy to imitate: a baseline of the environment, a shipped policy, a run or a file."""
    from_log: str | None = None
    """File of decisions to imitate in place of a teacher: JSON Lines (docs/how-to/logs.md). The environment that is
    named, if any, is then used for validation only."""
    from_policy: str | None = None
    """Policy to start from (--from): shipped, a run or a file, of the same kind of environment. What the model reads or
    scores beyond it starts at zero, and so do critic and optimisers."""
    learn: Learn | None = None
    """Limits that the model learns in place of the environment's: capacities of tasks, contributions of agents, or
    both (LP and QUAD, direct model)."""
    prior: bool = True
    """Let the model correct the environment's own scores, where it has some."""
    form: Form | None = None
    """How the model reads positions. plain: on the map, and relative ones where the environment has them as an option;
    paper: on the map alone; centred: as plain, but relative to the mean of all that are alive (battles); local: none on
    the map, h corrects -0.5·distance (or the environment's prior), and g fades with distance (environments that name
    their distances). None: local for a context model where possible, otherwise plain."""
    assign_all: bool | None = None
    """Assign every agent that fits somewhere; None: unless idling can be a good choice in this environment."""
    num_envs: Annotated[int, AtLeast(0)] = 0
    """Environments run side by side (all learners but es); 0: 64 with ppo, 256 with a2c, 32 with srl, 128 with
    imitation, or fewer where that leaves ppo or srl few updates in the run's length."""
    log_every: Annotated[int, AtLeast(0)] = 0
    """Environment steps between two rows of the log, each with a checkpoint; with ppo and a2c the best row's policy is
    one of those that validation chooses among. 0: about every 5 seconds by measured speed; of a run whose length is
    given in steps, every hundredth of it."""
    evaluate_episodes: Annotated[int | None, AtLeast(1)] = None
    """Validation episodes at each size; None: as many as a quarter of the training time allows, from 16 to 500, and
    100 in a run whose length is given in steps."""
    validate_on: tuple[str, ...] | None = None
    """Environments on which the run's end is validated beside those of the training; None: of 2 and 5 times the size,
    where the environment comes in sizes."""
    workers: Annotated[int | Literal["auto"] | None, AtLeast(1)] = None
    """Processes that run the environments (ppo, a2c, es); auto: one a core. The result is the same to the last bit,
    whatever their number. None: 1, or one for every core of the cluster."""
    cluster: str | None = None
    """Ray cluster that has the workers (extra `cluster`): local for one on this machine, or its address."""
    ppo: PPOSettings = field(default_factory=PPOSettings)
    a2c: A2CSettings = field(default_factory=A2CSettings)
    es: ESSettings = field(default_factory=ESSettings)
    imitation: ImitationSettings = field(default_factory=ImitationSettings)

    def __post_init__(self) -> None:
        check_fields(self)
        envs = tuple(expanded("environment", env) for env in self.envs)
        object.__setattr__(self, "env", envs[0] if len(envs) == 1 else envs)
        if not self.envs or len(set(self.envs)) < len(self.envs):
            raise InputError(
                f"name one environment to learn on, or several different ones; got {', '.join(self.envs) or 'none'}"
            )
        self._choose_open()
        if 0 < self.shared < len(self.envs):
            raise InputError(
                f"{'es.episodes' if self.learner == 'es' else 'num_envs'} are divided among the environments: "
                f"{self.shared} are too few for {len(self.envs)}"
            )
        if self.minutes is not None and self.steps is not None:
            raise InputError("give the length of the run as minutes or as steps, not both")
        if self.inference == "routes" and self.learner in ("ppo", "a2c", "srl", "imitation"):
            raise InputError("costs of routes are learned by evolution strategies only; use --learner es")
        self._check_teacher()
        self._check_limits()
        fits = self.model in ("dm", "linear") or (self.learner == "es" and is_custom(str(self.model)))
        if self.learner in ("es", "srl") and not fits:
            raise InputError(
                f"{self.learner} trains direct and linear models; use --model dm or linear, or --learner ppo"
            )

    def _choose_open(self) -> None:
        """Choose model, learner and inference where the settings leave them open, by the environment's observations.

        With a prior, a linear correction of it learned by ES is the best start on problems of new users
        (docs/choose.md); without one, and in the built-in environments, it is a direct model learned by PPO.
        """
        for name, known in (("model", ModelKind), ("learner", LearnerName), ("inference", Method)):
            if (text := getattr(self, name)) is not None:
                object.__setattr__(self, name, full_name(name, text, get_args(known)))
        model, learner, inference = self.model, self.learner, self.inference
        if model is None:
            corrects = self.prior and learner in (None, "es") and inference != "routes"
            needs_dm = self.teacher or self.from_log or self.learn or self.form
            model = _model_for(self.envs[0], self.from_policy) if corrects and not needs_dm else "dm"
        if learner is None:
            usual: LearnerName = "es" if inference == "routes" or model == "linear" or _is_plain(model) else "ppo"
            learner = "imitation" if self.teacher or self.from_log else usual
        if inference is None:
            inference = _inference_for(self.envs[0], self.from_policy) if model == "linear" else "quad"
        chosen = {"model": model, "learner": learner, "inference": inference, "es": self.es.of_model(model)}
        for name, value in chosen.items():
            object.__setattr__(self, name, value)

    def _check_teacher(self) -> None:
        """Raise InputError unless imitation has one teacher or one log, and other learners have neither."""
        if self.learner != "imitation" and (self.teacher or self.from_log):
            raise InputError(f"a teacher or a log is for --learner imitation; {self.learner} learns from rewards")
        if self.learner == "imitation" and not (self.teacher or self.from_log):
            raise InputError(
                "imitation needs a teacher: add --teacher POLICY, such as a baseline of the environment, or --from-log"
            )
        if self.teacher and self.from_log:
            raise InputError("a log says what was done: leave out --teacher, or --from-log")
        if self.from_log and len(self.envs) > 1:
            raise InputError(f"a log is of one environment; name that one, or none, not {', '.join(self.envs)}")
        if self.from_log and "," in self.from_log:
            raise InputError(f"the name of a log must have no comma, got {self.from_log!r}")

    def _check_limits(self) -> None:
        """Raise InputError unless model, inference and learner can learn the limits of `learn`."""
        if self.learn and self.inference not in ("lp", "quad"):
            raise InputError(
                f"--learn {self.learn} is about capacities, which {self.inference} does not weigh; use lp or quad"
            )
        if self.learn and self.model != "dm":
            raise InputError(f"--learn {self.learn} needs the direct model; use --model dm")
        if self.learn and self.learner not in ("ppo", "es"):
            raise InputError(f"--learn {self.learn} is for the learners ppo and es; {self.learner} learns scores alone")

    @property
    def learned(self) -> tuple[Learned, ...]:
        """Limits that are learned beside scores."""
        return tuple(name for name in get_args(Learned) if name in (self.learn or "").split(","))

    @property
    def envs(self) -> tuple[str, ...]:
        """The environments to learn on."""
        return (self.env,) if isinstance(self.env, str) else self.env

    @property
    def only_log(self) -> bool:
        """Whether a log is imitated without another environment, so that some of its lines are held out."""
        return self.from_log is not None and self.envs[0].startswith("log:")

    def filled(self, log_every: int = LOG_EVERY, **sizes: int) -> TrainSettings:
        """The settings with these or the default sizes of an update, and this log_every, where they are open."""
        if self.log_every == 0 and self.steps is not None:
            log_every = max(1, self.steps // 100)
        default = ES_SIZES if self.learner == "es" else {"num_envs": NUM_ENVS.get(str(self.learner), CUSTOM_ENVS)}
        sizes = {name: self.update_sizes[name] or size for name, size in (default | sizes).items()}
        return replace(self.with_sizes(**sizes), log_every=self.log_every or log_every)

    @property
    def update_sizes(self) -> dict[str, int]:
        """Sizes of an update: pairs and episodes of es, num_envs of other learners; 0 where open."""
        if self.learner == "es":
            return {"pairs": self.es.pairs, "episodes": self.es.episodes}
        return {"num_envs": self.num_envs}

    def with_sizes(self, **sizes: int) -> TrainSettings:
        """The settings with updates of these sizes, at least one slot or episode an environment."""
        divided = "episodes" if self.learner == "es" else "num_envs"
        sizes[divided] = max(sizes[divided], len(self.envs))
        if self.learner == "es":
            return replace(self, es=replace(self.es, **sizes))
        return replace(self, num_envs=sizes["num_envs"])

    @property
    def shared(self) -> int:
        """Slots (of es: episodes of a candidate) that the environments share; 0 where open."""
        return self.es.episodes if self.learner == "es" else self.num_envs


def refuse_others(settings: TrainSettings, given: Iterable[tuple[str, str]]) -> None:
    """Raise InputError for settings of another learner than the run's own; `given` has learner and argument of each."""
    for learner, name in given:
        if learner in get_args(LearnerName) and learner != settings.learner:
            raise InputError(f"{name} is for the learner {learner}, but this run learns by {settings.learner}")


class Shown(NamedTuple):
    """Which scores of its own a custom environment observes."""

    prior: bool
    task_pairs: bool
    """Whether there are task-pair features or a task_prior."""


def shown_by(env: str) -> Shown:
    """Priors and task pairs of a custom environment; none for built-in ones and those that cannot be made."""
    from muster.envs.registry import BUILT_IN, kind_of, make

    with suppress(MusterError):
        if kind_of(env) not in BUILT_IN:
            observation = make(env).observe()
            task_pairs = observation.task_prior is not None or observation.task_pair_features.shape[-1] > 0
            return Shown(observation.prior is not None, task_pairs)
    return Shown(False, False)


def _model_for(env: str, from_policy: str | None) -> ModelKind:
    """Kind of the policy that the run starts from; otherwise linear where there is a prior to correct, else dm."""
    if from_policy is not None:
        from muster.policy.names import load

        with suppress(MusterError):
            return "linear" if load(from_policy).spec.kind == "linear" else "dm"
        return "dm"
    return "linear" if shown_by(env).prior else "dm"


def _inference_for(env: str, from_policy: str | None) -> str:
    """Default inference of a linear model: quad only where the environment observes pairs of tasks."""
    if from_policy is not None:
        from muster.policy.names import load

        with suppress(MusterError):
            return load(from_policy).inference.method
    return "quad" if shown_by(env).task_pairs else "lp"


def _is_plain(model: str) -> bool:
    """Whether a model is a custom one without torch, which only evolution strategies can train."""
    from muster.models.custom import needs_torch

    return is_custom(model) and not needs_torch(model)
