"""One instance, compacted: living agents and tasks only, with everything the kernels derive from the input once."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from muster.assign.extremes import extent
from muster.assign.given import Given
from muster.compile import kernel, leaf, maker
from muster.data import Bools, Floats, Ints

# Contributions mu_ij count as a_i d_j when they agree to this relative accuracy.
SPLIT_TOLERANCE = 1e-13
# A capacity is respected up to this share of itself, since sums of contributions are rounded.
CAPACITY_TOLERANCE = 1e-11

TRANSPORT, GENERALISED = 0, 1

# Task scores act on the number of agents on each task, or on the contributions that it gets.
COUNTED, LOADED = 1, 2

# Numbers beyond this size are refused: sums of them would overflow ...
LARGEST = 1e100
# ... and so are contributions and capacities below this size that are not 0: ratios of them would.
SMALLEST = 1e-100


FACTS = np.dtype(
    (
        np.record,
        [
            ("n", np.int64),
            ("m", np.int64),
            ("kind", np.int64),
            ("free", np.int64),
            ("quadratic", np.int64),
            ("restricted", np.int64),
            ("idle", np.float64),
        ],
    )
)
"""The numbers of an instance.

n, m: agents and tasks; kind: TRANSPORT or GENERALISED; free: 1 if some pair takes no capacity; quadratic: COUNTED or
LOADED, what task scores act on, or 0 if there are none; restricted: 1 if `arc` is not just `score`; idle: value of
leaving an agent out, which is 0, or very negative when assignments are assign_all.
"""


class Instance(NamedTuple):
    """Arrays with room for N agents and M tasks; the first n and m (`facts`) are in use."""

    facts: Any
    """[1] FACTS"""
    agents: Ints
    """[N] position of each living agent in the input."""
    tasks: Ints
    """[M]"""
    score: Floats
    """[N, M] h"""
    arc: Floats
    """[N, M] h where the pair takes capacity and the task has some, else -inf."""
    use: Floats
    """[N, M] mu"""
    scaled: Floats
    """[N, M] mu_ij / u_j, for the generalised simplex."""
    room: Floats
    """[M] u"""
    supply: Floats
    """[N] a_i (transport)"""
    inverse: Floats
    """[N] 1 / a_i"""
    capacity: Floats
    """[M] u_j / d_j (transport), or 1 (generalised)"""
    price_scale: Floats
    """[M] turns a dual of the kernel into a price per unit of capacity."""
    usable: Ints
    """[N] 1 if the agent has a pair that takes capacity."""
    task_score: Floats
    """[M, M] g"""
    both: Floats
    """[M, M] g + g'"""


@maker
def make_instance(n: int, m: int, with_tasks: bool) -> Instance:
    """Room for n agents and m tasks, and for task scores if asked."""
    return lay_instance(np.empty((4, n, m)), with_tasks)


@maker
def lay_instance(space: Floats, with_tasks: bool) -> Instance:
    """The same with its large arrays in `space` [4 or more, N, M], which need not be cleared."""
    n, m = space.shape[1], space.shape[2]
    k = m if with_tasks else 0
    return Instance(
        np.zeros(1, FACTS),
        np.zeros(n, np.int64),
        np.zeros(m, np.int64),
        space[0],
        space[1],
        space[2],
        space[3],
        np.zeros(m),
        np.zeros(n),
        np.zeros(n),
        np.zeros(m),
        np.zeros(m),
        np.zeros(n, np.int64),
        np.zeros((k, k)),
        np.zeros((k, k)),
    )


@leaf
def fill_instance(it: Instance, given: Given, b: int, assign_all: bool) -> bool:
    """Fill `it` from instance b of what is given; False if an entry is not one to be worked with."""
    facts, agents = it.facts[0], it.agents
    n = 0
    for i in range(given.agent_alive.shape[1]):
        if given.agent_alive[b, i]:
            agents[n] = i
            n += 1
    sound, closed, unlimited, m = fill_tasks(it, given, b)
    facts.n, facts.m, facts.kind, facts.free, facts.restricted = n, m, TRANSPORT, 0, 0
    low, high = fill_scores(it, given, b)
    # -inf forbids a pair; NaN fails every comparison.
    sound &= high <= LARGEST and low >= -LARGEST
    steepest = 0.0
    facts.quadratic = 0
    if given.task_scores.shape[0] > 0:
        steepest = fill_task_scores(it, given, b)
        sound &= steepest <= LARGEST
        facts.quadratic = COUNTED
    plain = given.contributions.shape[0] == 0
    smallest, largest = (1.0, 1.0) if plain else fill_uses(it, given, b)
    sound &= largest <= LARGEST
    if given.by_load and facts.quadratic != 0 and not plain:
        steepest = weigh_task_scores(it, steepest, largest)
        sound &= steepest <= LARGEST
    facts.idle = 0.0
    if assign_all and high > -np.inf:
        # More than any change of the other assignments could be worth.
        facts.idle = min(0.0, low) - (n + 1) * (high - low + 2.0 * n * steepest + max(abs(low), abs(high)))
    if plain:
        fill_plain(it, closed)
        return sound
    if sound and smallest < SMALLEST:
        for i in range(n):
            for j in range(m):
                sound &= valid_amount(it.use[i, j])
    if sound:
        fill_contributions(it, largest, closed or unlimited or smallest == 0.0)
    return sound


