"""`python -m paper train`: the runs of the tables, each one `muster train`, resumed if it was cut short.

Runs are made in runs/paper. What a finished run leaves for the record: its best policy, settings and log, under
paper/rescue, paper/battle, paper/pursuit, paper/fleet, paper/routes, paper/context, paper/capacities or paper/outside.
The settings in run folders from before 0.2.0 have the names of their time; these commands have those of today.
"""

from __future__ import annotations

import fnmatch
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from paper.rescue_runs import rescue_runs
from paper.run_names import PAPER

RUNS = Path("runs") / "paper"

# By scenario, model and learner; the same time for every procedure, but for PPO's of PPO_MINUTES.
BATTLE_MINUTES = {
    ("w15v17", "dm", "es"): 6.0,
    ("m10v10", "dm", "es"): 3.0,
    ("zh10v10", "dm", "es"): 3.0,
    ("w15v17", "dm", "ppo"): 2.0,
    ("m10v10", "dm", "ppo"): 1.0,
    ("zh10v10", "dm", "ppo"): 1.5,
    ("w15v17", "dm", "a2c"): 3.0,
    ("m10v10", "dm", "a2c"): 1.0,
    ("zh10v10", "dm", "a2c"): 2.0,
}
PPO_MINUTES = {("w15v17", "quad"): 5.0, ("m10v10", "lp"): 1.5, ("zh10v10", "lp"): 2.5}
BATTLE_SEEDS = {"quad": 3, "lp": 3, "amax": 1}
# The paper's update. Better than eight draws from its ranges (paper/search), then by hand on training reward and
# validation battles of w15v17: many small updates (after 250,000 decisions the reward was 0.17 with 64 environments and
# 0.00 with 256) and a sigma of 0.3, since policies that learn with 0.5 are less good without noise (0.81 against 0.90).
BATTLE_A2C = ["--num-envs", "64", "--a2c.learning-rate", "0.0007", "--a2c.sigma", "0.3"]
# Small and many generations did best on validation battles of the scenario trained on (paper/search).
BATTLE_ES = ["--es.episodes", "4", "--es.learning-rate", "0.05"]
# Positions from the middle of the battle: the training reward is the same, but the policies generalise further (chosen
# on m25v25 and m40v40, sizes in no table). The runs on zh10v10 were made before and read positions on the map.
CENTRED = {"m10v10", "w15v17"}

# Structured learning has its defaults in search and rescue, which were chosen on validation episodes and battles in
# runs of half a minute (seed 90): a temperature of 1 rather than 0.5. With marines, after six minutes (seed 90, 1,000
# battles of evaluation seed 777) it won 0.963 with three times the states and noise that is kept for five decisions,
# 0.923 with the usual eight decisions, and 0.87 with the usual states too. The recorded runs kept it for five; that is
# no setting any more.
SRL_MINUTES = {("rescue", "5x10", "quad"): 1.0, ("battle", "m10v10", "lp"): 5.8}
SRL_MORE = {"battle": ["--num-envs", "96", "--form", "centred"]}
SRL_SEEDS = 3

# The same time for every procedure. ES has its default settings (on validation episodes smaller and more generations
# were no better). "three": three pursuers are needed to catch but there are two for an evader, so that they must agree
# whom to hunt first.
PURSUIT_MINUTES = {("", "es"): 1.5, ("three", "es"): 1.0}
PURSUIT_SEEDS = 3

# Fleets are learned on the small city of our own alone: no recorded day, and nothing of the large one. Beside the usual
# cost of a metre there are two lower ones: at the usual one no vehicle drives empty in the small city: nothing is
# learned about when to, and in the large one policies then did it too often (validation days).
FLEET_ENVS = ["fleet:24,city=small", "fleet:24,city=small,cost=0.0042", "fleet:24,city=small,cost=0.004"]
FLEET_MINUTES = {
    ("lp", "", "es"): 1.2,
    ("lp", "again", "es"): 1.2,
    ("lp", "noprior", "es"): 1.2,
    ("quad", "", "es"): 2.0,
    ("quad", "noprior", "es"): 2.0,
    ("lp", "", "ppo"): 3.0,
}
FLEET_SEEDS = 3
# Many small generations. A correction of the prior begins at 0 and needs larger steps to become as large as the prior.
# QUAD needs smaller ones: a g is added up over all pairs of requests that are taken, so that noise of 0.15 on g alone
# leaves 46.3 of a profit of 82.4, on h alone 74.7 (paper/fleet/noise.py), and candidates differ by little else.
FLEET_ES = ["--es.pairs", "16", "--es.episodes", "9"]
# "again": the same command with the compiled core, and ES on one thread: 260 to 309 updates in its time, not 125.
FLEET_STEPS = {
    ("lp", ""): ["--es.sigma", "0.15", "--es.learning-rate", "0.06"],
    ("lp", "again"): ["--es.sigma", "0.15", "--es.learning-rate", "0.06"],
    ("lp", "noprior"): ["--no-prior"],
    ("quad", ""): ["--es.sigma", "0.04", "--es.learning-rate", "0.03"],
    ("quad", "noprior"): ["--no-prior"],
}
# As many environments as three environments can share.
FLEET_PPO = ["--num-envs", "129", "--ppo.discount", "0.99"]


