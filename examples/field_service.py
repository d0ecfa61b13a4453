"""Field service: technicians with skills and shifts drive to jobs that arrive all day; some jobs need two of them.

    muster check-env examples.field_service:FieldService
    muster compare match priority prior examples.field_service:FieldService --episodes 500 --seed 1
    muster train examples.field_service:FieldService --minutes 3 --out run
    muster compare match run examples.field_service:FieldService,n_agents=30,n_tasks=90 --episodes 100 --seed 1

A decision every five minutes, 72 a day, assigns free technicians to waiting jobs. A technician drives to the job, works
until it is done and is then free at its place. A job pays its priority if work begins before its deadline, five minutes
of driving cost 0.1, and the return is the profit of the day. Jobs and map grow in proportion to the technicians.

`match` is the baseline to beat: the best matching by `Worth`, the score that a dispatcher would write down. Its four
constants are the best of 300 random ones on 200 days of their own, rounded (`python -m examples.field_service` tunes
them again); no run is trained, validated or evaluated on those days. The same score is the prior of learning.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from muster import assign
from muster.envs.env import Baseline, Env, Observation
from muster.envs.scene import BLUE, GREEN, ORANGE, RED, Look, Scene, Stage

STEPS = 72
SKILLS = 4
SHIFT, SHIFT_STARTS = 48, (0, 12, 24)
PRIORITIES, CHANCES = (1, 2, 4), (0.5, 0.3, 0.2)
DURATIONS, DEADLINES = (3, 9), (10, 40)
TEAMS = 0.2
"""Share of the jobs that need two technicians."""
ARRIVALS, AT_OPENING = 0.14, 1.0
"""Jobs per technician: expected every five minutes, and at the start of the day."""
SPEED = 0.15
"""Distance driven in five minutes; the map has one unit of area for every six technicians."""
TRAVEL_COST = 0.1
FAR = 30
"""Number of steps that means "no colleague will come"."""
TUNING_SEED = 7_041_776
LOOKS = (Look("technicians", "van", BLUE), Look("low", "disc", GREEN), Look("medium", "disc", ORANGE),
         Look("high priority", "disc", RED))  # fmt: skip


class Jobs(NamedTuple):
    """The jobs of a day in order of arrival, [J] each."""

    arrival: np.ndarray
    place: np.ndarray
    """[J, 2]"""
    skill: np.ndarray
    priority: np.ndarray
    duration: np.ndarray
    deadline: np.ndarray
    """The last step at which work may begin."""
    team: np.ndarray
    """1 or 2 technicians."""


@dataclass(frozen=True)
class Worth:
    """A dispatcher's score of a job for a technician: its pay per technician minus the price of the time."""

    time: float = 0.04
    """Price of five minutes of a technician."""
    travel: float = 0.25
    """Price of five minutes of driving, in addition."""
    urgency: float = 0.5
    """Bonus of a job that is due now, which falls to 0 for one that can wait two hours."""
    team: float = 0.37
    """Bonus of a job that needs two."""

    def __call__(self, jobs: Jobs, travel: np.ndarray, left: np.ndarray) -> np.ndarray:
        """[N, M] scores, for `travel` steps of driving [N, M] and `left` steps until the deadline [M]."""
        job_score = jobs.priority / jobs.team - self.time * jobs.duration + self.team * (jobs.team - 1)
        return job_score + self.urgency * np.maximum(0, 1 - left / 24) - (self.time + self.travel) * travel


