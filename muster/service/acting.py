"""POST /act: a policy decides on situations that are given in its own feature names."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import Any, NoReturn

import numpy as np

from muster.assign.solver import Solver
from muster.assign.switching import ALONE
from muster.data import BatchObservation, Floats32
from muster.envs.env import Observation
from muster.errors import MusterError, suggestion
from muster.policy.decision import make_problem
from muster.service import reading
from muster.service.bodies import ActBody, checked
from muster.service.refusals import Refusal
from muster.service.served import Served
from muster.service.solving import check_size

KEYS = (
    "agents",
    "tasks",
    "pairs",
    "task_pairs",
    "global",
    "capacities",
    "contributions",
    "allowed",
    "prior",
    "task_prior",
    "previous",
    "switch_cost",
)
"""What a situation may hold."""
QUICK_PAIRS = 1000
"""Of agents and tasks, and of tasks: so many are decided on without a thread of their own."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A body of /act that has been read."""

    policy: Served
    solver: Solver
    views: list[Observation]
    pairs: int
    """Of all views, with those of tasks."""
    one: bool
    """Whether one situation was given, rather than a list of them."""
    scores: bool
    """Whether the answer has the scores."""
    started: float

    @property
    def is_quick(self) -> bool:
        """Whether it is decided in about a millisecond at most."""
        return self.pairs <= QUICK_PAIRS and self.solver.method != "routes" and self.solver.effort in ("paper", "fast")

    def answer(self) -> dict[str, Any]:
        """What the policy decides."""
        return self.answer_of(decide_all(self.policy, self.solver, self.views, self.scores), self.started)

    def answer_of(self, answers: list[dict[str, Any]], started: float) -> dict[str, Any]:
        """The answer in which these are the decisions, to what was begun to be read then."""
        answer: dict[str, Any] = {"policy": self.policy.name}
        answer |= answers[0] if self.one else {"answers": answers}
        answer["seconds"] = time.perf_counter() - started
        return answer


def act(data: dict[str, Any], served: dict[str, Served], size_limit: int) -> dict[str, Any]:
    """The answer to a body of /act."""
    return read_asked(data, served, size_limit).answer()


def quick_asked(data: Any, served: dict[str, Served], size_limit: int) -> Asked | None:
    """A body of /act that can be answered on the spot; None if that could take its time, or it is no object."""
    asked = read_asked(data, served, size_limit) if isinstance(data, dict) else None
    return asked if asked is not None and asked.is_quick else None


def answer_together(asked: Sequence[Asked]) -> list[dict[str, Any] | None]:
    """The answers to several bodies, of which those alike are decided on at once; None where that fails."""
    answers: list[dict[str, Any] | None] = [None] * len(asked)
    alike: dict[Any, list[int]] = {}
    for k, one in enumerate(asked):
        alike.setdefault((one.policy.name, one.solver, one.scores), []).append(k)
    for members in alike.values():
        first = asked[members[0]]
        views = [view for k in members for view in asked[k].views]
        with suppress(MusterError):
            decided = iter(decide_all(first.policy, first.solver, views, first.scores))
            for k in members:
                found = [next(decided) for _ in asked[k].views]
                answers[k] = asked[k].answer_of(found, asked[k].started)
    return answers


def read_asked(data: dict[str, Any], served: dict[str, Served], size_limit: int) -> Asked:
    """What a body of /act asks for; Refusal where it is none."""
    started = time.perf_counter()
    body = checked(ActBody, data)
    if body.policy not in served:
        error = f"no policy {body.policy!r:.80} is served{suggestion(body.policy[:80], served)}"
        raise Refusal("not_found", error, "policy")
    if (body.situation is None) == (body.situations is None):
        raise Refusal("input", "give either situation (one) or situations (a list)", "situation")
    chosen = served[body.policy]
    if body.situation is not None:
        given, places = [body.situation], ["situation"]
    else:
        given = body.situations or []
        places = [f"situations[{k}]" for k in range(len(given))]
    views, left, between = [], size_limit, 0
    for situation, where in zip(given, places, strict=True):
        view, n, m = read_situation(situation, where, chosen, left)
        views.append(view)
        left -= max(1, n * m)
        between += m * m
    solver = chosen.solver(body.method, body.effort)
    pairs = size_limit - left + between
    return Asked(chosen, solver, views, pairs, body.situation is not None, body.scores, started)


