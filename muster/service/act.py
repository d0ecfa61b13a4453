"""POST /act: from a body to the observations that a policy is to decide on, in the policy's own feature names."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from pydantic import Field, TypeAdapter

from muster.assign.solver import Solver
from muster.assign.switching import ALONE
from muster.data import BatchObservation, Floats32
from muster.errors import suggestion
from muster.service.policies import Policies, Served
from muster.service.refusal import clip, describe
from muster.service.schema import CONFIG, ActBody, Lists, SituationBody, check, refuse
from muster.service.solve import check_size

QUICK_PAIRS = 1000
"""Of agents and tasks, and of tasks: so many are decided on without a thread of their own."""
MOST = 1e30
"""Features beyond this size are refused: models compute in single precision."""
Feature = Annotated[float, Field(ge=-MOST, le=MOST)]
OBJECTS = TypeAdapter[Any](list[dict[str, Feature]], config=CONFIG)
COLUMNS = {
    1: TypeAdapter[Any](Annotated[Any, Lists(list[Feature], 1)], config=CONFIG),
    2: TypeAdapter[Any](Annotated[Any, Lists(list[list[Feature]], 2)], config=CONFIG),
}
"""Of one feature, by the number of their dimensions."""


@dataclass(frozen=True, slots=True)
class Situation:
    """What was observed, and what agents and tasks are called."""

    fields: dict[str, Any]
    """Those of an Observation that were given, as arrays."""
    n: int
    m: int
    agents: list[str] | None
    tasks: list[str] | None

    def assigned(self, assignment: list[int]) -> list[int | str | None]:
        """Each agent's task, by name where there are names."""
        if self.tasks is None:
            return [None if task < 0 else task for task in assignment]
        return [None if task < 0 else self.tasks[task] for task in assignment]

    def agent(self, index: int) -> str:
        """What an agent is called."""
        return str(index) if self.agents is None else self.agents[index]


@dataclass(frozen=True, slots=True)
class Asked:
    """A body of /act that has been read."""

    policy: Served
    solver: Solver
    situations: list[Situation]
    pairs: int
    """Of all situations, with those of tasks."""
    one: bool
    """Whether one situation was given, rather than a list of them."""
    scores: bool
    """Whether the answer has the scores."""
    started: float

    @property
    def is_quick(self) -> bool:
        """Whether it is decided in about a millisecond at most."""
        return self.pairs <= QUICK_PAIRS and self.solver.method != "routes" and self.solver.effort in ("paper", "fast")

    def answer(self, decisions: list[dict[str, Any]]) -> dict[str, Any]:
        """The answer in which these are the decisions."""
        answer: dict[str, Any] = {"policy": self.policy.versioned_name}
        answer |= decisions[0] if self.one else {"answers": decisions}
        answer["seconds"] = time.perf_counter() - self.started
        return answer


def read_asked(data: dict[str, Any], policies: Policies, size_limit: int) -> Asked:
    """What a body of /act asks for; Refusal where it is none."""
    started = time.perf_counter()
    body = ActBody.read(data)
    served = policies.find(body.policy)
    one = body.situation is not None
    if one == (body.situations is not None):
        refuse("give either situation (one) or situations (a list)", "situation")
    situations, left, between = [], size_limit, 0
    for k, given in enumerate([body.situation] if body.situation is not None else body.situations or []):
        found = read_situation(given, "situation" if one else f"situations[{k}]", served, left)
        situations.append(found)
        left -= max(1, found.n * found.m)
        between += found.m**2
    solver = served.solver(body.method, body.effort)
    return Asked(served, solver, situations, size_limit - left + between, one, body.scores, started)


def read_situation(body: SituationBody, where: str, served: Served, limit: int) -> Situation:
    """A situation as an observation; Refusal where it does not fit the policy or itself."""
    names, spec = served.features, served.policy.spec
    n = count(body.agents, body.pairs, 0, f"{where}.agents")
    m = count(body.tasks, body.pairs, 1, f"{where}.tasks")
    check_size(n, m, limit)
    if spec.task_scores:
        check_size(m, m, limit)
    for key, reads in (("prior", spec.reads_prior), ("task_prior", spec.task_prior)):
        if getattr(body, key) is not None and not reads:
            refuse(f"{where}.{key} would be ignored: the policy {served.name} reads none", f"{where}.{key}")
    fields: dict[str, Any] = {
        "agent_features": read_objects(body.agents, names.agent, f"{where}.agents", n),
        "task_features": read_objects(body.tasks, names.task, f"{where}.tasks", m),
        "pair_features": read_columns(body.pairs, names.pair, f"{where}.pairs", (n, m)),
        "task_pair_features": read_columns(body.task_pairs, names.task_pair, f"{where}.task_pairs", (m, m)),
    }
    if names.global_ or body.global_ is not None:
        fields["global_features"] = read_objects([body.global_], names.global_, f"{where}.global", 1)[0]
    for key, shape in (
        ("capacities", (m,)),
        ("minimums", (m,)),
        ("contributions", (n, m)),
        ("allowed", (n, m)),
        ("prior", (n, m)),
        ("task_prior", (m, m)),
        ("switch_cost", (n, m)),
    ):
        value = getattr(body, key)
        if value is not None:
            fields[key] = np.full(shape, value) if isinstance(value, (int, float)) else value
            check_shape(fields[key], shape, f"{where}.{key}")
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
    """[N] the task of each agent before, -1 for none; a task that is gone is none."""
    given: Any = body.previous
    if isinstance(given, dict):
        agents = body.agent_names or []
        unknown = next((name for name in given if name not in agents), None)
        if unknown is not None:
            refuse(f"{where}: no agent {clip(unknown)!r} in agent_names", where)
        given = [given.get(name) for name in agents]
    if len(given) != n:
        refuse(f"{where} must have {n} entries, got {len(given)}", where)
    index = {name: k for k, name in enumerate(body.task_names or ())}
    found = [index.get(task, -1) if isinstance(task, str) else -1 if task is None else task for task in given]
    for k, entry in enumerate(found):
        if entry >= m:
            refuse(f"{where}[{k}] must be a task from 0 to {m - 1} or null, got {entry}", f"{where}[{k}]")
    return np.array(found, np.int64)