# Costs of routes. In mud chosen on validation episodes, seed 90, 0.5 to 0.7 minutes: 17.84 steps with these, 18.01 with
# the defaults, 18.17 with a sigma of 0.2, when mud was still seen in units of eight steps; 17.42 now. Costs that do not
# read positions on the map generalise further: 17.38, 12.71 and 7.80 steps at 2x4, 5x10 and 20x40 (seed 90, 300
# episodes of seed 9001).
# On dry ground distances are exact, and those steps led away from them, 1.5 and 5.8 % above the optimum at 2x4 and 5x10
# after half a minute; seen on the table's own episodes, and answered by steps so small that little can be lost.
ROUTES_MINUTES = {"": 0.2, "mud": 1.5}
ROUTES_SEEDS = 3
ROUTES_ES = {
    "": ["--es.learning-rate", "0.002", "--es.sigma", "0.02", "--es.episodes", "8"],
    "mud": ["--es.learning-rate", "0.1", "--es.sigma", "0.1", "--es.episodes", "8", "--form", "local"],
}

# Models that see everyone. In search and rescue they imitate the planner of routes on sizes up to 5x10; rates of 0.005
# and 0.01 did alike, and better than 0.002, on episodes of no table, one CPU minute each. Six minutes: 11.52, 8.87 and
# 11.25 steps at 2x4, 5x10 and 20x40 on grid 32 (seed 90, evaluation seed 777); the three runs of 2.5 minutes of before
# took 11.59, 9.00 and 11.48, and one that learned from its regrets alone for three 11.66, 9.18 and 11.61. In other
# environments they imitate the shipped direct model, beside a direct one that does the same in the same time.
SMALL = [f"rescue:{size}" for size in ("2x4", "3x6", "4x8", "5x10")]
CONTEXT_SEEDS = 3
CONTEXT_TEACHERS = {
    "battle-m10v10-lp": "battle:m10v10",
    "fleet-24-lp": "fleet:24,city=small",
    "pursuit-4x2-quad": "pursuit:4x2",
}
CONTEXT_LOG = ["--log-every", "20000"]


# Battles with the capacities and contributions that the environment gives, with learned ones and with none:
# the same short time for each. As the runs of Tables 2 and 3 otherwise.
CAPACITIES: dict[str, list[str] | None] = {
    "given": [],
    "learned": ["--learn", "capacities"],
    "contributions": ["--learn", "contributions"],
    "both": ["--learn", "capacities,contributions"],
    "none": None,
}
CAPACITIES_SCENARIOS = ("w15v17", "zh10v10")
CAPACITIES_MINUTES = 0.5
CAPACITIES_SEEDS = 3


# Problems that muster was not made for, by the name of their runs: as a new user would, with the time and nothing else.
# Satellites are validated at home alone: an episode of the paper's size takes seconds.
SATELLITES = "examples.outside.satellites:Constellation"
OUTSIDE = {
    "field-6x18": ["examples.field_service:FieldService", "--minutes", "3"],
    "couriers-3x6": ["examples.couriers:Couriers", "--minutes", "3"],
    "warehouse-4x12": ["examples.warehouse:Warehouse", "--minutes", "3"],
    "satellites-36x50": [SATELLITES, "--minutes", "5", "--validate-on", SATELLITES],
    "foraging-8x8": ["examples.outside.foraging:Foraging", "--minutes", "3"],
}
OUTSIDE_SEEDS = {"satellites-36x50": 3, "foraging-8x8": 3}


