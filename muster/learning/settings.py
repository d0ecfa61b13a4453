"""Every setting of a training run, checked when made."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Literal, get_args

from muster.assign.settings import Effort, Method, Rounding
from muster.errors import InputError
from muster.learning.learner_settings import ESSettings, ImitationSettings, Schedule, SRLSettings
from muster.models.kinds import Form, Learned, ModelKind, PairScale
from muster.policy.settings import PAPER_NOISE, NoiseSettings
from muster.settings import AtLeast, Between, Positive, check_fields

LearnerKind = Literal["a2c", "es", "srl", "imitate"]
Learn = Literal["capacities", "contributions", "capacities,contributions"]
Likelihood = Literal["played", "innovations", "choices"]


@dataclass(frozen=True)
class Recipe:
    """What the actor-critic does with one likelihood when all is said."""

    envs: int
    return_steps: int
    policy_rate: float
    value_rate: float
    schedule: Schedule
    noise: NoiseSettings
    # Of `choices` only.
    trace: float = 1.0
    minibatches: int = 1
    clip: float = 0.0
    entropy: float = 0.0
    gradient_norm: float = 0.0
    pairs_from: float | None = None


RECIPES: dict[Likelihood, Recipe] = {
    "played": Recipe(256, 5, 1e-3, 1e-3, "constant", PAPER_NOISE),
    "innovations": Recipe(256, 5, 1e-3, 1e-3, "constant", PAPER_NOISE),
    "choices": Recipe(
        envs=64,
        return_steps=32,
        policy_rate=3e-3,
        value_rate=2e-3,
        schedule="cosine",
        noise=NoiseSettings(
            sigma=0.5, correlated_steps=10, innovations="gumbel", task_scores=False, limits=3.0, together=0.0
        ),
        trace=0.95,
        minibatches=8,
        clip=0.2,
        entropy=0.003,
        gradient_norm=1.0,
    ),
}
"""What each likelihood was measured with: the settings of a run that names nothing else."""
OF_CHOICES = ("trace", "minibatches", "clip", "entropy", "gradient_norm", "pairs_from")


@dataclass(frozen=True)
class A2CSettings:
    """Synchronous advantage actor-critic. What is None is what the likelihood was measured with, in brackets."""

    likelihood: Likelihood = "choices"
    """What a decision is taken to have drawn: all noise of the played scores (the paper's Algorithms 1 and 2), this
    decision's innovations, or the choice of each agent's task given the others' and the noise of earlier decisions."""
    envs: Annotated[int | None, AtLeast(1)] = None
    """Environments played side by side (64; played: 256)."""
    return_steps: Annotated[int | None, AtLeast(1)] = None
    """n of the n-step return: decisions between two updates (32; played: 5)."""
    discount: Annotated[float, Between(0, 1)] = 0.999
    """What a reward is worth one decision later."""
    policy_rate: Annotated[float | None, Positive()] = None
    """Learning rate of the scoring model (0.003; played: 0.001)."""
    value_rate: Annotated[float | None, Positive()] = None
    """Learning rate of the critic (0.002; played: 0.001)."""
    policy_weight: Annotated[float, Positive()] = 1.0
    """lambda: weight of the policy loss."""
    optimiser: Literal["adam", "sgd"] = "adam"
    """Of the scoring model and of the critic."""
    schedule: Schedule | None = None
    """Learning rates over the run: a cosine down to 0, or constant (played, as in the paper)."""
    trace: Annotated[float | None, Between(0, 1)] = None
    """TD(lambda)'s share of the longer returns, 1 for the n-step return (choices only: 0.95)."""
    minibatches: Annotated[int | None, AtLeast(1)] = None
    """Parts of what was played, each of which makes a step of the optimisers (choices only: 8)."""
    clip: Annotated[float | None, AtLeast(0)] = None
    """How far the chance of a choice may move before it stops counting; 0: any way (choices only: 0.2)."""
    entropy: Annotated[float | None, AtLeast(0)] = None
    """What the entropy of a choice is worth beside an advantage of deviation 1 (choices only: 0.003)."""
    gradient_norm: Annotated[float | None, AtLeast(0)] = None
    """Longest gradient, longer ones are cut to it; 0: any (choices only: 1)."""
    pairs_from: Annotated[float | None, Between(0, 1)] = None
    """Share of the run after which g is learned too; until then QUAD plays and learns as LP does, with a g of 0, which
    is faster (choices only: 0 with up to five agents, else 0.5). Where g begins as something else it is learned from
    the start."""
    critic: Literal["entity", "conv"] = "entity"
    """entity: pooled networks per object, cheap on a CPU; conv: the paper's residual CNN over the grid."""
    low_precision: bool = False
    """Run the positional model's CNN in bfloat16 while training: half the time on processors that have it, ten
    times as long on others."""
    noise: NoiseSettings = field(default_factory=NoiseSettings)

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def recipe(self) -> Recipe:
        """Every value, those that are not given as the likelihood was measured with."""
        measured = RECIPES[self.likelihood]
        given = {entry.name: getattr(self, entry.name) for entry in fields(Recipe) if entry.name != "noise"}
        needless = [name for name in OF_CHOICES if given[name] is not None]
        if self.likelihood != "choices" and needless:
            raise InputError(f"{needless[0]} belongs to the likelihood choices, not to {self.likelihood}")
        said = {name: value for name, value in given.items() if value is not None}
        found = replace(measured, **said, noise=self.noise.over(measured.noise))
        if self.likelihood != "choices" and found.noise.together:
            raise InputError(f"noise.together belongs to the likelihood choices, not to {self.likelihood}")
        if self.likelihood == "choices" and found.noise.task_scores:
            raise InputError("the likelihood choices explains noise on h alone; leave out noise.task_scores")
        return found

    def complete(self) -> A2CSettings:
        """The same with every value that its likelihood uses."""
        recipe = self.recipe
        used = [entry.name for entry in fields(Recipe) if self.likelihood == "choices" or entry.name not in OF_CHOICES]
        return replace(self, **{name: getattr(recipe, name) for name in used})


@dataclass(frozen=True)
class TrainSettings:
    """What to learn, how, for how long, and where to."""

    env: str | tuple[str, ...]
    """The environment to learn on, such as rescue:2x4; or several of one kind, in turn."""
    inference: Method = "quad"
    """Procedure that turns scores into assignments."""
    model: ModelKind = "dm"
    """dm: direct model; pem: positional embedding model (needs a grid); context: every agent and task sees all others
    (any environment; extra `train` to learn)."""
    learner: LearnerKind | None = None
    """a2c: actor-critic, as in the paper (extra `train`); es: evolution, without torch; srl: structured learning from
    candidates that are tried out, without torch; imitate: does as a `teacher` does. None: a2c, and es for plan, which
    nothing else learns."""
    teacher: str | None = None
    """Whom to imitate (with learner imitate): a rule of the environment, a shipped policy, a run or a file."""
    from_log: str | None = None
    """File of decisions to imitate in place of a teacher: JSON Lines (docs/how-to/logs.md). The env that is named, if
    any, is then one to play, not to learn on."""
    minutes: Annotated[float | None, Positive()] = None
    """Minutes of CPU time to train for (5 if neither this nor steps is given)."""
    steps: Annotated[int | None, AtLeast(1)] = None
    """Environment steps to train for, and as many more as complete the last update (of es, the episodes of all
    candidates)."""
    seed: Annotated[int, AtLeast(0)] = 0
    """Decides the first parameters, the noise and the episodes."""
    from_policy: str | None = None
    """Policy to go on from (--from): shipped, a run or a file, of the same kind of environment. What the model reads or
    scores beyond it starts at zero; critic and optimisers start anew."""
    learn: Learn | None = None
    """What the model learns in place of what the env gives: how much each task takes (capacities), how much of it
    each agent uses up (contributions), or both (LP and QUAD, direct model)."""
    unlimited: bool = False
    """Leave the environment's capacities out: any number of agents may take a task."""
    pair_features: bool = True
    """Let the model see relative positions too, where the environment offers them as a choice; the paper's does not."""
    prior: bool = True
    """Let the model correct the environment's own scores, where it shows some, rather than learn from nothing."""
    centred: bool = False
    """Let the model read positions from the middle of all that live (battles); the paper's reads those on the map."""
    form: Form | None = None
    """plain: all features; local: no positions on the map, h corrects -0.5·distance (or the environment's prior), and g
    fades with distance (envs that say what their distances are). None: local for a context model where it can be,
    otherwise plain."""
    pair_scale: PairScale | None = None
    """QUAD: g times agents in training / agents now (size), times exp(-distance) (fade), or as it is (none). None: fade
    with form local, else size; none where the actor-critic learns on several sizes."""
    effort: Effort | None = None
    """How hard the inference tries; None: as the paper's for LP (its relaxation, rounded), fast for QUAD."""
    rounding: Rounding = "strict"
    """Whether a capacity may never be exceeded, or by its last agent as in the authors' code."""
    assign_all: bool | None = None
    """Assign every agent that fits somewhere; None: unless idling can be a good choice in this environment."""
    log_every: Annotated[int, AtLeast(1)] = 100_000
    """Environment steps between two rows of the log; with a2c the best policy is the one with the best row."""
    checkpoint_every: Annotated[int, AtLeast(1)] = 500_000
    """Environment steps between two checkpoints."""
    evaluate_every: Annotated[int, AtLeast(1)] = 2_000_000
    """Environment steps between two evaluations on held-out episodes."""
    evaluate_episodes: Annotated[int | None, AtLeast(1)] = None
    """How many of them; None: 500, or 20 for a positional model on more than 1,000 cells (battles), which is slow."""
    workers: Annotated[int | Literal["auto"] | None, AtLeast(1)] = None
    """Processes that play; auto: one a core. The result is the same to the last bit, whatever their number. None: 1, or
    one for every core of the cluster."""
    cluster: str | None = None
    """Ray cluster that has the workers (extra `cluster`): local for one on this machine, or its address."""
    a2c: A2CSettings = field(default_factory=A2CSettings)
    es: ESSettings = field(default_factory=ESSettings)
    imitate: ImitationSettings = field(default_factory=ImitationSettings)
    srl: SRLSettings = field(default_factory=SRLSettings)

    def __post_init__(self) -> None:
        check_fields(self)
        if self.learner is None:
            usual = "imitate" if self.teacher or self.from_log else "es" if self.inference == "routes" else "a2c"
            object.__setattr__(self, "learner", usual)
        object.__setattr__(self, "a2c", self.a2c.complete())
        if len(self.envs) == 1:
            object.__setattr__(self, "env", self.envs[0])
        if not self.envs or len(set(self.envs)) < len(self.envs):
            raise InputError(
                f"name one environment to learn on, or several different ones; got {', '.join(self.envs) or 'none'}"
            )
        shares = {
            "a2c": ("a2c.envs", self.a2c.recipe.envs),
            "es": ("es.episodes", self.es.episodes),
            "srl": ("srl.states", self.srl.states),
            "imitate": ("imitate.envs", self.imitate.envs),
        }
        assert self.learner is not None
        what, shared = shares[self.learner]
        if shared < len(self.envs):
            raise InputError(f"{what} are shared out among the environments: {shared} are too few for {len(self.envs)}")
        if self.minutes is not None and self.steps is not None:
            raise InputError("give the length of the run as minutes or as steps, not both")
        if self.inference == "routes" and self.learner != "es":
            raise InputError("costs of routes are learned by evolution alone; use --learner es, or another --inference")
        self._check_teaching()
        self._check_limits()
        if self.learner == "es" and self.model != "dm":
            raise InputError("evolution tunes the direct model only; use --model dm or --learner a2c")
        if self.learner == "srl" and self.model != "dm":
            raise InputError("structured learning trains the direct model only; use --model dm or --learner a2c")

    def _check_teaching(self) -> None:
        """Imitation has a teacher or a log of decisions; nothing else has."""
        if self.learner != "imitate" and (self.teacher or self.from_log):
            raise InputError(f"a teacher or a log is for --learner imitate; {self.learner} learns from rewards")
        if self.learner == "imitate" and not (self.teacher or self.from_log):
            raise InputError(
                "imitation needs a teacher: add --teacher POLICY, such as a rule of the environment, or --from-log"
            )
        if self.teacher and self.from_log:
            raise InputError("a log says what was done: leave out --teacher, or --from-log")
        if self.from_log and len(self.envs) > 1:
            raise InputError(f"a log is of one environment; name that one, or none, not {', '.join(self.envs)}")
        if self.from_log and "," in self.from_log:
            raise InputError(f"the name of a log must have no comma, got {self.from_log!r}")

    def _check_limits(self) -> None:
        what = f"--learn {self.learn}" if self.learn else "--unlimited"
        if (self.learn or self.unlimited) and self.inference not in ("lp", "quad"):
            raise InputError(f"{what} is about capacities, which {self.inference} does not weigh; use lp or quad")
        if self.learn and self.unlimited:
            raise InputError("--unlimited leaves capacities out, so there are none to learn; leave out one of the two")
        if self.learn and self.model != "dm":
            raise InputError(f"{what} needs the direct model; use --model dm")
        if self.learn and self.learner not in ("a2c", "es"):
            raise InputError(f"{what} is for the learners es and a2c; {self.learner} learns scores alone")
        if self.learn and self.learner == "a2c" and self.a2c.likelihood != "choices":
            raise InputError(f"{what} is learned by the actor-critic with the likelihood choices, or by --learner es")

    @property
    def learned(self) -> tuple[Learned, ...]:
        """What is learned beside scores."""
        return tuple(name for name in get_args(Learned) if name in (self.learn or "").split(","))

    @property
    def envs(self) -> tuple[str, ...]:
        """The environments to learn on."""
        return (self.env,) if isinstance(self.env, str) else self.env


def refuse_others(settings: TrainSettings, given: Iterable[tuple[str, str]]) -> None:
    """Raise InputError for a table of settings, with the words that gave it, of another learner than the run's own."""
    for table, words in given:
        if table in get_args(LearnerKind) and table != settings.learner:
            raise InputError(f"{words} is for the learner {table}, but this run learns by {settings.learner}")