class FieldService(Env):
    """Technicians and waiting jobs; at most n_tasks jobs wait, others are turned away."""

    metric = "return"
    max_steps = STEPS
    idling = True
    worth = Worth()
    feature_names = {  # noqa: RUF012
        "agent": ("shift left",),
        "task": ("priority", "duration", "time left", "needs two", "busy colleague"),
        "pair": ("travel", "spare time", "shift left after", "pay a step"),
        "global": ("day left", "jobs waiting", "technicians free"),
    }

    def __init__(self, n_agents: int = 6, n_tasks: int = 18) -> None:
        self.n_agents, self.n_tasks = n_agents, n_tasks
        self.side = np.sqrt(n_agents / 6)

    def reset(self, rng: np.random.Generator) -> None:
        """Draw the technicians' positions, skills and shifts, and the jobs of the whole day."""
        n, pairs = self.n_agents, list(combinations(range(SKILLS), 2))
        self.t, self.served, self.turned_away = 0, 0, 0
        self.position = rng.random((n, 2)) * self.side
        # Every pair of skills, and every shift, is equally frequent, so that any size can serve its jobs.
        self.able = np.zeros((n, SKILLS), bool)
        self.able[np.arange(n)[:, None], np.resize(pairs, (n, 2))[rng.permutation(n)]] = True
        self.free_at = np.resize(SHIFT_STARTS, n)[rng.permutation(n)]
        self.shift_end = self.free_at + SHIFT
        # For scenes: where each technician last left from, when, and the time of arrival.
        self.origin, self.left_at, self.there_at = self.position.copy(), np.zeros(n, int), np.zeros(n, int)
        self.jobs = self.draw_jobs(rng, 0)
        self.slots = np.full(self.n_tasks, -1)
        """[M] the job at each task index, -1 for none."""
        self.next_job = 0
        self.arrive()

    def draw_jobs(self, rng: np.random.Generator, first: int) -> Jobs:
        """The jobs that arrive from step `first` on."""
        rates = np.full(STEPS, ARRIVALS * self.n_agents)
        rates[0] = AT_OPENING * self.n_agents
        arrival = np.repeat(np.arange(first, STEPS), rng.poisson(rates[first:]))
        n = len(arrival)
        return Jobs(
            arrival,
            place=rng.random((n, 2)) * self.side,
            skill=rng.integers(SKILLS, size=n),
            priority=rng.choice(PRIORITIES, n, p=CHANCES),
            duration=rng.integers(*DURATIONS, size=n),
            deadline=arrival + rng.integers(*DEADLINES, size=n),
            team=1 + (rng.random(n) < TEAMS),
        )

    def redraw(self, rng: np.random.Generator) -> None:
        """Draw the jobs of later steps anew, so that look-ahead does not know them."""
        later = self.draw_jobs(rng, self.t + 1)
        columns = zip(self.jobs, later, strict=True)
        self.jobs = Jobs(*(np.concatenate([past[: self.next_job], new]) for past, new in columns))

    def arrive(self) -> None:
        """Put the jobs of this step into free slots; jobs without one are turned away."""
        coming = np.arange(self.next_job, np.searchsorted(self.jobs.arrival, self.t, side="right"))
        slots = np.flatnonzero(self.slots < 0)[: len(coming)]
        self.slots[slots] = coming[: len(slots)]
        self.next_job += len(coming)
        self.turned_away += len(coming) - len(slots)

    def waiting(self) -> Jobs:
        """The jobs in the slots, [M] each; arbitrary values in empty slots."""
        return Jobs(*(column[self.slots] for column in self.jobs))

    def travel(self, place: np.ndarray) -> np.ndarray:
        """[N, M] steps from each technician, or from the place of a present job, to places [M, 2]."""
        way = place - self.position[:, None]
        return np.maximum(np.ceil(np.sqrt((way * way).sum(axis=-1)) / SPEED), 1).astype(int)

    def observe(self) -> Observation:
        """Features of technicians, jobs and pairs, the feasible pairs, and the dispatcher's score as prior."""
        jobs, there, t = self.waiting(), self.slots >= 0, self.t
        travel, free = self.travel(jobs.place), (self.free_at <= t) & (t < self.shift_end)
        arrival = np.maximum(self.free_at, t)[:, None] + travel
        spare, shift_left = jobs.deadline - arrival, self.shift_end[:, None] - arrival - jobs.duration
        in_time = self.able[:, jobs.skill] & (spare >= 0) & (shift_left >= 0) & there
        # If a busy colleague can be there soon, a free technician is better kept for another job.
        colleague = np.where(in_time & ~free[:, None], arrival - t, FAR).min(axis=0)
        pay = jobs.priority / (jobs.team * (travel + jobs.duration))
        left = jobs.deadline - t
        columns = [jobs.priority, jobs.duration / 10, left / 10, jobs.team - 1, colleague / 10]
        return Observation(
            agent_features=(self.shift_end - t)[:, None] / 10,
            task_features=np.column_stack(columns) * there[:, None],
            pair_features=np.stack([travel / 10, spare / 10, shift_left / 10, pay], axis=-1) * in_time[:, :, None],
            global_features=[1 - t / STEPS, there.sum() / self.n_agents, free.mean()],
            agent_alive=free,
            task_alive=there,
            allowed=in_time & free[:, None],
            capacities=np.where(there, jobs.team, 1),
            minimums=np.where(there, jobs.team, 1),
            prior=self.worth(jobs, travel, left) * in_time,
            task_ids=self.slots,
        )

    def step(self, assignment: np.ndarray) -> tuple[float, bool]:
        """Send technicians to their jobs, if these have as many as they need, and let five minutes pass."""
        jobs, sent = self.waiting(), np.bincount(assignment[assignment >= 0], minlength=self.n_tasks)
        complete = sent == jobs.team
        going = np.flatnonzero((assignment >= 0) & complete[assignment])
        task = assignment[going]
        travel = self.travel(jobs.place)[going, task]
        begins = np.zeros(self.n_tasks, int)
        np.maximum.at(begins, task, self.t + travel)
        self.origin[going], self.position[going] = self.position[going], jobs.place[task]
        self.left_at[going], self.there_at[going] = self.t, self.t + travel
        self.free_at[going] = begins[task] + jobs.duration[task]
        reward = jobs.priority[complete].sum() - TRAVEL_COST * travel.sum()
        self.served += int(complete.sum())
        self.t += 1
        self.slots[complete | (jobs.deadline < self.t)] = -1
        self.arrive()
        return float(reward), self.t >= STEPS

    def metrics(self) -> Mapping[str, float]:
        """Numbers of jobs served, of all jobs, and of jobs turned away."""
        return {"served": self.served, "jobs": self.next_job, "turned away": self.turned_away}

    def get_state(self) -> Mapping[str, Any]:
        """Everything that changes; muster saves the generator."""
        return {name: value for name, value in vars(self).items() if name != "jobs"} | self.jobs._asdict()

    def set_state(self, state: Mapping[str, np.ndarray]) -> None:
        """Restore what `get_state` returned."""
        self.jobs = Jobs(*(state[name] for name in Jobs._fields))
        for name in state.keys() - set(Jobs._fields):
            setattr(self, name, state[name] if state[name].ndim else state[name].item())

    def scene(self) -> Scene:
        """Technicians on their way, with the share of the shift left, and jobs with the time left."""
        jobs = self.waiting()
        share = np.clip((self.t - self.left_at) / np.maximum(self.there_at - self.left_at, 1), 0, 1)[:, None]
        return Scene(
            agents=self.origin + share * (self.position - self.origin),
            tasks=jobs.place,
            agent_alive=(self.shift_end - SHIFT <= self.t) & (self.t < self.shift_end),
            task_looks=1 + np.searchsorted(PRIORITIES, jobs.priority),
            agent_health=np.clip((self.shift_end - self.t) / SHIFT, 0, 1),
            task_health=np.clip((jobs.deadline - self.t) / DEADLINES[1], 0, 1),
            text=f"{8 + self.t // 12}:{self.t % 12 * 5:02}, {self.served} jobs served",
            stage=Stage(LOOKS, bounds=(0.0, 0.0, self.side, self.side)),
        )

    @classmethod
    def baselines(cls) -> Mapping[str, Baseline]:
        """The tuned matching, and jobs in order of priority."""
        return {"match": match, "priority": priority}