def read_situation(data: dict[str, Any], where: str, served: Served, limit: int) -> tuple[Observation, int, int]:
    """A situation as the view of an env, how many agents it has and how many tasks; Refusal where it is none."""
    for key in data:
        if key not in KEYS:
            refuse(f"{where} has no field {reading.clipped(key)!r}{suggestion(key[:80], KEYS)}", where)
    names, spec = served.features, served.policy.spec
    n = count(data.get("agents"), data.get("pairs"), 0, f"{where}.agents")
    m = count(data.get("tasks"), data.get("pairs"), 1, f"{where}.tasks")
    check_size(n, m, limit)
    if spec.task_scores:
        check_size(m, m, limit)
    for key, read in (("prior", spec.reads_prior), ("task_prior", spec.task_prior)):
        if data.get(key) is not None and not read:
            refuse(f"{where}.{key} would be ignored: the policy {served.name} reads none", f"{where}.{key}")
    fields: dict[str, Any] = {
        "agent_features": objects(data.get("agents"), names.agent, f"{where}.agents", n),
        "task_features": objects(data.get("tasks"), names.task, f"{where}.tasks", m),
        "pair_features": by_name(data.get("pairs") or {}, names.pair, f"{where}.pairs", (n, m)),
        "task_pair_features": by_name(data.get("task_pairs") or {}, names.task_pair, f"{where}.task_pairs", (m, m)),
    }
    if names.global_ or data.get("global"):
        fields["global_features"] = objects([data.get("global")], names.global_, f"{where}.environment", 1)[0]
    for key, shape in (("contributions", (n, m)), ("prior", (n, m)), ("task_prior", (m, m)), ("switch_cost", (n, m))):
        value = data.get(key)
        if key == "switch_cost" and value is not None and not reading.is_list(value):
            fields[key] = np.full(shape, reading.number(value, f"{where}.{key}"))
        elif value is not None:
            fields[key] = reading.matrix(value, f"{where}.{key}", shape)
    if data.get("capacities") is not None:
        fields["capacities"] = reading.vector(data["capacities"], f"{where}.capacities", m, null=np.inf)
    if data.get("allowed") is not None:
        fields["allowed"] = reading.mask(data["allowed"], f"{where}.allowed", (n, m))
    if data.get("previous") is not None:
        fields["previous"] = reading.tasks(data["previous"], f"{where}.previous", n, m)
    if "switch_cost" in fields:
        check_cost(fields, f"{where}.switch_cost")
    return Observation(**fields), n, m


def check_cost(fields: dict[str, Any], where: str) -> None:
    """Refuse a switch cost that is negative, or that nothing before could be left for."""
    cost = fields["switch_cost"]
    if np.min(cost, initial=0.0) < 0.0:
        refuse(f"{where} must not be negative", where)
    if "previous" not in fields and cost.any():
        refuse(f"{where}: {ALONE}", where)


def refuse(error: str, where: str) -> NoReturn:
    """Refuse an entry."""
    raise Refusal("input", error, where)


def count(value: Any, pairs: Any, axis: int, where: str) -> int:
    """How many objects there are, by the length of their list or of their columns, or else by that of their pairs."""
    if isinstance(value, list):
        return len(value)
    if isinstance(value, dict) and value:
        return len(reading.checked_list(next(iter(value.values())), f"{where}.{reading.clipped(next(iter(value)))}"))
    block = next(iter(pairs.values()), None) if isinstance(pairs, dict) else None
    if value is None and block is not None and reading.is_list(block, of_lists=True):
        return len(block[0]) if axis else len(block)
    refuse(f"{where} must be a list of objects, or an object of columns, got {reading.kind_of(value)}", where)


def objects(value: Any, names: Sequence[str], where: str, n: int) -> Floats32:
    """[N, F] features of objects, given as N objects {name: number} or as columns {name: N numbers}."""
    if isinstance(value, dict) or value is None:
        return by_name(value or {}, names, where, (n,))
    rows = []
    for i, row in enumerate(value):
        if not isinstance(row, dict):
            refuse(f"{where}[{i}] must be an object of features, got {reading.kind_of(row)}", f"{where}[{i}]")
        if len(row) != len(names):
            refuse_names(row, names, f"{where}[{i}]")
        try:
            rows.append([row[name] for name in names])
        except KeyError:
            refuse_names(row, names, f"{where}[{i}]")
    found = reading.numbers(list(chain.from_iterable(rows)), None, MOST)
    if found is None:
        for i, row in enumerate(rows):
            for name, entry in zip(names, row, strict=True):
                reading.number(entry, f"{where}[{i}].{name}", MOST)
    assert found is not None, "numbers were refused for no entry"
    return found.reshape(n, len(names)).astype(np.float32)


