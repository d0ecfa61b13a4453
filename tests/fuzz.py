"""Random calls of every function that the compiled core binds, for the sanitizers to watch; answers are checked too.

A trial makes one instance; its name, seed and number reproduce it: `try_one("routes", 0, 17)`.
"""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import ModuleType
from typing import Any
from unittest.mock import patch

import numpy as np

import muster
from muster.assign.solver import Solver
from muster.data import BatchObservation, Problem
from muster.errors import InputError
from muster.kernels import core
from tests.soak import solver

Trial = Callable[[np.random.Generator], None]


def _some(rng: np.random.Generator, share: float) -> bool:
    return bool(rng.random() < share)


def try_minimums(rng: np.random.Generator) -> None:
    """Minimums, fixed agents and a previous plan; the answer keeps every constraint."""
    n, m = rng.integers(1, 7, 2)
    problem: dict[str, Any] = {"scores": rng.normal(0.5, 1.0, (n, m))}
    problem["minimums"] = float(rng.integers(1, 3)) if _some(rng, 0.2) else rng.choice([0.0, 1.0, 1.5, 2.0, 3.0], m)
    if _some(rng, 0.5):
        problem["contributions"] = rng.choice([0.0, 0.5, 1.0, 2.0], (n, m))
        problem["capacities"] = problem["minimums"] + rng.choice([0.0, 1.0, np.inf], m)
    if _some(rng, 0.3):
        problem["allowed"] = rng.random((n, m)) < 0.8
    if _some(rng, 0.2):
        problem["fixed"] = {0: int(rng.integers(m))}
    how: dict[str, Any] = {"method": str(rng.choice(["lp", "quad"])), "assign_all": _some(rng, 0.2)}
    if how["method"] == "quad":
        problem["task_scores"] = rng.normal(0.0, 0.3, (m, m))
    before = {"previous": rng.integers(-1, m, n), "switch_cost": 0.2} if _some(rng, 0.3) else {}
    try:
        effort = str(rng.choice(["paper", "fast", "best", "exact"]))
        found = muster.assign(**problem, **how, **before, effort=effort, time_limit=0.5 if effort == "exact" else None)
    except InputError:
        return  # a task that cannot be served, or an agent that may not take the task given to it
    how["assign_all"] = False  # who is left out may fit where a minimum is not reached
    verdict = muster.check_plan(problem, found.assignment, **how)
    assert verdict.feasible, verdict.broken


def try_pairs(rng: np.random.Generator) -> None:
    """A table of pairs, solved as one however small it is."""
    n, m = (int(count) for count in rng.integers(1, 12, 2))
    pairs = [(i, j) for i in range(n) for j in range(m) if _some(rng, 0.5)] or [(0, 0)]
    same = _some(rng, 0.5)
    use = np.ones(len(pairs)) if same else rng.choice([0.0, 0.5, 1.0, 2.0], len(pairs))
    score = rng.integers(-2, 5, len(pairs)).astype(np.float64) if _some(rng, 0.3) else rng.normal(0.5, 1.0, len(pairs))
    table = [
        {"agent": i, "task": j, "score": float(h), "contribution": float(mu)}
        for (i, j), h, mu in zip(pairs, score, use, strict=True)
    ]
    capacities = rng.choice([0.0, 1.0, 2.0, 3.0, np.inf], m)
    more: dict[str, Any] = {}
    if _some(rng, 0.3):
        more = {"previous": {i: int(rng.integers(m)) for i in range(n)}, "switch_cost": float(rng.random())}
    elif _some(rng, 0.3):
        more["minimums"] = np.minimum(capacities, rng.choice([0.0, 1.0, 2.0], m))
    with patch("muster.assign.call.DENSE", 0):
        more |= {"capacities": capacities, "agents": range(n), "tasks": range(m), "assign_all": _some(rng, 0.3)}
        found = muster.assign(table, method="lp", **more)
    load = np.zeros(m)
    for (i, j), mu in zip(pairs, use, strict=True):
        load[j] += mu * (found.assignment[i] == j)
    assert (load <= capacities * (1 + 1e-9)).all()


