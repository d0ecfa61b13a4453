"""`muster search`: hyperparameter search over training runs, by one process or many."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import tyro

from muster.cli.flags import Flags, argument, parse
from muster.cli.train import folder_name
from muster.errors import InputError, MissingExtraError
from muster.search.space import (
    JUDGED_BY,
    Judge,
    Pruner,
    Sampler,
    StudySettings,
    flatten,
    load_space,
    setting_hints,
    unflatten,
)
from muster.settings import as_table, overlaid, read_toml

if TYPE_CHECKING:
    from muster.search.study import Study


STUDY_FIELDS = ("env", "minutes", "steps", "seed")
"""Settings of a run that are fields of StudySettings."""
DEFAULT_TRIALS = 128
HELPS = {
    "minutes": "Minutes of CPU time of a trial (1 if neither this nor steps is given).",
    "steps": "Environment steps of a trial.",
    "seed": "Seed of the sampler, and of initial parameters, noise and episodes, which all trials share.",
}
ROWS = 20
"""Trials in the printed table; --json has all."""


@dataclass(frozen=True)
class Search:
    """Search for settings: many trials, each a run as by muster train in its own folder (extra `search`).

    A setting given as a flag is not searched. Processes with the same --study share its trials; a trial whose process
    was killed is resumed by the next.
    """

    settings: Annotated[Flags, tyro.conf.arg(name="")]
    trials: int | None = None
    """Number of trials over all processes (128, as in the paper)."""
    space: Annotated[str | None, tyro.conf.arg(metavar="ppo|paper|es|FILE.toml")] = None
    """Search space: the built-in one for ppo or es, the paper's (for a2c), or a file's. None: the learner's."""
    sampler: Sampler = "random"
    """random: as in the paper; tpe: tree-structured Parzen estimator."""
    pruner: Pruner = "none"
    """Stop trials early whose training reward is below the median of the others, or by Hyperband."""
    judge: Judge = "reward"
    """Rank trials by training reward, as in the paper, or on held-out validation episodes; never on test episodes."""
    study: Path | None = None
    """Folder of the study; runs/search-ENV-INFERENCE-SPACE-sSEED if not given. Without an environment, join the study
    in that folder."""
    best: Path | None = None
    """File for the best trial's settings, for muster train --config."""
    config: str | None = None
    """TOML file with settings that all trials share; flags override it."""
    show: bool = False
    """Print the results so far and run no trial."""
    json: bool = False
    """Print one JSON object instead of a table."""

    explicit: ClassVar[tuple[str, ...]] = ()
    """Dotted names of the settings that flags or the config file set: they are not searched."""

    @classmethod
    def from_arguments(cls, arguments: Sequence[str]) -> Search:
        """Parse the flags, which override the file of --config, and note which settings they set."""
        file = argument(arguments, "--config")
        table = read_toml(file) if file else {}
        space = argument(arguments, "--space")
        learner = load_space(space, "rescue:2x4").fixed.get("learner") if space else None
        command = parse(cls, "muster search", arguments, table, str(file), learner, **HELPS)
        explicit = {name for name, _ in flatten(table, str(file))} | settings_in(arguments)
        object.__setattr__(command, "explicit", tuple(sorted(explicit - {"env"})))
        return command

    def run(self) -> None:
        """Create or join the study, run trials until none is left, print the results."""
        need_optuna("muster search")
        study = self.open()
        if not self.show and not self._run(study):
            print(f"muster: stopped and saved; go on with: muster search --study {study.folder}", file=sys.stderr)
            raise SystemExit(130)
        if self.best is not None:
            self._write_best(study, self.best)
        if self.json:
            print(json.dumps(as_json(study)))
        else:
            print_table(study)

    def open(self) -> Study:
        """Create the study that the flags describe, or join the one in --study."""
        from muster.search.study import Study

        if self.settings.env:
            settings = self.study_settings()
            return Study.open(self.study or default_folder(settings), settings, self.trials)
        self._reject_flags_of_new_study()
        if self.study is None:
            raise InputError(
                "name the environment to search on, such as rescue:2x4, or the folder of a --study to join"
            )
        return Study.open(self.study, None, self.trials)

    def study_settings(self) -> StudySettings:
        """The settings of the study that the flags describe."""
        from muster.envs.registry import make

        flags = self.settings
        for env in flags.env:
            make(env)  # raises for an unknown environment before a folder is made
        values = {
            name: value
            for name, value in flatten(as_table(flags.checked()), "")
            if name in self.explicit and name not in STUDY_FIELDS
        }
        name = self.space or default_space(values)
        space = load_space(name, flags.env[0])
        learner = space.fixed.get("learner")
        if values.get("learner", learner) != learner:
            raise InputError(
                f"the ranges of {name} are those of {learner}, not {values['learner']}'s; use another --space"
            )
        return StudySettings(
            env=flags.env,
            space_name=name,
            space=space.without(values).as_table(),
            run=unflatten(values),
            trials=DEFAULT_TRIALS if self.trials is None else self.trials,
            minutes=flags.minutes,
            steps=flags.steps,
            sampler=self.sampler,
            pruner=self.pruner,
            judge=self.judge,
            seed=flags.seed,
        )

    def _run(self, study: Study) -> bool:
        settings = study.settings
        sampled = "; ".join(f"{name} {domain}" for name, domain in study.space.sampled.items())
        shared = dict(flatten(overlaid(study.space.as_table(), settings.run), ""))
        fixed = ", ".join(f"{k} {v}" for k, v in shared.items() if not isinstance(v, (dict, list)))
        say(f"{study.folder}: trials of {sampled}" + (f"; all with {fixed}" if fixed else ""))
        say(f"judged by {JUDGED_BY[settings.judge]}; no test episode is looked at")
        return study.run(say)

    def _write_best(self, study: Study, path: Path) -> None:
        import tomlkit

        from muster.search.study import best_of
        from muster.storage import write_atomically

        trial = best_of(study.trials(), study.better)
        if trial is None:
            raise InputError(f"no trial of {study.folder} is finished: there is no best one to write yet")
        settings = study.settings
        head = (
            f"# Trial {trial.number} of {settings.trials}, {settings.judge} {trial.value:.6g} after "
            f"{trial.minutes:.3g} CPU minutes on {' '.join(settings.env)}. Judged by {JUDGED_BY[settings.judge]}.\n"
        )
        text = tomlkit.dumps(settings.portable(study.space.settings(trial.settings)))
        write_atomically(path, (head + text).encode())
        say(f"best settings: {path} (muster train --config {path})")

    def _reject_flags_of_new_study(self) -> None:
        """Raise InputError if a flag would change a study that is joined; only the number of trials may change."""
        fields = ("space", "sampler", "pruner", "judge")
        changed = [name for name in fields if getattr(self, name) != getattr(Search, name)] + list(self.explicit)
        if changed:
            flag = changed[0].replace("_", "-")
            raise InputError(
                f"--{flag} says what a new study is; name its environment too, or leave the flag out to join one"
            )


