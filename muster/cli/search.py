"""`muster search`: many trials of a run's settings, by one process or by many."""

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
    flat,
    load_space,
    nested,
    setting_hints,
)
from muster.settings import as_table, overlaid, read_toml

if TYPE_CHECKING:
    from muster.search.study import Study


OWN = ("env", "minutes", "steps", "seed")
"""Settings of a run that a study keeps under names of its own."""
DEFAULT_TRIALS = 128
HELPS = {
    "minutes": "Minutes of CPU time of a trial (1 if neither this nor steps is given).",
    "steps": "Environment steps of a trial.",
    "seed": "Of the trials, and of the first parameters, noise and episodes of each: the same for all.",
}
ROWS = 20
"""Trials that the table shows; --json has all."""


@dataclass(frozen=True)
class Search:
    """Search for settings: train with many trials of them, in folders like those of muster train (extra `search`).

    A setting that is given is not searched. Processes that are given the same --study share its trials; a trial whose
    process was killed is resumed by the next.
    """

    settings: Annotated[Flags, tyro.conf.arg(name="")]
    trials: int | None = None
    """Trials altogether, over all processes (128, as in the paper)."""
    space: Annotated[str | None, tyro.conf.arg(metavar="ppo|paper|es|FILE.toml")] = None
    """What is sampled: ranges for ppo or for evolution strategies, the paper's (for a2c), or a file's. None: those of
    the learner."""
    sampler: Sampler = "random"
    """random: as in the paper; tpe: near what did well."""
    pruner: Pruner = "none"
    """End trials early whose training reward is below the median of the others, or by Hyperband."""
    judge: Judge = "reward"
    """Compare trials by training reward, as in the paper, or by held-out validation episodes; never by test ones."""
    study: Path | None = None
    """Folder of the study; runs/search-ENV-INFERENCE-SPACE-sSEED if not given. Without an environment, the study there
    is joined as it is."""
    best: Path | None = None
    """Where to write the best trial's settings, for muster train --config."""
    config: str | None = None
    """TOML file with settings that all trials share; flags given beside it win."""
    show: bool = False
    """Print what there is so far, and run nothing."""
    json: bool = False
    """Print one JSON object instead of a table."""

    given: ClassVar[tuple[str, ...]] = ()
    """Dotted names of the settings that were given."""

    @classmethod
    def from_arguments(cls, arguments: Sequence[str]) -> Search:
        """Parse the flags, on top of the file that --config names, and note which settings are given."""
        file = argument(arguments, "--config")
        table = read_toml(file) if file else {}
        space = argument(arguments, "--space")
        learner = load_space(space, "rescue:2x4").fixed.get("learner") if space else None
        command = parse(cls, "muster search", arguments, table, str(file), learner, **HELPS)
        named = {name for name, _ in flat(table, str(file))} | named_flags(arguments)
        object.__setattr__(command, "given", tuple(sorted(named - {"env"})))
        return command

    def run(self) -> None:
        """Begin or join the study, run trials until all are taken, print the results."""
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
        """The study, begun or joined."""
        from muster.search.study import Study

        if self.settings.env:
            asked = self.asked()
            return Study.open(self.study or self.folder(asked), asked, self.trials)
        self._refuse_more()
        if self.study is None:
            raise InputError(
                "name the environment to search on, such as rescue:2x4, or the folder of a --study to join"
            )
        return Study.open(self.study, None, self.trials)

    def asked(self) -> StudySettings:
        """The study that the flags describe."""
        from muster.envs.registry import make

        flags = self.settings
        for env in flags.env:
            make(env)  # an unknown environment is refused before a folder is made
        values = {
            name: value for name, value in flat(as_table(flags.checked()), "") if name in self.given and name not in OWN
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
            run=nested(values),
            trials=DEFAULT_TRIALS if self.trials is None else self.trials,
            minutes=flags.minutes,
            steps=flags.steps,
            sampler=self.sampler,
            pruner=self.pruner,
            judge=self.judge,
            seed=flags.seed,
        )

    def folder(self, asked: StudySettings) -> Path:
        """Where a study is kept that names no folder."""
        inference = asked.run.get("inference", "quad")
        return Path("runs") / f"search-{folder_name(asked.env)}-{inference}-{Path(asked.space_name).stem}-s{asked.seed}"

    def _run(self, study: Study) -> bool:
        settings = study.settings
        sampled = "; ".join(f"{name} {what}" for name, what in study.space.sampled.items())
        shared = dict(flat(overlaid(study.space.as_table(), settings.run), ""))
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

    def _refuse_more(self) -> None:
        """A study that is joined as it is says all but the number of trials itself."""
        fields = ("space", "sampler", "pruner", "judge")
        more = [name for name in fields if getattr(self, name) != getattr(Search, name)] + list(self.given)
        if more:
            flag = more[0].replace("_", "-")
            raise InputError(
                f"--{flag} says what a new study is; name its environment too, or leave the flag out to join one"
            )


def default_space(values: dict[str, Any]) -> str:
    """The space of a search that names none."""
    learner = values.get("learner") or ("es" if values.get("inference") == "routes" else "ppo")
    spaces = {"ppo": "ppo", "a2c": "paper", "es": "es"}
    if learner not in spaces:
        raise InputError(f"there are no ranges for the learner {learner}; write some and name them: --space FILE.toml")
    return spaces[learner]


def named_flags(arguments: Sequence[str]) -> set[str]:
    """Dotted names of the settings of a run that flags name: ppo.sigma for --ppo.sigma=0.3."""
    known = {name.replace("_", "-"): name for name in setting_hints()} | {"from": "from_policy"}
    found = set()
    for word in arguments:
        if not word.startswith("--"):
            continue
        *path, last = word[2:].partition("=")[0].replace("_", "-").split(".")
        for name in (last, last.removeprefix("no-")):
            found.add(known.get(".".join([*path, name]), ""))
    return found - {""}


def say(line: str) -> None:
    """To standard error, so that standard output stays clean."""
    print(line, file=sys.stderr, flush=True)


def need_optuna(feature: str) -> None:
    """Say how to install what `feature` stands on, where it is missing."""
    try:
        import optuna  # noqa: F401
    except ImportError:
        raise MissingExtraError(feature, "search") from None


def as_json(study: Study) -> dict[str, Any]:
    """All that a study came to."""
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
    """The trials, best first, and which settings matter."""
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
    weight = study.importances()
    if weight:
        told = ", ".join(f"{name} {share:.2f}" for name, share in weight.items())
        console.print(f"what told the better half from the rest (PED-ANOVA): {told}", soft_wrap=True)


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
        warnings.simplefilter("ignore")  # that it is experimental
        axes = plot_parallel_coordinate(study.optuna, target_name=study.settings.judge)
    axes.set_title(f"{' '.join(study.settings.env)}: {finished} trials")
    figure: Any = axes.figure
    figure.set_size_inches(1.6 * len(study.space.sampled) + 3, 4.4)
    return figure
