"""Level-based foraging (PyPI `lbforaging`, unchanged): players lift food together if their levels sum to its level.

    pip install 'muster-rl[outside]'
    muster check-env examples.outside.foraging:Foraging
    muster compare team nearest prior examples.outside.foraging:Foraging --episodes 300 --seed 1
    muster train examples.outside.foraging:Foraging --minutes 3 --out run
    muster compare team run examples.outside.foraging:Foraging,n_agents=10,n_tasks=20 --episodes 100 --seed 1

muster assigns players to food: contributions are the players' levels, and the minimum of a task is the level of its
food. Players then move on the shortest way around food and waiting players, no two to the same cell, and lift. Players
without a task go to the unassigned food that they could help to lift soonest. If nothing was eaten for 20 steps, teams
keep their food until something is. The area of the field is in proportion to the food: 8x8 for three, 20x20 for 20.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from lbforaging.foraging.environment import Action, ForagingEnv

from muster.envs.env import Baseline, Env, Observation
from muster.envs.scene import Look, Scene, Stage

HORIZON = 100
MOST_LEVEL = 2
"""Largest level of a player, as in the registered environments."""
FAR = 99
"""Number of steps that means "unreachable"."""
PATIENCE = 3
"""Blocked players step aside once in so many steps."""
PERSISTENCE = 20
"""Steps without a meal after which teams keep their food."""
MOVES = {Action.NORTH: (-1, 0), Action.SOUTH: (1, 0), Action.WEST: (0, -1), Action.EAST: (0, 1)}


class Field(ForagingEnv):
    """The original without its observations, which take most of a step's time and are not used here."""

    def _make_gym_obs(self) -> tuple[()]:
        return ()