@leaf
def fill_tasks(it: Instance, given: Given, b: int) -> tuple[bool, bool, bool, int]:
    """List the living tasks with their room: whether all are sound, any has none, any has no limit; and how many."""
    tasks, room = it.tasks, it.room
    sound, closed, unlimited, m = True, False, False, 0
    for j in range(given.task_alive.shape[1]):
        if given.task_alive[b, j]:
            tasks[m] = j
            room[m] = given.capacities[b, j]
            closed |= room[m] == 0.0
            unlimited |= room[m] == np.inf
            sound &= valid_amount(room[m]) or room[m] == np.inf
            m += 1
    return sound, closed, unlimited, m


@leaf
def fill_scores(it: Instance, given: Given, b: int) -> tuple[float, float]:
    """Copy the scores, -inf for what is not allowed; the least finite and the largest one, NaN if there is a NaN."""
    n, m, score, agents, tasks = it.facts[0].n, it.facts[0].m, it.score, it.agents, it.tasks
    allowed = given.allowed
    low, high, sound = np.inf, -np.inf, True
    for i in range(n):
        if allowed.shape[0] > 0:
            gather_allowed(score, i, given.scores, allowed, b, agents[i], tasks, m)
        else:
            gather(score, i, given.scores, b, agents[i], tasks, m)
        least, most = extent(score[i, :m])
        sound &= least == least
        low, high = min(low, least), max(high, most)
    if low == -np.inf:
        low = np.inf
        for i in range(n):
            for j in range(m):
                low = min(low, score[i, j] if score[i, j] > -np.inf else np.inf)
    return low, high if sound else np.nan


@leaf
def fill_task_scores(it: Instance, given: Given, b: int) -> float:
    """Copy the task scores; the largest size of one, NaN if there is a NaN."""
    m, tasks, own, both = it.facts[0].m, it.tasks, it.task_score, it.both
    steepest, sound = 0.0, True
    for j in range(m):
        gather(own, j, given.task_scores, b, tasks[j], tasks, m)
        for k in range(m):
            sound &= abs(own[j, k]) <= LARGEST
            steepest = max(steepest, abs(own[j, k]))
    for j in range(m):
        for k in range(m):
            both[j, k] = own[j, k] + own[k, j]
    return steepest if sound else np.nan


@leaf
def fill_uses(it: Instance, given: Given, b: int) -> tuple[float, float]:
    """Copy the contributions; the least and the largest one, NaN if there is a NaN.

    A pair that is not allowed gets the contribution of the agent's first allowed one, so that contributions which
    depend on the agent alone still do.
    """
    n, m, use, agents, tasks = it.facts[0].n, it.facts[0].m, it.use, it.agents, it.tasks
    allowed = given.allowed
    smallest, largest, sound = np.inf, 0.0, True
    for i in range(n):
        gather(use, i, given.contributions, b, agents[i], tasks, m)
        if allowed.shape[0] > 0:
            usual, known = 1.0, False
            for j in range(m):
                if not known and allowed[b, agents[i], tasks[j]]:
                    usual, known = use[i, j], True
            for j in range(m):
                if not allowed[b, agents[i], tasks[j]]:
                    use[i, j] = usual
        least, most = extent(use[i, :m])
        sound &= least == least
        smallest, largest = min(smallest, least), max(largest, most)
    return smallest, largest if sound else np.nan


@kernel
def weigh_task_scores(it: Instance, steepest: float, largest: float) -> float:
    """Let task scores act on loads: the most that a pair of agents then earns.

    Where a task gets the same from everyone, loads are multiples of numbers of agents, and g takes the factors.
    """
    n, m, use = it.facts[0].n, it.facts[0].m, it.use
    for i in range(1, n):
        for j in range(m):
            if use[i, j] != use[0, j]:
                it.facts[0].quadratic = LOADED
                return steepest * largest * largest
    if n > 0:
        for j in range(m):
            for k in range(m):
                it.task_score[j, k] *= use[0, j] * use[0, k]
                it.both[j, k] *= use[0, j] * use[0, k]
    return steepest * largest * largest


@leaf
def gather(target: Floats, row: int, source: Floats, b: int, source_row: int, columns: Ints, m: int) -> None:
    """target[row, :m] = source[b, source_row, columns[:m]]"""
    if m > 0 and columns[m - 1] == m - 1:
        # No gaps: a plain copy, which the compiler vectorises.
        for j in range(m):
            target[row, j] = source[b, source_row, j]
    else:
        for j in range(m):
            target[row, j] = source[b, source_row, columns[j]]