def try_routes(rng: np.random.Generator) -> None:
    """Routes, begun anew or from others, with ends, contributions and pairs that are not allowed."""
    n, m = (int(count) for count in rng.integers(1, 9, 2))
    more: dict[str, Any] = {}
    if _some(rng, 0.4):
        more["end_scores"] = -rng.random((n, m))
    if _some(rng, 0.3):
        more["allowed"] = rng.random((n, m)) < 0.7
    if _some(rng, 0.3):
        more["contributions"] = rng.choice([0.5, 1.0, 2.0], (n, m))
        more["capacities"] = rng.choice([0.0, 1.0, 2.0, np.inf], m)
    if _some(rng, 0.3):
        stops = rng.permutation(m)
        more["routes"] = [stops[i::n].tolist() for i in range(n)]
    low = -1.0 if _some(rng, 0.1) else 0.0
    more["objective"] = "total" if _some(rng, 0.5) else "makespan"
    found = muster.assign(-rng.uniform(low, 1.0, (n, m)), -rng.uniform(low, 1.0, (m, m)), method="routes", **more)
    for i, route in enumerate(found.routes):
        assert len(set(route)) == len(route)
        assert found.assignment[i] == (route[0] if route else -1)


def try_batch(rng: np.random.Generator) -> None:
    """A padded batch with masks on two threads: as each instance by itself."""
    batch, n, m = (int(count) for count in rng.integers(1, 12, 3))
    method = str(rng.choice(["amax", "lp", "quad"]))
    problem = Problem(
        scores=rng.normal(size=(batch, n, m)),
        task_scores=rng.normal(0.0, 0.2, (batch, m, m)) if method == "quad" else None,
        contributions=rng.choice([0.5, 1.0, 2.0], (batch, n, m)),
        capacities=rng.choice([0.0, 1.0, 2.5], (batch, m)),
        agent_alive=rng.random((batch, n)) < 0.8,
        task_alive=rng.random((batch, m)) < 0.8,
    )
    effort = str(rng.choice(["paper", "fast", "best"]))
    together = Solver(method, effort, threads=2, certify=_some(rng, 0.5))(problem)
    b = int(rng.integers(batch))
    alone = Problem(
        **{
            name: None if (array := getattr(problem, name)) is None else array[b : b + 1]
            for name in ("scores", "task_scores", "contributions", "capacities", "agent_alive", "task_alive")
        }
    )
    found = Solver(method, effort)(alone)
    if found.status[0] != "optimal":  # where it is, "fast" may prove more if it certifies
        return
    assert together.objective[b] <= found.objective[0] + 1e-9


def try_service(rng: np.random.Generator) -> None:
    """Bodies of JSON, whole and damaged."""
    from muster.service.body import RequestError, parse

    shape = rng.integers(0, 6, int(rng.integers(1, 4)))
    numbers = rng.normal(size=shape) * 10.0 ** rng.integers(-20, 20)
    value = (np.rint(numbers) if _some(rng, 0.3) else numbers).tolist()
    body = bytearray(json.dumps({"scores": value, "of": {"more": [value, 1, "é", None]}}).encode())
    data = parse(bytes(body))
    if shape.all():
        assert np.array_equal(np.asarray(data["scores"]), np.asarray(value))
    for _ in range(int(rng.integers(1, 4))):
        place = int(rng.integers(len(body)))
        body[place : place + int(rng.integers(3))] = rng.choice(
            list(b'[]{}",:-.0123456789eENatrue \xff\x00'), 1
        ).tobytes()
    with suppress(RequestError):
        parse(bytes(body))
    rows = rng.normal(size=(int(rng.integers(6)), int(rng.integers(1, 6)))).astype(np.float32)
    low, high = np.full(rows.shape[1], -9.0, np.float32), np.full(rows.shape[1], 9.0, np.float32)
    assert core.service.are_within(rows, low, high)


