"""`muster search`: many draws of a run's settings, by one process or by many."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import tyro

from muster.cli.search_results import as_json, need_optuna, print_table
from muster.cli.train import Flags, config_of
from muster.errors import InputError
from muster.search.settings import JUDGED_BY, Judge, Pruner, Sampler, StudySettings
from muster.search.space import Space, flat, load_space, nested, setting_hints
from muster.settings import Positive, as_table, build, overlaid, read_toml

if TYPE_CHECKING:
    from muster.search.study import Study

OWN = ("env", "minutes", "steps", "seed")
"""Settings of a run that a study keeps under names of its own."""
USUAL_DRAWS = 128


@dataclass(frozen=True)
class DrawFlags(Flags):
    """What all draws share; a setting that is given is not searched."""

    minutes: Annotated[float | None, Positive()] = None
    """Minutes of CPU time of a draw (1 if neither this nor steps is given)."""
    steps: int | None = None
    """Environment steps of a draw."""
    seed: int = 0
    """Decides the draws, and the first parameters, noise and episodes of each: the same for all."""


@dataclass(frozen=True)
class Search:
    """Search for settings: train with many draws of them, in folders like those of muster train (extra `search`).

    Processes that are given the same --study share its draws; whoever is killed is replaced by whoever comes next.
    """

    settings: Annotated[DrawFlags, tyro.conf.arg(name="")]
    draws: int | None = None
    """Draws altogether, over all processes (128, as in the paper)."""
    space: Annotated[str | None, tyro.conf.arg(metavar="paper|choices|es|FILE.toml")] = None
    """What is drawn from: the paper's ranges, those for the likelihood choices or for evolution, or a file's. None: the
    paper's, unless learner or likelihood say otherwise."""
    sampler: Sampler = "random"
    """random: as in the paper; tpe: near what did well."""
    pruner: Pruner = "none"
    """End draws early whose training reward is below the median of the others, or by Hyperband."""
    judge: Judge = "reward"
    """Compare draws by training reward, as in the paper, or by held-out validation episodes; never by test episodes."""
    first: tuple[Path, ...] = ()
    """TOML files of settings to try before any draw; what one leaves out is drawn."""
    study: Path | None = None
    """Folder of the study; runs/search-ENV-INFERENCE-SPACE-sSEED if not given. Without an env, the study there is
    joined as it is."""
    best: Path | None = None
    """Where to write the best draw's settings, for muster train --config."""
    config: str | None = None
    """TOML file with settings that all draws share; flags given beside it win."""
    show: bool = False
    """Print what there is so far, and play nothing."""
    json: bool = False
    """Print one JSON object instead of a table."""
    given: ClassVar[tuple[str, ...]] = ()
    """Dotted names of the settings that were given."""

    @classmethod
    def from_arguments(cls, arguments: Sequence[str]) -> Search:
        """Parse the flags, on top of the file that --config names, and note which settings are given."""
        file = config_of(arguments)
        table = read_toml(file) if file else {}
        default: Any = tyro.MISSING_NONPROP
        if table:
            worlds = table.get("env", ())
            table = {**table, "env": (worlds,) if isinstance(worlds, str) else worlds}
            default = cls(settings=build(DrawFlags, table, str(file)), config=file)
        command = tyro.cli(cls, prog="muster search", args=list(arguments), default=default)
        named = {name for name, _ in flat(table, str(file))} | named_flags(arguments)
        object.__setattr__(command, "given", tuple(sorted(named - {"env"})))
        return command

    def run(self) -> None:
        """Begin or join the study, play draws until all are taken, print what came of them."""
        need_optuna("muster search")
        study = self.open()
        if not self.show and not self._play(study):
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

        asked = self.asked() if self.settings.env else None
        if asked is None:
            self._refuse_more()
            if self.study is None:
                raise InputError(
                    "name the environment to search on, such as rescue:2x4, or the folder of a --study to join"
                )
        study = Study.open(self.study or self.folder(asked), asked, self.draws)
        for path in self.first:
            study.enqueue(dict(self._point(study.space, path)))
        return study

    def asked(self) -> StudySettings:
        """The study that the flags describe."""
        from muster.envs.registry import make

        flags = self.settings
        for world in flags.env:
            make(world)  # an environment that there is not is refused before a folder is made
        table = as_table(flags)
        values = {name: value for name, value in flat(table, "") if name in self.given and name not in OWN}
        name = self.space or usual_space(values)
        space = load_space(name, flags.env[0])
        if name == "paper" and values.get("learner", "a2c") != "a2c":
            raise InputError(
                f"the paper's ranges are the actor-critic's, not {values['learner']}'s; use another --space"
            )
        return StudySettings(
            env=flags.env,
            space_name=name,
            space=space.without(values).as_table(),
            run=nested(values),
            draws=USUAL_DRAWS if self.draws is None else self.draws,
            minutes=flags.minutes,
            steps=flags.steps,
            sampler=self.sampler,
            pruner=self.pruner,
            judge=self.judge,
            seed=flags.seed,
        )

    def folder(self, asked: StudySettings | None) -> Path:
        """Where a study is kept that names no folder."""
        assert asked is not None
        world = "-".join(asked.env).replace(":", "-").replace(",", "-").replace("=", "").replace("/", "-")
        inference = asked.run.get("inference", "quad")
        return Path("runs") / f"search-{world}-{inference}-{Path(asked.space_name).stem}-s{asked.seed}"

    def _play(self, study: Study) -> bool:
        from muster.search.playing import play_draws

        settings = study.settings
        drawn = "; ".join(f"{name} {what}" for name, what in study.space.drawn.items())
        shared = dict(flat(overlaid(study.space.as_table(), settings.run), ""))
        fixed = ", ".join(f"{k} {v}" for k, v in shared.items() if not isinstance(v, (dict, list)))
        say(f"{study.folder}: draws of {drawn}" + (f"; all with {fixed}" if fixed else ""))
        if settings.space_name == "paper":
            say("the paper's ranges are those of its own update (likelihood played); muster train's default is choices")
        say(f"judged by {JUDGED_BY[settings.judge]}; no test episode is looked at")
        return play_draws(study, say)

    def _write_best(self, study: Study, path: Path) -> None:
        import tomlkit

        from muster.search.results import best_of
        from muster.storage import write_atomically

        draw = best_of(study.draws(), study.better)
        if draw is None:
            raise InputError(f"no draw of {study.folder} is finished: there is no best one to write yet")
        settings = study.settings
        head = (
            f"# Draw {draw.number} of {settings.draws}, {settings.judge} {draw.value:.6g} after {draw.minutes:.3g} CPU "
        )
        head += f"minutes on {' '.join(settings.env)}. Judged by {JUDGED_BY[settings.judge]}.\n"
        text = tomlkit.dumps(settings.portable(study.space.settings(draw.settings)))
        write_atomically(path, (head + text).encode())
        say(f"best settings: {path} (muster train --config {path})")

    def _point(self, space: Space, path: Path) -> list[tuple[str, Any]]:
        """What a file of --first says of the settings that are drawn; it may say nothing else."""
        said = dict(flat(read_toml(path), str(path)))
        for name in said:
            if name not in space.drawn and name != "env":
                raise InputError(f"{path} sets {name}, which this search does not draw: {', '.join(space.drawn)}")
        return [(name, value) for name, value in said.items() if name in space.drawn]

    def _refuse_more(self) -> None:
        """A study that is joined as it is says all but the number of draws itself."""
        fields = ("space", "sampler", "pruner", "judge")
        more = [name for name in fields if getattr(self, name) != getattr(Search, name)] + list(self.given)
        if more:
            flag = more[0].replace("_", "-")
            raise InputError(
                f"--{flag} says what a new study is; name its environment too, or leave the flag out to join one"
            )


def usual_space(values: dict[str, Any]) -> str:
    """The space of a search that names none."""
    learner = values.get("learner") or ("es" if values.get("inference") == "routes" else "a2c")
    if learner not in ("a2c", "es"):
        raise InputError(f"there are no ranges for the learner {learner}; write some and name them: --space FILE.toml")
    if learner == "es":
        return "es"
    return "choices" if values.get("a2c.likelihood") == "choices" else "paper"


def named_flags(arguments: Sequence[str]) -> set[str]:
    """Dotted names of the settings of a run that flags name: a2c.noise.sigma for --a2c.noise.sigma=0.3."""
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