def count(value: Any, pairs: Any, axis: int, where: str) -> int:
    """How many objects there are, by the length of their list or of their columns, or else by that of their pairs."""
    if isinstance(value, list):
        return len(value)
    if isinstance(value, dict) and value:
        column = next(iter(value.values()))
        return len(column) if isinstance(column, (list, np.ndarray)) else 0
    block = next(iter(pairs.values()), None) if isinstance(pairs, dict) else None
    if value is None and isinstance(block, np.ndarray) and block.ndim == 2:
        return int(block.shape[axis])
    refuse(f"{where} must be a list of objects, or an object of columns, got {describe(value)}", where)


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
    columns = []
    for name in names:
        column = value[name]
        if type(column) is not np.ndarray:
            column = check(COLUMNS[len(shape)].validate_python, column, f"{where}.{name}")
        if column.shape != shape:
            check_shape(column, shape, f"{where}.{name}")
        columns.append(column)
    if not columns:
        return np.zeros((*shape, 0), np.float32)
    # Features last; np.stack takes longer than all the rest.
    return np.ascontiguousarray(np.array(columns, np.float32).transpose(*range(1, len(shape) + 1), 0))


def check_shape(value: Any, shape: tuple[int, ...], where: str) -> None:
    """Refuse an array that does not fit."""
    if value.shape != shape:
        wanted, got = (" x ".join(map(str, sizes)) for sizes in (shape, value.shape))
        refuse(f"{where} must have {wanted} entries, got {got}", where)


def check_names(given: dict[str, Any], names: Sequence[str], where: str) -> None:
    """Refuse features that are not those that the policy reads."""
    if len(given) == len(names) and all(map(given.__contains__, names)):
        return
    for name in given:
        if name not in names:
            known = suggestion(name[:80], names) if names else "; this policy reads none here"
            refuse(f"{where} has the unknown feature {clip(name)!r}{known}", where)
    missing = next(name for name in names if name not in given)
    refuse(f"{where} lacks the feature {missing!r}", f"{where}.{missing}")


def stack(situations: list[Situation]) -> BatchObservation:
    """Observations of the same fields and sizes as one; all agents and tasks in it are alive."""
    given = [situation.fields for situation in situations]
    stacked: dict[str, Any] = {
        name: value[None] if len(given) == 1 else np.stack([one[name] for one in given])
        for name, value in given[0].items()
    }
    size, n, m = len(given), situations[0].n, situations[0].m
    assumed = {
        "agent_alive": np.ones((size, n), np.bool_),
        "task_alive": np.ones((size, m), np.bool_),
        "contributions": np.ones((size, n, m)),
        "capacities": np.ones((size, m)),
    }
    return BatchObservation(**assumed | stacked)


def example(served: Served) -> dict[str, Any]:
    """A body for /act with one agent and two tasks: what a policy reads, in its own names."""
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


def as_situation(served: Served, seen: BatchObservation) -> dict[str, Any]:
    """What is observed in slot 0 as /act takes it: in the policy's own feature names."""
    names, spec = served.features, served.policy.spec
    unread = {"prior": not spec.reads_prior, "task_prior": not spec.task_prior}
    found: dict[str, Any] = {}
    for key, features, labels in (
        ("agents", seen.agent_features, names.agent),
        ("tasks", seen.task_features, names.task),
    ):
        found[key] = [dict(zip(labels, row, strict=True)) for row in features[0].astype(float).tolist()]
    for key, features, labels in (
        ("pairs", seen.pair_features, names.pair),
        ("task_pairs", seen.task_pair_features, names.task_pair),
    ):
        if labels:
            found[key] = {label: features[0, :, :, k].astype(float).tolist() for k, label in enumerate(labels)}
    if names.global_ and seen.global_features is not None:
        found["global"] = dict(zip(names.global_, seen.global_features[0].astype(float).tolist(), strict=True))
    found["capacities"] = [None if np.isinf(c) else float(c) for c in seen.capacities[0]]
    for key in ("contributions", "allowed", "prior", "task_prior", "switch_cost"):
        value = getattr(seen, key)
        if value is not None and not unread.get(key):
            found[key] = value[0].tolist()
    if seen.previous is not None:
        found["previous"] = [None if task < 0 else int(task) for task in seen.previous[0]]
    return found
