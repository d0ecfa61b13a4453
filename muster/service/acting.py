"""POST /act: a policy decides on situations that are given in its own feature names."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from muster.data import Floats32, Observation
from muster.envs.padding import observation_of
from muster.envs.single import View
from muster.errors import suggestion
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
    "world",
    "capacities",
    "contributions",
    "allowed",
    "prior",
    "task_prior",
    "previous",
    "switch_cost",
)
"""What a situation may hold."""


def act(data: dict[str, Any], served: dict[str, Served], size_limit: int) -> dict[str, Any]:
    """The answer to a body of /act."""
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
    views, left = [], size_limit
    for situation, where in zip(given, places, strict=True):
        view, pairs = read_situation(situation, where, chosen, left)
        views.append(view)
        left -= pairs
    answers = decide_all(chosen, views, body.scores)
    answer: dict[str, Any] = {"policy": body.policy}
    answer |= answers[0] if body.situation is not None else {"answers": answers}
    return answer | {"seconds": time.perf_counter() - started}


def read_situation(data: dict[str, Any], where: str, served: Served, limit: int) -> tuple[View, int]:
    """A situation as the view of a world, and how many pairs it has; Refusal where it is none."""
    for key in data:
        if key not in KEYS:
            raise Refusal(
                "input", f"no field {key!r:.80} in {where}{suggestion(key[:80], KEYS)}", f"{where}.{key[:80]}"
            )
    names, spec = served.features, served.policy.spec
    agents = objects(data.get("agents"), names.agent, f"{where}.agents")
    tasks = objects(data.get("tasks"), names.task, f"{where}.tasks")
    n, m = len(agents), len(tasks)
    check_size(n, m, limit)
    if spec.task_scores:
        check_size(m, m, limit)
    fields: dict[str, Any] = {"agent_features": agents, "task_features": tasks}
    fields["pair_features"] = blocks(data.get("pairs"), names.pair, f"{where}.pairs", n, m)
    fields["task_pair_features"] = blocks(data.get("task_pairs"), names.task_pair, f"{where}.task_pairs", m, m)
    if names.world:
        fields["global_features"] = objects([data.get("world")], names.world, f"{where}.world")[0]
    for key, shape, null in (
        ("contributions", (n, m), None),
        ("prior", (n, m), None),
        ("task_prior", (m, m), None),
        ("switch_cost", (n, m), None),
    ):
        if data.get(key) is not None:
            value = data[key]
            if key == "switch_cost" and not isinstance(value, list):
                value = [[value] * m] * n
            fields[key] = reading.matrix(value, f"{where}.{key}", shape, null)
    if data.get("capacities") is not None:
        fields["capacities"] = reading.vector(data["capacities"], f"{where}.capacities", m, null=np.inf)
    if data.get("allowed") is not None:
        fields["allowed"] = reading.mask(data["allowed"], f"{where}.allowed", (n, m))
    if data.get("previous") is not None:
        fields["previous"] = previous_tasks(data["previous"], f"{where}.previous", n, m)
    return View(**fields), max(1, n * m)


def objects(value: Any, names: Sequence[str], where: str) -> Floats32:
    """[N, F] features of objects {name: number}."""
    rows = reading.checked_list(value, where)
    listed = []
    for i, row in enumerate(rows):
        if not isinstance(row, dict):
            raise Refusal(
                "input", f"{where}[{i}] must be an object of features, got {reading.kind_of(row)}", f"{where}[{i}]"
            )
        try:
            listed.append([row[name] for name in names])
        except KeyError as missing:
            error = f"{where}[{i}] lacks the feature {missing.args[0]!r}"
            raise Refusal("input", error, f"{where}[{i}]") from None
        if len(row) > len(names):
            extra = next(name for name in row if name not in names)
            error = f"{where}[{i}] has no feature {extra!r:.80}{suggestion(extra[:80], names)}"
            raise Refusal("input", error, f"{where}[{i}]")
    return numbers(listed, names, where)


def numbers(rows: list[list[Any]], names: Sequence[str], where: str) -> Floats32:
    """[N, F] numbers as models read them."""
    flat = [entry for row in rows for entry in row]
    if set(map(type, flat)) <= {int, float}:
        found = np.array(flat, np.float64).reshape(len(rows), len(names))
        if (np.abs(found) <= MOST).all():
            return found.astype(np.float32)
    for i, row in enumerate(rows):
        for name, entry in zip(names, row, strict=True):
            if type(entry) not in (int, float) or not abs(entry) <= MOST:
                error = f"{where}[{i}].{name} must be a number within ±{MOST:g}, got {reading.kind_of(entry)}"
                raise Refusal("input", error, f"{where}[{i}].{name}")
    raise AssertionError("numbers were refused for no entry")


MOST = 1e30
"""Features beyond this size are refused: models compute in single precision."""


def blocks(value: Any, names: Sequence[str], where: str, n: int, m: int) -> Floats32 | None:
    """[N, M, F] features of pairs, given as {name: N rows of M numbers}."""
    if not names:
        if value:
            raise Refusal("input", f"{where}: this policy reads no such features", where)
        return None
    if not isinstance(value, dict):
        raise Refusal("input", f"{where} must be an object with {', '.join(map(repr, names))}", where)
    for name in [*(name for name in names if name not in value), *(name for name in value if name not in names)]:
        word = "lacks the feature" if name in names else "has no feature"
        raise Refusal("input", f"{where} {word} {name!r:.80}{suggestion(name[:80], names)}", f"{where}.{name[:80]}")
    found = np.empty((n, m, len(names)), np.float32)
    for f, name in enumerate(names):
        block = reading.matrix(value[name], f"{where}.{name}", (n, m))
        if not (np.abs(block) <= MOST).all():
            i, j = np.argwhere(np.abs(block) > MOST)[0].tolist()
            error = f"{where}.{name}[{i}][{j}] must be within ±{MOST:g}, got {block[i, j]:g}"
            raise Refusal("input", error, f"{where}.{name}[{i}][{j}]")
        found[:, :, f] = block
    return found


def previous_tasks(value: Any, where: str, n: int, m: int) -> Any:
    """[N] the task that each agent had, -1 for null."""
    row = reading.checked_list(value, where, n)
    for i, task in enumerate(row):
        if task is not None and (type(task) is not int or not 0 <= task < m):
            error = f"{where}[{i}] must be a task from 0 to {m - 1} or null, got {reading.kind_of(task)}"
            raise Refusal("input", error, f"{where}[{i}]")
    return np.array([-1 if task is None else task for task in row], np.int64)


def decide_all(served: Served, views: list[View], with_scores: bool) -> list[dict[str, Any]]:
    """An answer for each view. Those of one size are decided on together: nothing is padded."""
    answers: list[dict[str, Any]] = [{}] * len(views)
    sizes: dict[tuple[int, int], list[int]] = {}
    for k, view in enumerate(views):
        sizes.setdefault((len(view.agent_features), len(view.task_features)), []).append(k)  # type: ignore[arg-type]
    for members in sizes.values():
        found = decide(served, observation_of([views[k] for k in members], "the situation"), with_scores)
        for k, answer in zip(members, found, strict=True):
            answers[k] = answer
    return answers


def decide(served: Served, observation: Observation, with_scores: bool) -> list[dict[str, Any]]:
    """Observation -> scores -> assignment, with reasons."""
    policy = served.policy
    seen = policy.spec.view(observation, "the situation")
    h, g = policy.scorer(seen)
    solution = served.solver(make_problem(seen, h, g))
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
