"""POST /act: from a body to the observations that a policy decides on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from pydantic import Field, TypeAdapter

from muster.assign.solver import Solver
from muster.assign.switching import ALONE
from muster.data import BatchObservation, Floats32
from muster.errors import suggestion
from muster.service.errors import clip, describe, refuse
from muster.service.policies import Policies, Served
from muster.service.schema import CONFIG, ActBody, Array, SituationBody, check
from muster.service.solve import check_size

QUICK_PAIRS = 1000
"""Pairs of agents and tasks, and of tasks, that are decided on without a thread."""
LARGEST = 1e30
"""Larger features are refused: models compute in single precision."""
Feature = Annotated[float, Field(ge=-LARGEST, le=LARGEST)]
OBJECTS = TypeAdapter[Any](list[dict[str, Feature]], config=CONFIG)
COLUMNS = {
    1: TypeAdapter[Any](Annotated[Any, Array(list[Feature], 1)], config=CONFIG),
    2: TypeAdapter[Any](Annotated[Any, Array(list[list[Feature]], 2)], config=CONFIG),
}
"""A feature's values, by their number of dimensions."""
AXES = {
    **{"capacities": "m", "minimums": "m", "contributions": "nm", "allowed": "nm"},
    **{"prior": "nm", "task_prior": "mm", "switch_cost": "nm"},
}
"""Arrays of a situation: by agent (n), task (m) or pair."""


@dataclass(frozen=True, slots=True)
class Situation:
    """An observation of n agents and m tasks, and their names."""

    fields: dict[str, Any]
    """Those of an Observation that were given, as arrays."""
    n: int
    m: int
    agents: list[str] | None
    tasks: list[str] | None

    def task_names(self, assignment: list[int]) -> list[int | str | None]:
        """Each agent's task, by name if tasks have names."""
        names = self.tasks or range(self.m)
        return [None if task < 0 else names[task] for task in assignment]

    def agent_name(self, agent: int) -> str:
        """The agent's name, or its number."""
        return str(agent) if self.agents is None else self.agents[agent]


@dataclass(frozen=True, slots=True)
class ActRequest:
    """A body of /act that was read."""

    policy: Served
    solver: Solver
    situations: list[Situation]
    is_quick: bool
    """Whether it is decided in about a millisecond at most."""
    is_list: bool
    """Whether the body has a list of situations."""
    scores: bool
    """Whether the answer has the scores."""


def read_request(data: dict[str, Any], policies: Policies, size_limit: int) -> ActRequest:
    """The request in a body of /act; RequestError if it is not valid."""
    body = ActBody.read(data)
    served = policies.find(body.policy)
    if (body.situation is None) == (body.situations is None):
        refuse("give either situation (one) or situations (a list)", "situation")
    given = body.situations if body.situation is None else [body.situation]
    situations: list[Situation] = []
    left, task_pairs = size_limit, 0
    for k, one in enumerate(given or []):
        situation = read_situation(one, f"situations[{k}]" if body.situation is None else "situation", served, left)
        situations.append(situation)
        left -= max(1, situation.n * situation.m)
        task_pairs += situation.m**2
    solver = served.solver(body.method, body.effort)
    is_quick = solver.method != "routes" and solver.effort in ("paper", "fast")
    is_quick = is_quick and size_limit - left + task_pairs <= QUICK_PAIRS
    return ActRequest(served, solver, situations, is_quick, body.situation is None, body.scores)