def battle_runs() -> dict[str, list[str]]:
    """Name and arguments of every run of Tables 2 and 3."""
    found = {}
    extra = {"es": BATTLE_ES, "ppo": [], "a2c": BATTLE_A2C}
    for (scenario, model, learner), minutes in BATTLE_MINUTES.items():
        for inference, seeds in BATTLE_SEEDS.items():
            length = PPO_MINUTES.get((scenario, inference), minutes) if learner == "ppo" else minutes
            for seed in range(seeds):
                found[f"battle-{scenario}-{inference}-{model}-{learner}-s{seed}"] = [
                    f"battle:{scenario}",
                    *("--inference", inference, "--model", "dm", "--learner", learner),
                    *("--minutes", str(length), "--seed", str(seed)),
                    *extra[learner],
                    *(["--form", "centred"] if learner != "a2c" and scenario in CENTRED else []),
                ]
    return found | structured_runs("battle")


def structured_runs(only_env: str) -> dict[str, list[str]]:
    """Name and arguments of the runs by structured learning in an environment."""
    return {
        f"{env}-{size}-{inference}-dm-srl-s{seed}": [
            f"{env}:{size}",
            *("--inference", inference, "--model", "dm", "--learner", "srl"),
            *("--minutes", str(minutes), "--seed", str(seed), *SRL_MORE.get(env, [])),
        ]
        for (env, size, inference), minutes in SRL_MINUTES.items()
        for seed in range(SRL_SEEDS)
        if env == only_env
    }


def pursuit_runs() -> dict[str, list[str]]:
    """Name and arguments of every run of the table of pursuit."""
    found = {}
    for (variant, learner), minutes in PURSUIT_MINUTES.items():
        for seed in range(PURSUIT_SEEDS):
            for inference in ("quad", "lp", "amax"):
                model = f"dm-{variant}" if variant else "dm"
                found[f"pursuit-4x2-{inference}-{model}-{learner}-s{seed}"] = [
                    "pursuit:4x2,needed=3" if variant else "pursuit:4x2",
                    *("--inference", inference, "--model", "dm", "--learner", learner),
                    *("--minutes", str(minutes), "--seed", str(seed)),
                ]
    return found


def fleet_runs() -> dict[str, list[str]]:
    """Name and arguments of every run of the table of fleets."""
    found = {}
    for (inference, variant, learner), minutes in FLEET_MINUTES.items():
        for seed in range(FLEET_SEEDS):
            method = "-".join(part for part in (inference, "dm", variant) if part)
            found[f"fleet-24-{method}-{learner}-s{seed}"] = [
                *FLEET_ENVS,
                *("--inference", inference, "--model", "dm", "--learner", learner),
                *("--minutes", str(minutes), "--seed", str(seed)),
                *(FLEET_PPO if learner == "ppo" else FLEET_ES + FLEET_STEPS[inference, variant]),
            ]
    return found


def routes_runs() -> dict[str, list[str]]:
    """Name and arguments of every run of the table of routes."""
    found = {}
    for variant, minutes in ROUTES_MINUTES.items():
        for seed in range(ROUTES_SEEDS):
            found[f"rescue-2x4-routes-dm{variant and '-' + variant}-es-s{seed}"] = [
                "rescue:2x4,mud=0.3" if variant else "rescue:2x4",
                *("--inference", "routes", "--minutes", str(minutes), "--seed", str(seed)),
                *ROUTES_ES[variant],
            ]
    return found


def context_runs() -> dict[str, list[str]]:
    """Name and arguments of every run of docs/results/ablations.md."""
    found = {}
    for seed in range(CONTEXT_SEEDS):
        found[f"rescue-small-lp-context-imitation-s{seed}"] = [
            *SMALL,
            *("--inference", "lp", "--model", "context", "--learner", "imitation", "--teacher", "routes-distance"),
            *("--minutes", "6", "--seed", str(seed), "--imitation.learning-rate", "0.006"),
            *CONTEXT_LOG,
        ]
    for seed in range(CONTEXT_SEEDS):
        for name, env in CONTEXT_TEACHERS.items():
            for model in ("context", "dm"):
                found[f"{name}-{model}-imitation-s{seed}"] = [
                    env,
                    *("--inference", name.rpartition("-")[2], "--model", model),
                    *("--learner", "imitation", "--teacher", f"{name}-dm"),
                    *("--minutes", "0.6", "--seed", str(seed), "--imitation.learning-rate", "0.006"),
                    *CONTEXT_LOG,
                ]
    return found


