"""POST /act: from a body to the observations that a policy is to decide on, in the policy's own feature names."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from muster.assign.solver import Solver
from muster.assign.switching import ALONE
from muster.data import BatchObservation, Floats32
from muster.errors import suggestion
from muster.service import body as read
from muster.service.body import refuse
from muster.service.policies import Policies, Served
from muster.service.schema import ActBody, check_body
from muster.service.solve import check_size

FEATURES = ("agents", "tasks", "pairs", "task_pairs", "global")
NAMES = ("agent_names", "task_names")
ARRAYS = ("capacities", "minimums", "contributions", "allowed", "prior", "task_prior", "previous", "switch_cost")
KEYS = (*FEATURES, *ARRAYS, *NAMES)
"""What a situation may hold."""
QUICK_PAIRS = 1000
"""Of agents and tasks, and of tasks: so many are decided on without a thread of their own."""
MOST = 1e30
"""Features beyond this size are refused: models compute in single precision."""


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
    body = check_body(ActBody, data)
    served = policies.find(body.policy)
    if (body.situation is None) == (body.situations is None):
        refuse("give either situation (one) or situations (a list)", "situation")
    one = body.situation is not None
    given = [("situation", body.situation)] if one else [
        (f"situations[{k}]", situation) for k, situation in enumerate(body.situations or [])
    ]  # fmt: skip
    situations, left, between = [], size_limit, 0
    for where, situation in given:
        found = read_situation(situation or {}, where, served, left)
        situations.append(found)
        left -= max(1, found.n * found.m)
        between += found.m**2
    solver = served.solver(body.method, body.effort)
    return Asked(served, solver, situations, size_limit - left + between, one, body.scores, started)


def read_situation(data: dict[str, Any], where: str, served: Served, limit: int) -> Situation:
    """A situation as an observation; Refusal where it is none."""
    for key in data:
        if key not in KEYS:
            refuse(f"{where} has no field {read.clip(key)!r}{suggestion(key[:80], KEYS)}", where)
    names, spec = served.features, served.policy.spec
    n = count(data.get("agents"), data.get("pairs"), 0, f"{where}.agents")
    m = count(data.get("tasks"), data.get("pairs"), 1, f"{where}.tasks")
    check_size(n, m, limit)
    if spec.task_scores:
        check_size(m, m, limit)
    for key, reads in (("prior", spec.reads_prior), ("task_prior", spec.task_prior)):
        if data.get(key) is not None and not reads:
            refuse(f"{where}.{key} would be ignored: the policy {served.name} reads none", f"{where}.{key}")
    fields: dict[str, Any] = {
        "agent_features": read_objects(data.get("agents"), names.agent, f"{where}.agents", n),
        "task_features": read_objects(data.get("tasks"), names.task, f"{where}.tasks", m),
        "pair_features": read_columns(data.get("pairs"), names.pair, f"{where}.pairs", (n, m)),
        "task_pair_features": read_columns(data.get("task_pairs"), names.task_pair, f"{where}.task_pairs", (m, m)),
    }
    if names.global_ or data.get("global") is not None:
        fields["global_features"] = read_objects([data.get("global")], names.global_, f"{where}.global", 1)[0]
    shapes = {"contributions": (n, m), "prior": (n, m), "task_prior": (m, m), "switch_cost": (n, m)}
    for key, shape in (shapes | {"capacities": (m,), "minimums": (m,)}).items():
        value, entry = data.get(key), f"{where}.{key}"
        if key == "switch_cost" and isinstance(value, (int, float)):
            fields[key] = np.full(shape, read.read_number(value, entry))
        elif value is not None:
            fields[key] = read.read_array(value, entry, shape, null=np.inf if key == "capacities" else None)
    if "minimums" in fields:
        fields.setdefault("capacities", np.maximum(1.0, fields["minimums"]))
    if data.get("allowed") is not None:
        fields["allowed"] = read.read_mask(data["allowed"], f"{where}.allowed", (n, m))
    called = [
        None if data.get(key) is None else read.read_names(data[key], f"{where}.{key}", length)
        for key, length in zip(NAMES, (n, m), strict=True)
    ]
    if data.get("previous") is not None:
        fields["previous"] = read_previous(data["previous"], f"{where}.previous", n, m, *called)
    if "switch_cost" in fields and np.min(fields["switch_cost"], initial=0.0) < 0.0:
        refuse(f"{where}.switch_cost must not be negative", f"{where}.switch_cost")
    if "switch_cost" in fields and "previous" not in fields and fields["switch_cost"].any():
        refuse(f"{where}.switch_cost: {ALONE}", f"{where}.switch_cost")
    return Situation(fields, n, m, *called)


def read_previous(value: Any, where: str, n: int, m: int, agents: list[str] | None, tasks: list[str] | None) -> Any:
    """[N] the task of each agent before: a list, or {agent: task} where there are names; -1 for none."""
    if isinstance(value, dict):
        for name in value:
            if agents is None or name not in agents:
                refuse(f"{where}: no agent {read.clip(name)!r} in agent_names", where)
        value = [value.get(name) for name in agents or ()]
    if isinstance(value, list) and tasks is not None:
        # A task that is gone is none.
        index = {name: k for k, name in enumerate(tasks)}
        value = [index.get(entry) if isinstance(entry, str) else entry for entry in value]
    return read.read_tasks(value, where, n, m)


def count(value: Any, pairs: Any, axis: int, where: str) -> int:
    """How many objects there are, by the length of their list or of their columns, or else by that of their pairs."""
    lists = (list, np.ndarray)
    if isinstance(value, lists):
        return len(value)
    if isinstance(value, dict) and value:
        name, column = next(iter(value.items()))
        return len(column if isinstance(column, lists) else read.read_list(column, f"{where}.{read.clip(name)}"))
    block = next(iter(pairs.values()), None) if isinstance(pairs, dict) else None
    if value is None and isinstance(block, lists) and len(block) and isinstance(block[0], lists):
        return len(block[0]) if axis else len(block)
    refuse(f"{where} must be a list of objects, or an object of columns, got {read.describe(value)}", where)


def read_objects(value: Any, names: Sequence[str], where: str, n: int) -> Floats32:
    """[N, F] features of objects, given as N objects {name: number} or as columns {name: N numbers}."""
    if not isinstance(value, list):
        return read_columns(value, names, where, (n,))
    rows = []
    for i, row in enumerate(value):
        if not isinstance(row, dict):
            refuse(f"{where}[{i}] must be an object of features, got {read.describe(row)}", f"{where}[{i}]")
        check_names(row, names, f"{where}[{i}]")
        rows.append([row[name] for name in names])
    return read.read_array(rows, where, (n, len(names)), largest=MOST, labels=(None, names)).astype(np.float32)


def read_columns(value: Any, names: Sequence[str], where: str, shape: tuple[int, ...]) -> Floats32:
    """[*shape, F] features, given as {name: lists of that shape}."""
    value = {} if value is None else value
    if not isinstance(value, dict):
        refuse(f"{where} must be an object of features, got {read.describe(value)}", where)
    check_names(value, names, where)
    if not names:
        return np.zeros((*shape, 0), np.float32)
    found = np.empty((*shape, len(names)), np.float32)
    for k, name in enumerate(names):
        column = value[name]
        if not isinstance(column, np.ndarray) or column.shape != shape:
            column = read.read_array(column, f"{where}.{name}", shape, largest=MOST)
        found[..., k] = column
    return found


def check_names(given: dict[str, Any], names: Sequence[str], where: str) -> None:
    """Refuse features that are not those that the policy reads."""
    if len(given) == len(names) and all(map(given.__contains__, names)):
        return
    for name in given:
        if name not in names:
            known = suggestion(name[:80], names) if names else "; this policy reads none here"
            refuse(f"{where} has the unknown feature {read.clip(name)!r}{known}", where)
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
