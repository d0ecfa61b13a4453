"""A fleet of vehicles and the requests of one hour: each is taken by a vehicle in its minute, or refused for good."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muster.data import BatchObservation, Bools, Floats, Ints
from muster.envs.fleet import kernels, observe
from muster.envs.fleet.city import City, built_in
from muster.envs.fleet.settings import FleetSettings
from muster.envs.fleet.trips import load_trips, slots_of
from muster.envs.fleet.worth import expect_worth
from muster.envs.kernel_env import KernelEnv
from muster.envs.vector import Metric, Policy, Step
from muster.errors import InputError
from muster.parallel import share_out, thread_count
from muster.rng import Seeds, episode_seeds

# Vehicles in the batch from which starting threads costs less than it saves.
PARALLEL_FROM = 20_000


class FleetEnv(KernelEnv):
    """B hours of a fleet; a minute a step, its reward the profit of the requests taken in it."""

    metric: Metric = "return"
    idling = True

    def __init__(self, settings: FleetSettings | None = None, n_envs: int = 1) -> None:
        if n_envs < 1:
            raise InputError(f"a batch needs at least 1 environment, got {n_envs}")
        self.settings = settings = settings or FleetSettings()
        self.name = settings.name
        self.n_envs = n_envs
        self.n_agents = settings.vehicles
        self.max_steps = settings.minutes
        self.city, scale = self._city()
        if settings.threads == "one" or (settings.threads == "auto" and n_envs * self.n_agents < PARALLEL_FROM):
            self.threads = 1
        city = self.city
        self.roads = kernels.Roads(city.metres, city.minutes, city.fares)
        self._scale = scale
        chances = np.cumsum(city.hourly / city.hourly.sum())
        self._demand = kernels.Demand(city.expected(scale).sum(1), chances, city.busyness)
        self._outlook = self._look_ahead()
        self._memory = observe.Memory(n_envs, self.n_agents, self.n_tasks, pairs=True)
        self._order: Ints = np.tile(np.arange(self.n_tasks), (n_envs, 1))
        self.bound = np.full(n_envs, np.inf)
        """[B] what nobody can earn more than; infinite until `hindsight` has worked it out."""
        self.fleet = self._empty()

    def _city(self) -> tuple[City, float]:
        """Where we are, and by what to multiply its requests; fetches the recorded days."""
        settings = self.settings
        if settings.trips is None:
            city = built_in(settings.city)
            scale = settings.demand * settings.vehicles / city.vehicles
            self.n_tasks = settings.limit or math.ceil(round(city.limit * scale, 9))
            return city, scale
        trips = load_trips(settings.trips)
        days = trips.requests[settings.set]
        if not days:
            raise InputError(f"{settings.trips} has no {settings.set} days")
        self.n_tasks = settings.limit or trips.city.limit
        self.days = trips.days[settings.set]
        self._pickups, self._dropoffs = slots_of(days, self.n_tasks, settings.minutes)
        within = np.array([(day[:, 0] < settings.minutes).sum() for day in days])
        self._lost: Ints = within - (self._pickups >= 0).sum((1, 2))
        return trips.city, 1.0

    def _look_ahead(self) -> observe.Outlook:
        """What the rates say of the hour to come."""
        city, minutes = self.city, self.settings.minutes
        expected = city.expected(self._scale)[:minutes]
        margins = city.fares - self.settings.cost * city.metres
        from_zone = city.hourly.sum(1, keepdims=True)
        worth, taking = expect_worth(
            expected, city.hourly / np.maximum(from_zone, 1e-12), margins, city.minutes, float(self.n_agents)
        )
        share = city.hourly / city.hourly.sum()
        # Beyond the hour nothing is earned, but demand is still seen as it was last.
        later = np.repeat(expected[-1:].sum(1), observe.AHEAD + observe.HORIZON + 1)
        return observe.Outlook(
            usual=np.concatenate([[0.0], np.cumsum(np.concatenate([expected.sum(1), later]))]),
            origins=share.sum(1),
            worth=worth,
            taking=taking,
            unit=max(float((share * np.abs(margins)).sum()), 1e-9),
            trip=max(float((share * city.minutes).sum()), 1.0),
        )

    def _empty(self) -> kernels.Fleet:
        size, shape = (self.n_envs,), (self.n_envs, self.n_agents)

        def whole(*shape: int) -> Ints:
            return np.zeros(shape, np.int64)

        requests = np.full((self.n_envs, self.max_steps, self.n_tasks), -1, np.int16)
        return kernels.Fleet(
            rng=np.zeros(size, np.uint64),
            minute=whole(*size),
            running=np.zeros(size, np.bool_),
            zone=whole(*shape),
            free=whole(*shape),
            first=whole(*shape),
            held=whole(*shape),
            number=whole(*shape),
            stops=whole(*shape, 5),
            given=whole(*shape),
            pickups=requests,
            dropoffs=requests.copy(),
            lost=whole(*size),
            earned=np.zeros(size),
            served=whole(*size),
            seen=whole(*size),
            empty=np.zeros(size),
        )

    def feature_names(self) -> Mapping[str, Sequence[str]]:
        """In the units that observe.py describes."""
        return {
            "agent": observe.AGENT_FEATURES,
            "task": observe.TASK_FEATURES,
            "pair": observe.PAIR_FEATURES,
            "task_pair": observe.TASK_PAIR_FEATURES,
            "global": observe.GLOBAL_FEATURES,
        }

    def show(self, *, pair_features: bool, planes: bool) -> None:
        """Include the features of pairs, or leave them out; there are no planes."""
        super().show(pair_features=pair_features, planes=planes)
        self._memory = observe.Memory(self.n_envs, self.n_agents, self.n_tasks, pairs=pair_features)

    def all_episodes(self) -> Seeds | None:
        """The seeds that name the recorded days, in order; None where days are drawn without end."""
        return None if self.settings.trips is None else np.arange(len(self.days), dtype=np.uint64)

    def reset(self, slots: Ints, seeds: Seeds) -> None:
        """Begin the episode of `seeds[k]` in slot `slots[k]`; of recorded days, seed k below their number is day k."""
        slots, seeds = np.asarray(slots, np.int64), np.asarray(seeds, np.uint64)
        kernels.begin_slots(slots, seeds, self.settings.evenly, self.city.n_zones, self.fleet)
        self.bound[slots] = np.inf
        self._order[slots] = np.arange(self.n_tasks)
        if self.settings.trips is None:
            busyness = kernels.choose_busyness(slots, self._demand, self.fleet)
            kernels.draw_requests(slots, busyness, self._demand, self.city.n_zones, self.fleet)
        else:
            days = kernels.choose_days(slots, seeds, len(self.days), self.fleet)
            kernels.play_days(slots, days, self._pickups, self._dropoffs, self._lost, self.fleet)

    def observe(self) -> BatchObservation:
        """Features, masks, priors (profit in mean margins) and who can be in time; arrays that nobody else holds."""
        b, n, m = self.n_envs, self.n_agents, self.n_tasks
        views = self._memory.take()

        def see_part(begin: int, end: int) -> None:
            wait, cost = self.settings.wait, self.settings.cost
            crowd = observe.make_crowd(self.city.n_zones, n, wait)
            observe.see_range(begin, end, self.roads, wait, cost, self._outlook, self.fleet, crowd, views)

        share_out(b, self.threads or thread_count(), see_part)
        return BatchObservation(
            agent_features=views.agents,
            task_features=views.tasks,
            pair_features=views.pairs,
            task_pair_features=views.task_pairs,
            agent_alive=np.ones((b, n), np.bool_),
            task_alive=views.task_alive,
            contributions=np.broadcast_to(np.ones(()), (b, n, m)),
            capacities=np.ones((b, m)),
            allowed=views.allowed,
            prior=views.prior,
            global_features=views.whole,
            task_ids=self.fleet.minute[:, None] * m + self._order,
        )

    def step(self, assignment: Ints) -> Step:
        """Take requests, then let a minute pass. A vehicle without one, or that cannot be in time, takes none."""
        assignment = np.ascontiguousarray(assignment, np.int64)
        if assignment.shape != self.fleet.zone.shape:
            raise InputError(f"the assignment must have shape {self.fleet.zone.shape}, got {assignment.shape}")
        bad = kernels.first_bad_task(assignment, self.n_tasks)
        if bad >= 0:
            slot, agent = divmod(bad, self.n_agents)
            raise InputError(
                f"tasks are -1 to {self.n_tasks - 1}, got {assignment[slot, agent]} for agent {agent} of slot {slot}"
            )
        result = Step(np.zeros(self.n_envs), np.zeros(self.n_envs, np.bool_), np.zeros(self.n_envs, np.bool_))

        def step_part(begin: int, end: int) -> None:
            wait, cost = self.settings.wait, self.settings.cost
            kernels.step_range(
                begin, end, assignment, self.roads, wait, cost, self.fleet, result.reward, result.terminated
            )

        share_out(self.n_envs, self.threads or thread_count(), step_part)
        return result

    def outcome(self) -> Floats:
        """[B] profit so far."""
        return self.fleet.earned.copy()

    def metrics(self) -> dict[str, Floats]:
        """Requests taken and made (beyond the limit, too), kilometres without a passenger, and the bound if known."""
        found = {
            "served": self.fleet.served.astype(np.float64),
            "requests": (self.fleet.seen + self.fleet.lost).astype(np.float64),
            "empty_km": self.fleet.empty / 1000,
        }
        return found if np.isinf(self.bound).any() else {**found, "upper_bound": self.bound.copy()}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Vehicles, requests and what is known of the day."""
        return {**self.fleet._asdict(), "bound": self.bound, "order": self._order}

    def running(self) -> Bools:
        """[B] where the hour is not over."""
        return self.fleet.running.copy()

    def reseed(self, seeds: Seeds) -> None:
        """Other requests from the next minute on, on a day as busy as those seen make likely; of recorded days too."""
        slots = np.arange(self.n_envs)
        self.fleet.rng[:] = seeds
        self.bound[:] = np.inf
        kernels.draw_requests(slots, self._likely_busyness(seeds), self._demand, self.city.n_zones, self.fleet)

    def _likely_busyness(self, seeds: Seeds) -> Floats:
        """[B] a level of busyness for each slot, as likely as its requests so far, a Poisson number, make it."""
        levels = np.sort(self._demand.busyness)
        usual = np.cumsum(self._demand.expected)[np.minimum(self.fleet.minute, self.max_steps - 1)]
        rate = levels * usual[:, None]
        fit = self.fleet.seen[:, None] * np.log(np.maximum(rate, 1e-12)) - rate
        chances = np.cumsum(np.exp(fit - fit.max(1, keepdims=True)), axis=1)
        uniforms = (episode_seeds(0, seeds.astype(np.int64)) >> np.uint64(11)) * 2.0**-53
        return levels[(chances <= (uniforms * chances[:, -1])[:, None]).sum(1).clip(max=len(levels) - 1)]

    def permute(self, agents: Ints, tasks: Ints) -> bool:
        """Renumber vehicles and requests."""
        fleet = self.fleet
        for array in (fleet.zone, fleet.free, fleet.first, fleet.held, fleet.number, fleet.stops):
            array[:] = array[:, agents]
        fleet.given[:] = -1
        self._order[:] = self._order[:, tasks]
        for requests in (fleet.pickups, fleet.dropoffs):
            requests[:] = requests[:, :, tasks]
        return True

    def picture(self) -> Any:
        """What draws it, imported when asked for."""
        from muster.envs.fleet import picture

        return picture

    def arrange(self, slot: int, agents: Floats, tasks: Floats) -> None:
        """Empty vehicles in the zones nearest to these places, and requests that begin there."""
        from muster.envs.fleet.picture import nearest_zones

        zones = nearest_zones(self, np.asarray(agents))
        self.fleet.zone[slot] = zones
        self.fleet.stops[slot] = zones[:, None]
        begin = nearest_zones(self, np.asarray(tasks))
        # Requests that there were keep where they lead to; new ones lead across the city.
        ends = self.fleet.dropoffs[slot, 0]
        ends[:] = np.where(ends >= 0, ends, (begin + self.city.n_zones // 2) % self.city.n_zones)
        self.fleet.pickups[slot, 0] = begin

    @classmethod
    def baselines(cls) -> Mapping[str, Callable[[FleetEnv], Policy]]:
        """greedy, match, worth, and hindsight, which knows all requests."""
        from muster.envs.fleet.baselines import Greedy, Match, Worth
        from muster.envs.fleet.hindsight import Hindsight

        return {"greedy": Greedy, "match": Match, "worth": Worth, "hindsight": Hindsight}


def from_options(text: str, n_envs: int) -> FleetEnv:
    """The environment that `text` names: "24,city=small" or "24,trips=FOLDER,set=test"."""
    return FleetEnv(FleetSettings.from_text(text), n_envs)