def observation(rng: np.random.Generator) -> BatchObservation:
    """A batch with blocks of any width, also 0."""
    batch, n, m = rng.integers(1, 7, 3)
    agent, task, pair, task_pair, shared = rng.integers(0, 5, 5)

    def block(*shape: int) -> Any:
        return rng.normal(size=shape).astype(np.float32)

    return BatchObservation(
        agent_features=block(batch, n, agent),
        task_features=block(batch, m, task),
        pair_features=block(batch, n, m, pair),
        task_pair_features=block(batch, m, m, task_pair),
        agent_alive=rng.random((batch, n)) < 0.8,
        task_alive=rng.random((batch, m)) < 0.8,
        contributions=np.ones((batch, n, m)),
        capacities=np.ones((batch, m)),
        allowed=rng.random((batch, n, m)) < 0.8 if _some(rng, 0.5) else None,
        prior=rng.normal(size=(batch, n, m)) if _some(rng, 0.5) else None,
        global_features=block(batch, shared) if shared else None,
    )


def try_models(rng: np.random.Generator) -> None:
    """Forward and backward passes of the direct model and the critic, or the context model."""
    from muster.models.context_model import ContextModel
    from muster.models.critic import EntityCritic, critic_shapes, init_critic
    from muster.models.direct import DirectModel, init_parameters
    from muster.models.pair_scale import exp
    from muster.models.spec import ModelSpec

    batch = observation(rng)
    widths = [block.shape[-1] for block in (batch.agent_features, batch.task_features)]
    shared = 0 if batch.global_features is None else batch.global_features.shape[1]
    spec = ModelSpec(
        "context" if _some(rng, 0.3) else "dm",
        True,
        *widths,
        batch.pair_features.shape[-1],
        batch.task_pair_features.shape[-1],
        hidden=int(rng.integers(1, 40)),
        global_width=shared,
        prior=batch.prior is not None,
    )
    if spec.kind == "context":
        ContextModel(spec, init_parameters(spec, rng))(batch)
        return
    model = DirectModel(init_parameters(spec, rng), task_scores=True)
    (h, g), gates = model.forward(batch)
    assert g is not None
    model.gradient(batch, (np.ones_like(h), np.ones_like(g)), gates=gates if _some(rng, 0.5) else None)
    critic = EntityCritic(init_critic(critic_shapes(*widths, shared, int(rng.integers(1, 40))), rng))
    values, *_ = critic.gradient(batch, rng.normal(size=batch.batch).astype(np.float32))
    assert np.array_equal(values, critic(batch))
    assert np.isfinite(exp(-np.abs(h))).all()


def try_learning(rng: np.random.Generator) -> None:
    """Likelihoods of choices and their slopes, random numbers, and a step of Adam."""
    from muster.learning.losses.choices import NO_MINIMUMS, Choices
    from muster.learning.optimiser import Optimiser
    from muster.policy.noise import draw_exponentials, draw_normals

    states, n, m = (int(count) for count in rng.integers(1, 7, 3))
    choices = Choices(
        assignment=rng.integers(-1, m, (states, n)),
        history=rng.normal(size=(states, n, m)).astype(np.float32),
        contributions=rng.choice([0.0, 0.5, 1.0], (states, n, m)),
        capacities=rng.choice([0.0, 1.0, 3.0], (states, m)),
        agent_alive=rng.random((states, n)) < 0.8,
        open=rng.random((states, n, m)) < 0.8,
        idling=_some(rng, 0.5),
        exchanging=_some(rng, 0.5),
        minimums=rng.choice([0.0, 1.0], (states, m)) if _some(rng, 0.3) else NO_MINIMUMS,
    )
    h = rng.normal(size=(states, n, m)).astype(np.float32)
    g = rng.normal(size=(states, m, m)).astype(np.float32) if _some(rng, 0.5) else None
    before = choices.likelihood((h, g), 0.5)
    assert (before <= 1e-9).all()
    choices.clipped_loss((h, g), 0.5, before, rng.normal(size=states), 0.2, 0.01)
    assert 0.0 <= choices.share_with_moves() <= 1.0
    seeds = rng.integers(1, 2**63, states, dtype=np.uint64)
    assert np.isfinite(draw_normals(seeds, m)).all()
    assert (draw_exponentials(seeds, m) >= 0.0).all()
    optimiser = Optimiser({"theta": h[0]}, max_grad_norm=1.0)
    optimiser.add({"theta": h[-1]})
    optimiser.step(0.01)