def match(observation: Observation) -> np.ndarray:
    """The best matching by the prior, repeated without the jobs that got one of two technicians."""
    prior, team = np.asarray(observation.prior), np.asarray(observation.capacities)
    score = np.where(observation.allowed & (prior > 0), prior, -np.inf)
    while True:
        chosen = assign(score, capacities=team, method="lp").assignment
        sent = np.bincount(chosen[chosen >= 0], minlength=len(team))
        incomplete = (sent > 0) & (sent < team)
        if not incomplete.any():
            return chosen
        score[:, incomplete] = -np.inf


def priority(observation: Observation) -> np.ndarray:
    """Jobs in order of priority get the nearest technicians who may go, if there are enough."""
    allowed, travel = np.array(observation.allowed), np.asarray(observation.pair_features)[:, :, 0]
    chosen, team = np.full(len(travel), -1), np.asarray(observation.capacities, int)
    for job in np.argsort(-np.asarray(observation.task_features)[:, 0], kind="stable"):
        able = np.flatnonzero(allowed[:, job] & (chosen < 0))
        if len(able) >= team[job]:
            chosen[able[np.argsort(travel[able, job], kind="stable")[: team[job]]]] = job
    return chosen


def profit(worth: Worth, days: int) -> float:
    """Mean profit of `match` with these constants, on days for tuning only."""
    env, total = FieldService(), 0.0
    env.worth = worth
    for day in range(days):
        env.reset(np.random.default_rng([TUNING_SEED, day]))
        ended = False
        while not ended:
            reward, ended = env.step(match(env.observe()))
            total += reward
    return total / days


def tune(trials: int = 300, days: int = 200) -> Worth:
    """Tune the constants: random ones on a tenth of the days, then the best tenth of them on all days."""
    rng = np.random.default_rng(TUNING_SEED)
    candidates = [Worth(*rng.uniform((0, 0, 0, -0.5), (0.4, 0.3, 1.5, 1))) for _ in range(trials)]
    candidates.sort(key=lambda worth: -profit(worth, days // 10))
    return max(candidates[: trials // 10], key=lambda worth: profit(worth, days))


if __name__ == "__main__":
    print(tune())