def capacities_runs() -> dict[str, list[str]]:
    """Name and arguments of every run of the table of learned capacities, those of LP and of the first seeds first."""
    found = {}
    for inference in ("lp", "quad"):
        for seed in range(CAPACITIES_SEEDS):
            for scenario in CAPACITIES_SCENARIOS:
                for variant, extra in CAPACITIES.items():
                    if extra is None:  # recorded, and no setting any more
                        continue
                    found[f"battle-{scenario}-{inference}-dm-{variant}-es-s{seed}"] = [
                        f"battle:{scenario}",
                        *("--inference", inference, "--model", "dm", "--learner", "es"),
                        *("--minutes", str(CAPACITIES_MINUTES), "--seed", str(seed)),
                        *BATTLE_ES,
                        *(["--form", "centred"] if scenario in CENTRED else []),
                        *extra,
                    ]
    return found


def outside_runs() -> dict[str, list[str]]:
    """Name and arguments of every run of the table of problems from outside, the first seeds first."""
    return {
        f"{name}-lp-linear-es-s{seed}": [*arguments, "--seed", str(seed)]
        for seed in range(5)
        for name, arguments in OUTSIDE.items()
        if seed < OUTSIDE_SEEDS.get(name, 5)
    }


# Of the recorded runs; today the speed of the machine decides where these are not given.
USUAL = {
    "ppo": {"--num-envs": "64"},
    "es": {"--es.pairs": "32", "--es.episodes": "16"},
    "srl": {"--num-envs": "32"},
}


def as_recorded(arguments: list[str]) -> list[str]:
    """The arguments of a run with sizes of its updates and of its log as they were in the recorded ones."""
    named = arguments[arguments.index("--learner") + 1] if "--learner" in arguments else ""
    usual = {**USUAL.get(named or ("es" if "routes" in arguments else "ppo"), {}), "--log-every": "100000"}
    return arguments + [word for flag, value in usual.items() if flag not in arguments for word in (flag, value)]


RUNS_OF = {
    "rescue": lambda: rescue_runs() | structured_runs("rescue"),
    "battle": battle_runs,
    "pursuit": pursuit_runs,
    "fleet": fleet_runs,
    "routes": routes_runs,
    "context": context_runs,
    "capacities": capacities_runs,
    "outside": outside_runs,
}


@dataclass(frozen=True)
class Train:
    """Train the policies of a table, those that are not there yet."""

    table: Annotated[
        Literal["rescue", "battle", "pursuit", "fleet", "routes", "context", "capacities", "outside"],
        tyro.conf.Positional,
    ]
    """Whose runs."""
    only: str = "*"
    """Names of runs, such as 'rescue-2x4-quad-*'."""
    list: bool = False
    """Print the commands and stop."""

    def run(self) -> None:
        """Run what is asked for and not yet done."""
        for name, own in RUNS_OF[self.table]().items():
            if fnmatch.fnmatch(name, self.only):
                arguments = own if self.table == "outside" else as_recorded(own)
                if self.list:
                    print("muster train", *arguments)
                else:
                    problem = name.partition("-")[0] if self.table == "outside" else ""
                    keep(train(RUNS / name, arguments), PAPER / self.table, name, problem)


def train(folder: Path, arguments: list[str]) -> Path:
    """The folder of the run, once it is finished."""
    if not (folder / "summary.json").exists():
        resume = ["--resume"] if (folder / "config.toml").exists() else []
        command = [sys.executable, "-m", "muster", "train", *arguments, "--out", str(folder), *resume]
        subprocess.run(command, check=True)
    return folder


def keep(folder: Path, under: Path, name: str, problem: str = "") -> None:
    """Copy what a record rests on: settings, log and summary, and the policy, of a table with several problems into a
    folder of its problem.
    """
    runs, policies = under / "runs" / name, under / "policies" / problem
    runs.mkdir(parents=True, exist_ok=True)
    policies.mkdir(parents=True, exist_ok=True)
    for file in ("config.toml", "metrics.csv", "summary.json"):
        shutil.copy(folder / file, runs / file)
    shutil.copy(folder / "best.safetensors", policies / f"{name}.safetensors")