def _run(rng: np.random.Generator, name: str, steps: int, with_planes: bool = False) -> None:
    """Some decisions of an environment, all drawn or all a baseline's; half-way from a copy with other chances."""
    from muster.policy.names import resolve

    env = muster.make(name, int(rng.integers(1, 4)), seed=int(rng.integers(1000)))
    slots = np.arange(env.n_envs)
    policy = None
    if _some(rng, 0.4):
        env.show(pair_features=_some(rng, 0.7), planes=with_planes and _some(rng, 0.5), prior=_some(rng, 0.5))
    else:
        named = [baseline for baseline in env.baselines() if baseline != "topline" or "mud" not in name]
        policy = resolve(str(rng.choice(named)), env)
        policy.reset(slots, slots.astype(np.uint64))
    for step in range(steps):
        batch = env.observe()
        if step == steps // 2 and policy is None:
            env.set_state(env.get_state())
            env.reseed(rng.integers(1, 2**62, env.n_envs, dtype=np.uint64))
        if policy is None:
            assignment = _draw_tasks(rng, batch)
        else:
            assignment = (policy.actions if env.reads_reasons else policy.act)(batch)
        result = env.step(assignment)
        ended = np.flatnonzero(result.terminated | result.truncated)
        if ended.size:
            env.reset(ended, rng.integers(1, 2**62, ended.size, dtype=np.uint64))
            if policy is not None:
                policy.reset(ended, ended.astype(np.uint64))


def _draw_tasks(rng: np.random.Generator, batch: BatchObservation) -> Any:
    """Living tasks that the agents may take, or none."""
    open_to = batch.task_alive[:, None, :] & (True if batch.allowed is None else batch.allowed)
    tasks = np.where(batch.agent_alive, rng.integers(-1, batch.task_alive.shape[1], batch.agent_alive.shape), -1)
    fits = np.broadcast_to(open_to, (*tasks.shape, open_to.shape[2]))
    return np.where(np.take_along_axis(fits, np.maximum(tasks, 0)[..., None], 2)[..., 0], tasks, -1)


def try_rescue(rng: np.random.Generator) -> None:
    """Rescue on small grids, in mud too."""
    n, m = rng.integers(1, 6, 2)
    mud = f",mud={rng.random() / 2:.2f}" if _some(rng, 0.4) else f",random_moves={_some(rng, 0.5)}"
    placement = str(rng.choice(["distinct", "distinct-within-type", "independent"]))
    _run(rng, f"rescue:{n}x{m},grid={rng.integers(4, 9)},placement={placement},max_steps=8{mud}", 10, with_planes=True)


def try_battle(rng: np.random.Generator) -> None:
    """Battles, with settings of the engine."""
    scenario = f"{rng.choice(['m', 'w'])}{rng.integers(1, 6)}v{rng.integers(1, 6)}"
    more = f"latency={rng.integers(0, 6)},bot_step={rng.choice([1, 2, 3, 6])},first_order={rng.integers(-6, 12)}"
    name = f"battle:{scenario},{more},fog={_some(rng, 0.5)},standing={rng.integers(0, 9)}"
    _run(rng, name, 12, with_planes=True)
    battle = muster.make(name, 1)
    battle.kernel.run_frames(np.full((1, battle.n_agents), -2), int(rng.integers(7)), 0, 1)
    x, y = (int(number) for number in rng.integers(-9999, 10_000, 2))
    assert core.battle.length(x, y) >= 0
    assert 0 <= core.battle.direction(x, y) < 256
    order = np.arange(rng.integers(1, 40))
    core.battle.hash_order(rng.integers(0, 1 << 30, order.size) * 16, order)
    assert len(set(order.tolist())) == order.size