def default_folder(settings: StudySettings) -> Path:
    """Folder of a study without --study."""
    inference, space = settings.run.get("inference", "quad"), Path(settings.space_name).stem
    return Path("runs") / f"search-{folder_name(settings.env)}-{inference}-{space}-s{settings.seed}"


def default_space(values: dict[str, Any]) -> str:
    """Name of the learner's search space."""
    learner = values.get("learner") or ("es" if values.get("inference") == "routes" else "ppo")
    spaces = {"ppo": "ppo", "a2c": "paper", "es": "es"}
    if learner not in spaces:
        raise InputError(f"there are no ranges for the learner {learner}; write some and name them: --space FILE.toml")
    return spaces[learner]


def settings_in(arguments: Sequence[str]) -> set[str]:
    """Dotted names of the training settings that flags set: ppo.sigma for --ppo.sigma=0.3."""
    known = {name.replace("_", "-"): name for name in setting_hints()} | {"from": "from_policy"}
    names = set()
    for word in arguments:
        if not word.startswith("--"):
            continue
        *path, last = word[2:].partition("=")[0].replace("_", "-").split(".")
        for name in (last, last.removeprefix("no-")):
            names.add(known.get(".".join([*path, name]), ""))
    return names - {""}


def say(line: str) -> None:
    """Print to standard error: standard output has the results only."""
    print(line, file=sys.stderr, flush=True)