class Foraging(Env):
    """Players and food on a grid; an episode terminates when all food is eaten."""

    metric = "steps"
    max_steps = HORIZON
    distances = (0,)
    distance_unit = 0.1
    idling = True
    switch_cost = 0.1
    feature_names = {  # noqa: RUF012
        "agent": ("level",),
        "task": ("level", "soonest", "next food"),
        "pair": ("distance", "share", "early", "late", "there", "sent", "planned", "delay"),
    }

    def __init__(self, n_agents: int = 3, n_tasks: int = 3) -> None:
        self.n_agents, self.n_tasks = n_agents, n_tasks
        self.size = int(8 * np.sqrt(n_tasks / 3))
        self.field = Field(
            players=n_agents,
            min_player_level=1,
            max_player_level=MOST_LEVEL,
            min_food_level=1,
            max_food_level=None,
            field_size=(self.size, self.size),
            max_num_food=n_tasks,
            sight=self.size,
            max_episode_steps=HORIZON + 1,
            force_coop=False,
        )

    def reset(self, rng: np.random.Generator) -> None:
        """Place players and food at random."""
        for player in self.field.players:
            # Otherwise version 2.0.0 keeps new players off the cells of the last episode.
            player.position = None
        self.field.reset(seed=int(rng.integers(2**31)))
        self.place = np.argwhere(self.field.field > 0)
        """[M, 2] row and column of each food."""
        self.food_level = self.field.field[tuple(self.place.T)].astype(float)
        self.level = np.array([player.level for player in self.field.players], float)
        self.left, self.last_free = np.zeros(len(self.place), bool), None
        self.sent = np.full(self.n_agents, -1)
        """[N] the last assignment."""
        self.last_meal, self.kept = 0, self.sent
        """Step of the last meal, and [N] the food that players keep, or -1."""
        self.look()

    def look(self) -> None:
        """Update positions, the food that is left, and distances."""
        self.position = np.array([player.position for player in self.field.players])
        was, self.left = self.left, self.field.field[tuple(self.place.T)] > 0
        if (was != self.left).any():
            self.open_ways = self.ways(self.field.field == 0)
        self.there = (np.abs(self.position[:, None] - self.place).sum(axis=-1) == 1) & self.left
        """[N, M] whether a player is beside food that is left."""
        # Waiting players are no obstacle here: distances that depend on them would change with every plan.
        self.distance = self.open_ways[:, *(self.position.T + 1)].T
        """[N, M] steps to a cell beside each food."""

    def ways(self, free: np.ndarray) -> np.ndarray:
        """[M, size + 2, size + 2] steps to a cell beside each food from every `free` one, with a margin.

        Cells are bits of an integer, so that all cells one step further out are computed at once.
        """
        open_cells = np.pad(free, 1)
        width, size = self.size + 2, open_cells.size // 8 + 1
        start = int.from_bytes(np.packbits(open_cells, bitorder="little").tobytes(), "little")
        rings: list[tuple[int, int, bytes]] = []
        for j in np.flatnonzero(self.left).tolist():
            row, column = self.place[j].tolist()
            step, unseen, ring = 0, start, 1 << (row + 1) * width + column + 1
            while ring := (ring << 1 | ring >> 1 | ring << width | ring >> width) & unseen:
                unseen ^= ring
                rings.append((j, step, ring.to_bytes(size, "little")))
                step += 1
        steps = np.full((len(self.place), open_cells.size), FAR)
        if rings:
            of, step, cells = zip(*rings, strict=True)
            bits = np.frombuffer(b"".join(cells), np.uint8).reshape(len(rings), size)
            ring, cell = np.nonzero(np.unpackbits(bits, axis=1, bitorder="little"))
            steps[np.array(of)[ring], cell] = np.array(step)[ring]
        return steps.reshape(-1, width, width)

    def observe(self) -> Observation:
        """Levels and distances; the prior is the player's share of the food's level minus the distance."""
        left, distance = self.left, self.distance
        share = np.minimum(self.level[:, None] / self.food_level, 1)
        soonest = self.soonest(np.ones(self.n_agents))
        apart = np.abs(self.place[:, None] - self.place).sum(axis=-1)
        apart = np.where(left & ~np.eye(len(left), dtype=bool), apart, FAR).min(axis=1)
        tasks = [self.food_level, soonest / 10, np.where(apart < FAR, apart, 0) / 10]
        wait = (soonest - distance) / 10
        total, planned = self.plan()
        delay = np.minimum(total - total.min(), 10) / 10
        sent, planned = (chosen[:, None] == np.arange(len(left)) for chosen in (self.sent, planned))
        pairs = [distance / 10, share, np.maximum(wait, 0), np.maximum(-wait, 0), self.there]
        pairs += [sent, planned, share * delay]
        # Levels are 1 and 2, so a team need never exceed the food's level by more than one, and then only a team of 2s.
        spare = (self.food_level > 1) & (self.food_level % 2 == 1)
        return Observation(
            agent_features=self.level[:, None],
            task_features=np.column_stack(tasks) * left[:, None],
            pair_features=np.stack(pairs, axis=-1) * left[:, None],
            task_alive=left,
            contributions=np.minimum(self.level[:, None], self.food_level),
            minimums=self.food_level,
            capacities=self.food_level + spare,
            allowed=left & (distance < FAR),
            prior=(share - distance / 10) * left,
        )

    def soonest(self, players: np.ndarray) -> np.ndarray:
        """[M] steps until the nearest `players` [N] (0 or 1) that suffice to lift a food can all be there."""
        order = np.argsort(self.distance, axis=0, kind="stable")
        enough = np.cumsum((self.level * players)[order], axis=0) >= self.food_level
        last = order[enough.argmax(axis=0), np.arange(len(self.place))]
        return np.where(self.left & enough.any(axis=0), self.distance[last, np.arange(len(self.place))], FAR)

    def plan(self) -> tuple[np.ndarray, np.ndarray]:
        """[M] steps until all food is eaten if this food is first, and [N] each player's first food in the best plan.

        A plan always continues with the food that can be lifted soonest, each by the nearest team. Teams gather while
        others are busy; collisions of players are not counted.
        """
        plans = np.arange(len(self.place))
        apart = np.maximum(np.abs(self.place[:, None] - self.place).sum(axis=-1) - 2, 0)
        # Of each plan: when players are free, their distances to food then, food that is left, and the sum of times.
        free_at, way = np.zeros((len(plans), self.n_agents)), np.repeat(self.distance[None], len(plans), axis=0)
        waiting, times = np.repeat(self.left[None], len(plans), axis=0), np.zeros(len(plans))
        first = np.full((len(plans), self.n_agents), -1)
        for k in range(self.left.sum()):
            arrival = free_at[..., None] + way
            order = np.argsort(arrival, axis=1, kind="stable")
            last = (np.cumsum(self.level[order], axis=1) >= self.food_level).argmax(axis=1)
            lifted = np.take_along_axis(np.take_along_axis(arrival, order, axis=1), last[:, None], axis=1)[:, 0]
            food = np.where(waiting, lifted, np.inf).argmin(axis=1) if k else plans
            time, order, last = lifted[plans, food], order[plans, :, food], last[plans, food]
            members = np.zeros_like(free_at, bool)
            np.put_along_axis(members, order, np.arange(self.n_agents) <= last[:, None], axis=1)
            spare = members @ self.level - self.food_level[food]
            for player in order.T[::-1]:
                unneeded = members[plans, player] & (self.level[player] <= spare)
                members[plans, player] &= ~unneeded
                spare -= self.level[player] * unneeded
            first = np.where(members & (first < 0), food[:, None], first)
            free_at = np.where(members, time[:, None] + 1, free_at)
            way = np.where(members[..., None], apart[food][:, None], way)
            waiting[plans, food] = False
            times += time
        total = free_at.max(axis=1)
        total[~self.left] = total.max() + 1
        return total, first[(total + times / 1000).argmin()]

    def step(self, assignment: np.ndarray) -> tuple[float, bool]:
        """One move or attempt to lift by every player."""
        if self.field.current_step - self.last_meal >= PERSISTENCE:
            assignment = self.keep_to(assignment)
        before = self.left
        _, rewards, _, _, _ = self.field.step(self.actions(self.goals(assignment)))
        self.sent = assignment.copy()
        self.look()
        if (before != self.left).any():
            self.last_meal, self.kept = self.field.current_step, np.full(self.n_agents, -1)
        return sum(rewards) - 0.02, not self.left.any()

    def keep_to(self, assignment: np.ndarray) -> np.ndarray:
        """[N] the assignment, with players of sufficient teams kept at their food from now on.

        Otherwise two players whose ways cross could take turns at being the nearer one, and never arrive.
        """
        if (self.kept < 0).all():
            enough = self.level @ (assignment[:, None] == np.arange(len(self.left))) >= self.food_level
            self.kept = np.where((assignment >= 0) & enough[assignment], assignment, -1)
        return np.where(self.kept >= 0, self.kept, assignment)

    def goals(self, assignment: np.ndarray) -> np.ndarray:
        """[N] the food of every player: the assigned one, or the unassigned food that it could help to lift soonest,
        then the nearest.
        """
        waiting = self.left.copy()
        waiting[assignment[assignment >= 0]] = False
        waiting = waiting if waiting.any() else self.left
        soonest = self.soonest(assignment < 0)
        # Ties go to the first food, so that players who can lift several together do not wait at one each.
        lifted = np.where(soonest < FAR, np.maximum(self.distance, soonest), FAR + self.distance)
        return np.where(assignment >= 0, assignment, np.where(waiting, lifted, np.inf).argmin(axis=1))

    def actions(self, goal: np.ndarray) -> list[int]:
        """An action for every player: the nearest to their food choose first, and no cell is taken twice."""
        actions, players = [Action.NONE.value] * self.n_agents, np.arange(self.n_agents)
        lifting, ways = self.there[players, goal], self.open_ways
        if lifting.any():
            free = self.field.field == 0
            free[tuple(self.position[lifting].T)] = False
            # Teams wait for several steps, in which the free cells stay the same.
            if not np.array_equal(free, self.last_free):
                self.last_free, self.last_ways = free, self.ways(free)
            ways = self.last_ways
        cells = [tuple(cell) for cell in self.position.tolist()]
        taken = set(cells)
        for player in np.argsort(self.distance[players, goal], kind="stable").tolist():
            if lifting[player]:
                actions[player] = Action.LOAD.value
                continue
            row, column = cells[player]
            steps = ways[goal[player]]
            moves = [
                (steps[row + down + 1, column + right + 1], action.value, (row + down, column + right))
                for action, (down, right) in MOVES.items()
                if (row + down, column + right) not in taken
            ]
            # A player that cannot get nearer waits, and steps aside at times; at all times, two could do so for ever.
            limit = steps[row + 1, column + 1] if self.field.current_step % PATIENCE else FAR
            if moves and (best := min(moves))[0] < limit:
                actions[player] = best[1]
                taken.remove(cells[player])
                taken.add(best[2])
        return actions

    def metrics(self) -> Mapping[str, float]:
        """Share of the food's levels that was eaten."""
        return {"eaten": float(1 - self.food_level[self.left].sum() / self.food_level.sum())}

    def get_state(self) -> Mapping[str, Any]:
        """Food, players, kept food and time."""
        return {
            "field": self.field.field,
            "place": self.place,
            "food_level": self.food_level,
            "position": self.position,
            "level": self.level,
            "sent": self.sent,
            "last_meal": self.last_meal,
            "kept": self.kept,
            "spawned": self.field._food_spawned,
            "time": self.field.current_step,
        }

    def set_state(self, state: Mapping[str, np.ndarray]) -> None:
        """Restore what `get_state` returned."""
        self.place, self.food_level, self.level = state["place"], state["food_level"], state["level"]
        self.sent, self.last_meal, self.kept = state["sent"], int(state["last_meal"]), state["kept"]
        self.field.field, self.field.current_step = state["field"], int(state["time"])
        self.field._food_spawned = int(state["spawned"])
        for player, position, level in zip(self.field.players, state["position"].tolist(), self.level, strict=True):
            player.position, player.level = tuple(position), int(level)
        self.field._gen_valid_moves()
        self.left, self.last_free = np.zeros(len(self.place), bool), None
        self.look()

    @classmethod
    def baselines(cls) -> Mapping[str, Baseline]:
        """Teams by a greedy rule, and all players to the nearest food."""
        return {"team": team, "nearest": nearest}

    def scene(self) -> Scene:
        """The grid with players and food."""
        stage = Stage(
            (Look("players", "person"), Look("food", "disc", "#2f9e6e")), bounds=(0, 0, self.size, self.size), grid=1
        )
        return Scene(self.position[:, ::-1] + 0.5, self.place[:, ::-1] + 0.5, stage=stage)