def try_fleet(rng: np.random.Generator) -> None:
    """Vehicles in both cities."""
    assert core.fleet.meet(float(10 * rng.random()), float(10 * rng.random()))[0] >= 0.0
    _run(rng, f"fleet:{rng.integers(1, 12)},city={rng.choice(['small', 'large'])},wait={rng.integers(0, 10)}", 8)


def try_pursuit(rng: np.random.Generator) -> None:
    """Pursuit on small grids."""
    n, m = rng.integers(1, 6, 2)
    more = f"grid={rng.integers(4, 9)},walls={_some(rng, 0.5)},needed={rng.integers(1, n + 1)},max_steps=8"
    _run(rng, f"pursuit:{n}x{m},{more},sight={rng.integers(1, 9)}", 10)


TRIALS: dict[str, tuple[float, Trial]] = {
    "minimums": (0.06, try_minimums),
    "pairs": (0.08, try_pairs),
    "routes": (0.05, try_routes),
    "batches": (0.03, try_batch),
    "service": (0.10, try_service),
    "models": (0.03, try_models),
    "learning": (0.04, try_learning),
    "rescue": (0.006, try_rescue),
    "battle": (0.001, try_battle),
    "fleet": (0.001, try_fleet),
    "pursuit": (0.006, try_pursuit),
}
"""Share of the instances, and the function that makes and tries one; the rest is `tests.soak.solver`."""


def try_one(trial: str, seed: int, number: int) -> None:
    """One trial."""
    TRIALS[trial][1](np.random.default_rng([seed, number, *trial.encode()]))


def campaign(count: int, seed: int = 0) -> tuple[Counter[str], list[str]]:
    """Try so many instances: the count of each trial, and the failures."""
    counts = Counter({trial: max(1, round(share * count)) for trial, (share, _) in TRIALS.items()})
    counts["single instances"] = max(1, count - counts.total())
    report = solver.campaign(counts["single instances"], seed)
    bad = report.bad
    for trial in TRIALS:
        for number in range(counts[trial]):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    try_one(trial, seed, number)
            except Exception as error:
                bad.append(f"{trial} {number} of seed {seed}: {type(error).__name__}: {error}")
    return counts, bad


def bound_functions() -> Iterator[tuple[Any, str]]:
    """(owner, name) of every function, class and method that the core binds."""
    for module in vars(core).values():
        if not isinstance(module, ModuleType):
            continue
        for name, bound in vars(module).items():
            if callable(bound) and not name.startswith("__"):
                yield module, name
            if isinstance(bound, type):
                yield from (
                    (bound, name) for name in vars(bound) if callable(getattr(bound, name)) and name[:2] != "__"
                )


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """Count the calls of each bound function meanwhile."""
    calls: Counter[str] = Counter()

    def wrap(label: str, bound: Any) -> Any:
        def call(*arguments: Any, **named: Any) -> Any:
            calls[label] += 1
            return bound(*arguments, **named)

        return call

    found = [(owner, name, getattr(owner, name)) for owner, name in bound_functions()]
    for owner, name, bound in found:
        label = f"{getattr(owner, '__module__', '')}.{owner.__name__}.{name}".partition(f"{core.__name__}.")[2]
        calls[label] = 0
        setattr(owner, name, wrap(label, bound))
    try:
        yield calls
    finally:
        for owner, name, bound in found:
            setattr(owner, name, bound)