def need_optuna(feature: str) -> None:
    """Raise MissingExtraError, which names the command that installs it, if `feature` lacks Optuna."""
    try:
        import optuna  # noqa: F401
    except ImportError:
        raise MissingExtraError(feature, "search") from None


def as_json(study: Study) -> dict[str, Any]:
    """Settings and results of a study, best trial first."""
    from muster.search.study import best_of, ranked

    settings, trials = study.settings, study.trials()
    best = best_of(trials, study.better)
    return {
        "study": str(study.folder),
        "env": list(settings.env),
        "space": settings.space_name,
        "sampler": settings.sampler,
        "pruner": settings.pruner,
        "judge": settings.judge,
        "judged_by": JUDGED_BY[settings.judge],
        "minutes": settings.minutes,
        "steps": settings.steps,
        "seed": settings.seed,
        "trials": settings.trials,
        **{state: sum(trial.state == state for trial in trials) for state in ("done", "pruned", "failed", "running")},
        "best": None if best is None else asdict(best),
        "importance": study.importances(),
        "results": [asdict(trial) for trial in ranked(trials, study.better)],
    }


def print_table(study: Study) -> None:
    """Print the trials, best first, and the importance of each setting."""
    from rich.console import Console
    from rich.table import Table

    from muster.search.study import ranked, short

    settings = study.settings
    trials = ranked(study.trials(), study.better)
    length = f"{settings.minutes:g} CPU minutes" if settings.minutes is not None else f"{settings.steps:,} steps"
    count = sum(trial.state in ("done", "pruned", "failed") for trial in trials)
    title = f"{' '.join(settings.env)}: {count} of {settings.trials} trials of {length}, space {settings.space_name}"
    grid: Any = Table(title=title, caption=f"judged by {JUDGED_BY[settings.judge]}; no test episode was looked at")
    names = list(study.space.sampled)
    for column in ("trial", "", settings.judge, "minutes", *(name.partition(".")[2] for name in names)):
        grid.add_column(column, justify="right")
    for trial in trials[:ROWS]:
        results = [f"{trial.value:.4f}" if trial.value is not None else "–"]
        results.append(f"{trial.minutes:.2f}" if trial.minutes is not None else "–")
        sampled = [short(trial.settings[name]) if name in trial.settings else "–" for name in names]
        grid.add_row(str(trial.number), trial.state, *results, *sampled)
    console = Console(width=max(120, Console().width))
    console.print(grid)
    if len(trials) > ROWS:
        console.print(f"and {len(trials) - ROWS} more (--json has all)")
    for trial in trials:
        if trial.why:
            console.print(f"trial {trial.number} failed: {trial.why}", soft_wrap=True)
    importances = study.importances()
    if importances:
        shares = ", ".join(f"{name} {share:.2f}" for name, share in importances.items())
        console.print(f"importance, better half against the rest (PED-ANOVA): {shares}", soft_wrap=True)


def draw_study(folder: Path) -> Any:
    """Optuna's parallel coordinates of all trials, as a matplotlib figure."""
    need_optuna("muster plot search")
    from muster.search.study import Study

    study = Study.open(folder, None)
    finished = sum(trial.state == "done" for trial in study.trials())
    if finished < 2:
        raise InputError(f"{folder} has {finished} finished trials; a picture needs at least 2")
    from optuna.visualization.matplotlib import plot_parallel_coordinate

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Optuna calls this plot experimental
        axes = plot_parallel_coordinate(study.optuna, target_name=study.settings.judge)
    axes.set_title(f"{' '.join(study.settings.env)}: {finished} trials")
    figure: Any = axes.figure
    figure.set_size_inches(1.6 * len(study.space.sampled) + 3, 4.4)
    return figure