@leaf
def gather_allowed(
    target: Floats, row: int, source: Floats, allowed: Bools, b: int, source_row: int, columns: Ints, m: int
) -> None:
    """The same, -inf where the pair is not allowed."""
    if m > 0 and columns[m - 1] == m - 1:
        for j in range(m):
            target[row, j] = source[b, source_row, j] if allowed[b, source_row, j] else -np.inf
    else:
        for j in range(m):
            k = columns[j]
            target[row, j] = source[b, source_row, k] if allowed[b, source_row, k] else -np.inf


@leaf
def valid_amount(value: float) -> bool:
    """Whether a contribution or capacity can be worked with."""
    return value == 0.0 or (value >= SMALLEST and value <= LARGEST)


@kernel
def fill_plain(it: Instance, closed: bool) -> None:
    """Derived arrays when every contribution is 1; `closed` if some task has no capacity."""
    n, m, room, score, arc, use = it.facts[0].n, it.facts[0].m, it.room, it.score, it.arc, it.use
    for j in range(m):
        it.price_scale[j] = 1.0
        it.capacity[j] = min(room[j], n + 1.0)
    for i in range(n):
        it.usable[i] = 1
        it.supply[i] = 1.0
        it.inverse[i] = 1.0
        for j in range(m):
            use[i, j] = 1.0
        if closed:
            for j in range(m):
                arc[i, j] = score[i, j] if room[j] > 0.0 else -np.inf
    it.facts[0].restricted = 1 if closed else 0


@leaf
def fill_contributions(it: Instance, largest: float, special: bool) -> None:
    """Derived arrays for contributions of any kind: find out which, and which pairs take capacity at all.

    `special` if some contribution is 0 or some capacity is 0 or unlimited.
    """
    n, m, room, score, arc, use = it.facts[0].n, it.facts[0].m, it.room, it.score, it.arc, it.use
    capacity, price_scale, scaled = it.capacity, it.price_scale, it.scaled
    kind = TRANSPORT if split(it, n, m, largest) else GENERALISED
    if kind == TRANSPORT and not special:
        for i in range(n):
            it.usable[i] = 1
        for j in range(m):
            capacity[j] = room[j] * price_scale[j]
        return
    if kind == GENERALISED:
        for i in range(n):
            it.supply[i] = 1.0
            it.inverse[i] = 1.0
    for j in range(m):
        capacity[j] = 0.0
    for i in range(n):
        for j in range(m):
            capacity[j] += use[i, j]
    for j in range(m):
        # No more than twice what all agents together could use: the same problem, without huge ratios.
        usable_room = min(room[j], 2.0 * capacity[j])
        if kind == TRANSPORT:
            capacity[j] = usable_room * price_scale[j]
        else:
            capacity[j] = 1.0 if usable_room > 0.0 else 0.0
            price_scale[j] = 1.0 / usable_room if usable_room > 0.0 else 0.0
    free = 0
    for i in range(n):
        usable = 0
        for j in range(m):
            arc[i, j] = -np.inf
            if kind == GENERALISED:
                scaled[i, j] = 0.0
            if use[i, j] == 0.0:
                free = 1
            elif room[j] > 0.0:
                arc[i, j] = score[i, j]
                usable = 1
                if kind == GENERALISED:
                    scaled[i, j] = use[i, j] * price_scale[j]
        it.usable[i] = usable
        if usable == 0:
            it.supply[i] = 0.0
    facts = it.facts[0]
    facts.kind, facts.free, facts.restricted = kind, free, 1


@kernel
def split(it: Instance, n: int, m: int, largest: float) -> bool:
    """Whether contributions are a_i d_j; then sets supply a_i, inverse 1/a_i and price_scale 1/d_j (0 for d_j = 0)."""
    if largest == 0.0:
        it.supply[:n] = 0.0
        it.inverse[:n] = 0.0
        it.price_scale[:m] = 0.0
        return True
    use, supply, price_scale = it.use, it.supply, it.price_scale
    pivot_i, pivot_j = n - 1, 0
    while use[pivot_i, pivot_j] != largest:
        pivot_i, pivot_j = (pivot_i, pivot_j + 1) if pivot_j + 1 < m else (pivot_i - 1, 0)
    for j in range(m):
        price_scale[j] = use[pivot_i, j] / largest
    for i in range(n):
        own = use[i, pivot_j]
        supply[i] = own
        agree = True
        for j in range(m):
            product = own * price_scale[j]
            agree &= abs(use[i, j] - product) <= SPLIT_TOLERANCE * product
        if not agree:
            return False
        it.inverse[i] = 1.0 / own if own > 0.0 else 0.0
    for j in range(m):
        price_scale[j] = 1.0 / price_scale[j] if price_scale[j] > 0.0 else 0.0
    return True


@leaf
def weight(it: Instance, i: int, j: int) -> float:
    """What agent i counts for on task j, to the task scores."""
    return it.use[i, j] if it.facts[0].quadratic == LOADED else 1.0


@leaf
def fits(load: float, use: float, room: float) -> bool:
    """Whether a contribution `use` can join a load within the capacity `room`."""
    return use == 0.0 or load + use <= room * (1.0 + CAPACITY_TOLERANCE)