def by_name(value: Any, names: Sequence[str], where: str, shape: tuple[int, ...]) -> Floats32:
    """[*shape, F] features, given as {name: lists of that shape}."""
    if not isinstance(value, dict):
        refuse(f"{where} must be an object of features, got {reading.kind_of(value)}", where)
    if len(value) != len(names) or not all(name in value for name in names):
        refuse_names(value, names, where)
    # All at once, as long as nothing is wrong with them: most of the time goes into numpy's calls.
    parts = [value[name] for name in names]
    if all(isinstance(part, np.ndarray) and part.shape == shape for part in parts):
        features: Floats32 = np.empty((*shape, len(names)), np.float32)
        for k, part in enumerate(parts):
            features[..., k] = part
        return features
    flat = reading.flattened(parts, shape)
    found = None if flat is None else reading.numbers(flat, None, MOST)
    if found is None:
        for name in names:
            if len(shape) == 1:
                reading.vector(value[name], f"{where}.{name}", shape[0], largest=MOST)
            else:
                reading.matrix(value[name], f"{where}.{name}", (shape[0], shape[1]), largest=MOST)
    assert found is not None, "numbers were refused for no entry"
    return np.ascontiguousarray(found.reshape(len(names), -1).T, np.float32).reshape(*shape, len(names))


def refuse_names(given: dict[str, Any], names: Sequence[str], where: str) -> NoReturn:
    """Refuse features that are not those that the policy reads."""
    for name in given:
        if name not in names:
            known = suggestion(name[:80], names) if names else "; this policy reads none here"
            refuse(f"{where} has the unknown feature {reading.clipped(name)!r}{known}", where)
    missing = next(name for name in names if name not in given)
    refuse(f"{where} lacks the feature {missing!r}", f"{where}.{missing}")


MOST = 1e30
"""Features beyond this size are refused: models compute in single precision."""


def decide_all(served: Served, solver: Solver, views: list[Observation], with_scores: bool) -> list[dict[str, Any]]:
    """An answer for each view. Those with the same fields and sizes are decided on together: nothing is padded."""
    if len(views) == 1:
        return decide(served, solver, together(views), with_scores)
    answers: list[dict[str, Any]] = [{}] * len(views)
    alike: dict[Any, list[int]] = {}
    for k, view in enumerate(views):
        alike.setdefault(tuple((name, np.shape(value)) for name, value in given_of(view).items()), []).append(k)
    for members in alike.values():
        found = decide(served, solver, together([views[k] for k in members]), with_scores)
        for k, answer in zip(members, found, strict=True):
            answers[k] = answer
    return answers


def given_of(view: Observation) -> dict[str, Any]:
    """The fields that a view has."""
    return {name: value for name in Observation.__slots__ if (value := getattr(view, name)) is not None}


def together(views: list[Observation]) -> BatchObservation:
    """Observations of the same fields and sizes as one observation."""
    stacked: dict[str, Any] = {}
    for name in given_of(views[0]):
        several = [getattr(view, name) for view in views]
        stacked[name] = several[0][None] if len(views) == 1 else np.stack(several)
    return observed(stacked)


def observed(stacked: dict[str, Any]) -> BatchObservation:
    """An observation of the fields that were given, each with a leading axis B: everybody in it is alive."""
    (batch, n), m = stacked["agent_features"].shape[:2], stacked["task_features"].shape[1]
    assumed = {
        "agent_alive": np.ones((batch, n), np.bool_),
        "task_alive": np.ones((batch, m), np.bool_),
        "contributions": np.ones((batch, n, m)),
        "capacities": np.ones((batch, m)),
    }
    return BatchObservation(**assumed | stacked)


def decide(served: Served, solver: Solver, observation: BatchObservation, with_scores: bool) -> list[dict[str, Any]]:
    """BatchObservation -> scores -> assignment, with reasons."""
    policy = served.policy
    seen = policy.read(observation, "the situation")
    h, g = policy.score(seen)
    solution = solver(make_problem(seen, h, g))
    answers = []
    for b in range(observation.batch):
        answer: dict[str, Any] = {
            "assignment": [None if task < 0 else task for task in solution.assignment[b].tolist()],
            "reasons": {str(i): reason for i, reason in enumerate(solution.reasons[b]) if reason},
            "objective": float(solution.objective[b]),
            "status": solution.status[b],
        }
        if with_scores:
            answer["scores"] = h[b].tolist()
            answer["task_scores"] = None if g is None else g[b].tolist()
        answers.append(answer)
    return answers


def example(served: Served) -> dict[str, Any]:
    """A body for /act with one agent and two tasks: what a policy reads, in its own names."""
    names, spec = served.features, served.policy.spec
    situation: dict[str, Any] = {
        "agents": [dict.fromkeys(names.agent, 0.0)],
        "tasks": [dict.fromkeys(names.task, 0.0) for _ in range(2)],
    }
    if names.pair:
        situation["pairs"] = {name: [[0.0, 0.5]] for name in names.pair}
    if names.task_pair:
        situation["task_pairs"] = {name: [[0.0, 0.5], [0.5, 0.0]] for name in names.task_pair}
    if names.global_:
        situation["global"] = dict.fromkeys(names.global_, 0.0)
    if spec.reads_prior:
        situation["prior"] = [[0.0, 0.5]]
    if spec.task_prior:
        situation["task_prior"] = [[0.0, 0.5], [0.5, 0.0]]
    return {"policy": served.name, "situation": situation}
