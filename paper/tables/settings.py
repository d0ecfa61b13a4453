"""The paper's table of best settings, beside those that `muster search` found in the same ranges.

The paper made 128 trials (search and rescue) or 100 (battles) for each model and scenario, and trained each for 8
hours. Ours says how many trials there were and how long; few and short trials show that the search works, little more.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from muster.cli.search import need_optuna
from muster.errors import InputError
from paper.tables.engine import Asked, Grid, Record, Table, say

ENVS = {"rescue-2x4": "rescue:2x4", "m10v10": "battle:m10v10", "w15v17": "battle:w15v17", "zh10v10": "battle:zh10v10"}
"""Name of the scenario that policies are trained on -> the environment."""
METHODS = ("amax", "lp", "quad")
COLUMNS = {
    "rate": "a2c.learning_rate",
    "lambda": "a2c.policy_weight",
    "sigma": "a2c.sigma",
    "n": "a2c.rollout_length",
    "p": "a2c.correlated_steps",
}
"""What the paper prints, in its order."""
OLD_SETTINGS = {
    "a2c.policy_rate": "a2c.learning_rate",
    "a2c.value_rate": "a2c.critic_learning_rate",
    "a2c.return_steps": "a2c.rollout_length",
    "a2c.noise.sigma": "a2c.sigma",
    "a2c.noise.correlated_steps": "a2c.correlated_steps",
}
"""Names in records from before 0.2.0 -> those of today."""
PAPER_TRIALS = {"rescue-2x4": 128, "m10v10": 100, "w15v17": 100, "zh10v10": 100}
LOG_EVERY = 20_000
"""Steps of a row: in environments of 5,000 steps a second, short trials would otherwise have but one."""
REMARK = (
    "rate: of the policy (the paper's battles have one for both networks); n: rollout length; p: correlated steps. "
    "Ours are the trial with the best training reward, in the paper's ranges and with its own update (a2c); "
    "– where nothing is printed, tried or searched. For search and rescue the paper prints none."
)


@dataclass(frozen=True, slots=True)
class Cell:
    """One scenario and method: the best trial of a search, and all of them."""

    scenario: str
    method: str
    trials: int
    minutes: float
    """CPU minutes of a trial."""
    pruner: str
    seed: int
    command: str
    best: int | None
    """Number of the best trial; None if none finished."""
    found: list[dict[str, Any]]
    """Every trial, best first: number, state, value (training reward), minutes, settings."""

    @property
    def best_trial(self) -> dict[str, Any] | None:
        """The best trial."""
        return next((trial for trial in self.found if trial["number"] == self.best), None)


class Settings(Table[Cell]):
    """Best settings."""

    name, cell, key, measured = "settings", Cell, ("scenario", "method"), ("best", "found")
    counts, flags, head, saves_each = ("trials", "minutes", "seed"), ("only",), (), True

    def load(self, path: Path | None = None) -> Record[Cell]:
        """With the names that settings have today."""
        record = super().load(path)
        for trial in (trial for cell in record.cells for trial in cell.found):
            trial["settings"] = {OLD_SETTINGS.get(name, name): value for name, value in trial["settings"].items()}
        return record

    def open(self, path: Path, asked: Asked) -> Record[Cell]:
        """What there is stays until it is searched again."""
        return self.load(path) if path.exists() else Record({}, [])

    def is_known(self, cell: Cell, asked: Asked, committed: Record[Cell]) -> bool:
        """Trials end by the clock: no two searches are the same to the last digit."""
        return False

    def evaluate(self, asked: Asked, record: Record[Cell]) -> Iterator[Cell]:
        """Search for the cells whose names, such as w15v17-quad, match; a search goes on where it was left."""
        names = [(s, m) for s in ENVS for m in METHODS]
        chosen = [(s, m) for s, m in names if fnmatch(f"{s}-{m}", asked.only)]
        if not chosen:
            raise InputError(f"no cell matches {asked.only!r}; there is {', '.join(f'{s}-{m}' for s, m in names)}")
        need_optuna("python -m paper tables settings --rerun")
        for scenario, method in chosen:
            yield search(scenario, method, asked)

    def line(self, cell: Cell) -> str:
        """A cell in a line."""
        return f"{cell.scenario}-{cell.method}: best of {cell.trials} trials is {cell.best}"

    def show(self, record: Record[Cell], markdown: bool) -> Iterator[Grid | str]:
        """One row a scenario and method: the paper's five settings, and ours."""
        paper, rows = paper_settings(), []
        for scenario in ENVS:
            for method in METHODS:
                cell = record.find(scenario=scenario, method=method)
                best = cell.best_trial if cell else None
                printed, tried = paper.get((scenario, method), {}), best["settings"] if best else {}
                pairs = (f"{_value(printed.get(name))} / {_value(tried.get(name))}" for name in COLUMNS.values())
                ended = sum(trial["state"] == "done" for trial in cell.found) if cell else 0
                trials = f"{cell.trials} ({ended} to the end)" if cell else "–"
                rows.append([scenario, method.upper(), *pairs, trials, f"{best['value']:.4f}" if best else "–"])
        columns = ["trained on", "method", *COLUMNS, "our trials", "reward"]
        yield Grid("Best settings of A2C: the paper's / ours", columns, [rows], ("trained on", "method"))
        yield REMARK
        budgets: dict[tuple[int, float], dict[str, None]] = {}
        for cell in sorted(record.cells, key=lambda cell: list(ENVS).index(cell.scenario)):
            budgets.setdefault((cell.trials, cell.minutes), {})[cell.scenario] = None
        for (trials, minutes), names in budgets.items():
            yield f"{', '.join(names)}: {trials} trials of at most {minutes:g} CPU minutes a cell."
        yield (
            f"The paper's: {min(PAPER_TRIALS.values())} to {max(PAPER_TRIALS.values())} trials of 8 hours on a GPU. "
            "Ours are far below; the best trial is then mostly the luckiest."
        )
        yield from (f"made with: {command}" for command in commands_of(record))