def read_situation(body: SituationBody, where: str, served: Served, size_limit: int) -> Situation:
    """A situation as an observation; RequestError where it does not fit the policy or itself."""
    names, spec = served.features, served.policy.spec
    n = count(body.agents, body.pairs, 0, f"{where}.agents")
    m = count(body.tasks, body.pairs, 1, f"{where}.tasks")
    check_size(n, m, size_limit)
    if spec.task_scores:
        check_size(m, m, size_limit)
    fields: dict[str, Any] = {
        "agent_features": read_objects(body.agents, names.agent, f"{where}.agents", n),
        "task_features": read_objects(body.tasks, names.task, f"{where}.tasks", m),
        "pair_features": read_columns(body.pairs, names.pair, f"{where}.pairs", (n, m)),
        "task_pair_features": read_columns(body.task_pairs, names.task_pair, f"{where}.task_pairs", (m, m)),
    }
    if names.global_ or body.global_ is not None:
        fields["global_features"] = read_objects([body.global_], names.global_, f"{where}.global", 1)[0]
    shapes = {"m": (m,), "nm": (n, m), "mm": (m, m)}
    for key, reads in (("prior", spec.reads_prior), ("task_prior", spec.task_prior)):
        if reads != (getattr(body, key) is not None):
            problem = "is missing" if reads else f"would be ignored: the policy {served.name} reads none"
            refuse(f"{where}.{key} {problem}", f"{where}.{key}")
    for key, axes in AXES.items():
        if (value := getattr(body, key)) is not None:
            fields[key] = np.full(shapes[axes], value) if isinstance(value, float) else value
            check_shape(fields[key], shapes[axes], f"{where}.{key}")
    if "minimums" in fields:
        fields.setdefault("capacities", np.maximum(1.0, fields["minimums"]))
    for key, called, length in (("agent_names", body.agent_names, n), ("task_names", body.task_names, m)):
        if called is not None and len(called) != length:
            refuse(f"{where}.{key} must have {length} entries, got {len(called)}", f"{where}.{key}")
    if body.previous is not None:
        fields["previous"] = read_previous(body, f"{where}.previous", n, m)
    costs = fields.get("switch_cost")
    if costs is not None and np.min(costs, initial=0.0) < 0.0:
        refuse(f"{where}.switch_cost must not be negative", f"{where}.switch_cost")
    if costs is not None and body.previous is None and costs.any():
        refuse(f"{where}.switch_cost: {ALONE}", f"{where}.switch_cost")
    return Situation(fields, n, m, body.agent_names, body.task_names)


def read_previous(body: SituationBody, where: str, n: int, m: int) -> Any:
    """[N] the previous task of each agent, -1 for none and for a task that is gone."""
    given: Any = body.previous
    if isinstance(given, dict):
        agents = body.agent_names or []
        if unknown := [name for name in given if name not in agents]:
            refuse(f"{where}: no agent {clip(unknown[0])!r} in agent_names", where)
        given = [given.get(name) for name in agents]
    if len(given) != n:
        refuse(f"{where} must have {n} entries, got {len(given)}", where)
    index = {name: k for k, name in enumerate(body.task_names or ())}
    tasks = [index.get(task, -1) if isinstance(task, str) else -1 if task is None else task for task in given]
    for k, task in enumerate(tasks):
        if task >= m:
            refuse(f"{where}[{k}] must be a task from 0 to {m - 1} or null, got {task}", f"{where}[{k}]")
    return np.array(tasks, np.int64)


def count(objects: Any, pairs: Any, axis: int, where: str) -> int:
    """The number of objects: the length of their list or columns; without either, that of the features of pairs."""
    if isinstance(objects, list):
        return len(objects)
    if isinstance(objects, dict) and objects:
        column = next(iter(objects.values()))
        return len(column) if isinstance(column, (list, np.ndarray)) else 0
    block = next(iter(pairs.values()), None) if isinstance(pairs, dict) else None
    if objects is None and isinstance(block, np.ndarray) and block.ndim == 2:
        return int(block.shape[axis])
    refuse(f"{where} must be a list of objects, or an object of columns, got {describe(objects)}", where)


def read_objects(value: Any, names: Sequence[str], where: str, n: int) -> Floats32:
    """[N, F] features of objects, given as N objects {name: number} or as columns {name: N numbers}."""
    if not isinstance(value, list):
        return read_columns(value, names, where, (n,))
    for i, row in enumerate(value):
        if isinstance(row, dict):
            check_names(row, names, f"{where}[{i}]")
    rows = check(OBJECTS.validate_python, value, where)
    return np.array([[row[name] for name in names] for row in rows], np.float32).reshape(n, len(names))