def team(observation: Observation) -> np.ndarray:
    """The food that can be lifted soonest gets the nearest sufficient team, then the next with the players left."""
    distance = np.where(observation.allowed, np.asarray(observation.pair_features)[..., 0], np.inf)
    level, food = np.asarray(observation.agent_features)[:, 0], np.asarray(observation.minimums)
    chosen, open_food = np.full(len(level), -1), np.asarray(observation.task_alive).copy()
    while True:
        soonest, best = np.inf, None
        for j in np.flatnonzero(open_food):
            free = np.flatnonzero((chosen < 0) & np.isfinite(distance[:, j]))
            near = free[np.argsort(distance[free, j], kind="stable")]
            enough = np.flatnonzero(np.cumsum(level[near]) >= food[j])
            if len(enough) and distance[near[enough[0]], j] < soonest:
                soonest, best = distance[near[enough[0]], j], (j, near[: enough[0] + 1])
        if best is None:
            return chosen
        job, members = best
        spare = level[members].sum() - food[job]
        for member in members[::-1]:
            if level[member] <= spare:
                spare -= level[member]
            else:
                chosen[member] = job
        open_food[job] = False


def nearest(observation: Observation) -> np.ndarray:
    """Each player goes to the nearest food."""
    distance = np.where(observation.allowed, np.asarray(observation.pair_features)[..., 0], np.inf)
    return np.where(np.isfinite(distance).any(axis=1), distance.argmin(axis=1), -1)