def paper_settings() -> dict[tuple[str, str], dict[str, float]]:
    """(scenario, method) -> dotted name -> value, as printed; both networks have the one learning rate."""
    table = tomllib.loads(Path(__file__).with_name("paper_settings.toml").read_text(encoding="utf-8"))
    names = COLUMNS.values()
    return {(s, m): dict(zip(names, row, strict=True)) for s, rows in table.items() for m, row in rows.items()}


def commands_of(record: Record[Cell]) -> list[str]:
    """What makes every cell again: one command for all cells of a scenario that were searched alike."""
    found: dict[tuple[str, int, float, int], list[str]] = {}
    for cell in sorted(record.cells, key=lambda cell: (list(ENVS).index(cell.scenario), cell.trials, cell.minutes)):
        found.setdefault((cell.scenario, cell.trials, cell.minutes, cell.seed), []).append(cell.method)
    return [
        f"python -m paper tables settings --rerun --trials {trials} --minutes {minutes:g} --seed {seed} --only {name}"
        for (scenario, trials, minutes, seed), methods in found.items()
        for name in ([f"'{scenario}-*'"] if len(methods) == len(METHODS) else [f"{scenario}-{m}" for m in methods])
    ]


def search(scenario: str, method: str, asked: Asked) -> Cell:
    """The trials of a study in runs/search-paper, which goes on where it was left."""
    from muster.search.space import StudySettings, load_space
    from muster.search.study import Study, best_of, ranked

    env = ENVS[scenario]
    settings = StudySettings(
        env=(env,),
        space_name="paper",
        space=load_space("paper", env).as_table(),
        run={"inference": method, "log_every": LOG_EVERY},
        trials=asked.trials,
        minutes=asked.minutes,
        pruner="median",
        seed=asked.seed,
    )
    study = Study.open(Path("runs") / "search-paper" / f"{scenario}-{method}", settings, asked.trials)
    if not study.run(say):
        raise KeyboardInterrupt
    trials = ranked(study.trials(), study.better)
    found = [{name: value for name, value in asdict(trial).items() if name != "folder"} for trial in trials]
    best = best_of(trials, study.better)
    command = (
        f"muster search {env} --inference {method} --space paper --log-every {LOG_EVERY} --trials {asked.trials} "
        f"--minutes {asked.minutes:g} --pruner median --seed {asked.seed}"
    )
    number = None if best is None else best.number
    return Cell(scenario, method, asked.trials, asked.minutes, "median", asked.seed, command, number, found)


def _value(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"