def read_columns(value: Any, names: Sequence[str], where: str, shape: tuple[int, ...]) -> Floats32:
    """[*shape, F] features, given as {name: lists of that shape}."""
    value = {} if value is None else value
    if not isinstance(value, dict):
        refuse(f"{where} must be an object of features, got {describe(value)}", where)
    check_names(value, names, where)
    block = np.empty((*shape, len(names)), np.float32)
    for k, name in enumerate(names):
        column = value[name]
        if type(column) is not np.ndarray:
            column = check(COLUMNS[len(shape)].validate_python, column, f"{where}.{name}")
        if column.shape != shape:
            check_shape(column, shape, f"{where}.{name}")
        block[..., k] = column
    return block


def check_shape(value: Any, shape: tuple[int, ...], where: str) -> None:
    """Refuse an array of another shape."""
    if value.shape != shape:
        expected, got = (" x ".join(map(str, sizes)) for sizes in (shape, value.shape))
        refuse(f"{where} must have {expected} entries, got {got}", where)


def check_names(given: dict[str, Any], names: Sequence[str], where: str) -> None:
    """Refuse features other than those that the policy reads."""
    if len(given) == len(names) and all(map(given.__contains__, names)):
        return
    for name in given:
        if name not in names:
            known = suggestion(name[:80], names) if names else "; this policy reads none here"
            refuse(f"{where} has the unknown feature {clip(name)!r}{known}", where)
    missing = next(name for name in names if name not in given)
    refuse(f"{where} lacks the feature {missing!r}", f"{where}.{missing}")


def stack(situations: list[Situation]) -> BatchObservation:
    """Situations of the same fields and sizes as one batch, with all agents and tasks alive."""
    first, batch = situations[0], len(situations)
    fields: dict[str, Any] = {
        name: value[None] if batch == 1 else np.stack([one.fields[name] for one in situations])
        for name, value in first.fields.items()
    }
    for name, shape in (("contributions", (batch, first.n, first.m)), ("capacities", (batch, first.m))):
        if name not in fields:
            fields[name] = np.ones(shape)
    agent_alive, task_alive = np.ones((batch, first.n), np.bool_), np.ones((batch, first.m), np.bool_)
    return BatchObservation(agent_alive=agent_alive, task_alive=task_alive, **fields)


def example(served: Served) -> dict[str, Any]:
    """A body of /act with one agent and two tasks, all features zero."""
    names, n, m = served.features, 1, 2
    shapes = {
        "agent_features": (n, len(names.agent)),
        "task_features": (m, len(names.task)),
        "pair_features": (n, m, len(names.pair)),
        "task_pair_features": (m, m, len(names.task_pair)),
        "global_features": (len(names.global_),),
        "prior": (n, m),
        "task_prior": (m, m),
    }
    zeros = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
    return {"policy": served.name, "situation": as_situation(served, stack([Situation(zeros, n, m, None, None)]))}


def as_situation(served: Served, batch: BatchObservation) -> dict[str, Any]:
    """The first instance of a batch as a situation of /act, in the policy's feature names."""
    names, spec = served.features, served.policy.spec
    situation: dict[str, Any] = {}
    for key, block, features in (
        ("agents", batch.agent_features, names.agent),
        ("tasks", batch.task_features, names.task),
    ):
        situation[key] = [dict(zip(features, row, strict=True)) for row in block[0].astype(float).tolist()]
    for key, block, features in (
        ("pairs", batch.pair_features, names.pair),
        ("task_pairs", batch.task_pair_features, names.task_pair),
    ):
        if features:
            situation[key] = {name: block[0, :, :, k].astype(float).tolist() for k, name in enumerate(features)}
    if names.global_ and batch.global_features is not None:
        situation["global"] = dict(zip(names.global_, batch.global_features[0].astype(float).tolist(), strict=True))
    situation["capacities"] = [None if np.isinf(c) else float(c) for c in batch.capacities[0]]
    unread = {"prior": not spec.reads_prior, "task_prior": not spec.task_prior}
    for key in ("contributions", "allowed", "prior", "task_prior", "switch_cost"):
        value = getattr(batch, key)
        if value is not None and not unread.get(key):
            situation[key] = value[0].tolist()
    if batch.previous is not None:
        situation["previous"] = [None if task < 0 else int(task) for task in batch.previous[0]]
    return situation
