"""Checks of custom models, inference procedures and learners, as `check_env` does for environments."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from muster.assign.custom import reads_task_scores
from muster.assign.solver import Solver
from muster.custom import full_name, text_of
from muster.data import BatchObservation, Problem
from muster.envs.checks import Finding
from muster.envs.checks.probes import living_agents, permuted, random_assignment, require, same
from muster.envs.checks.run import try_check
from muster.envs.registry import EnvLike, make
from muster.learning.learner import Learner, checked_parameters, checked_update
from muster.learning.learners import make_learner
from muster.learning.settings import TrainSettings
from muster.models.custom import FILLED, make_custom, parameters_of
from muster.models.custom_model import CustomModel
from muster.models.direct import init_parameters
from muster.models.spec import ModelSpec, Scores

TOLERANCE = 1e-4
"""Tolerance of scores: those of torch depend on the batch in their last bits."""
SLOTS, STEPS = 3, 4
INSTANCES = 20


Subject = TypeVar("Subject")


def run_checks(checks: Mapping[str, Callable[[Subject], None]], subject: Subject) -> list[Finding]:
    """The results of all checks; an error that several share is told once."""
    findings = [try_check(name, check, subject) for name, check in checks.items()]
    details = [finding.detail for finding in findings]
    return [
        replace(finding, detail="the same") if finding.detail and finding.detail in details[:k] else finding
        for k, finding in enumerate(findings)
    ]


class Model(NamedTuple):
    """A custom model with random parameters, and observations to score."""

    spec: ModelSpec
    parameters: dict[str, Any]
    network: CustomModel
    observations: list[BatchObservation]

    def scorer(self, observation: BatchObservation) -> Scores:
        """The model's scores; it must leave the observation as it is."""
        given = copy.deepcopy(observation)
        scores = self.network(given)
        require(same(given, observation), f"{self.spec.kind} writes to the observation; it must write to copies")
        return scores


def check_model(model: Any, env: EnvLike = "rescue:2x4", inference: str = "lp") -> list[Finding]:
    """Run every check on a model (class, object or name) with observations of an environment.

    `inference` decides whether the model has to return g.
    """
    batch, rng, observations = make(env, SLOTS), np.random.default_rng(0), []
    batch.show(pair_features=True)
    for _ in range(STEPS):
        observations.append(batch.observe())
        batch.step(random_assignment(observations[-1], rng))
    kind = full_name("model", text_of("model", model, FILLED), ())
    spec = ModelSpec.of(observations[0], kind, reads_task_scores(inference))
    parameters = {name: array + rng.normal(0.0, 0.3, array.shape) for name, array in init_parameters(spec, rng).items()}
    parameters = {name: array.astype(np.float32) for name, array in parameters.items()}
    subject = Model(spec, parameters, CustomModel(spec, parameters), [spec.read(one) for one in observations])
    return run_checks(MODEL_CHECKS, subject)


def _close(one: Scores, other: Scores) -> bool:
    return all(
        (a is None and b is None) or (a is not None and b is not None and np.allclose(a, b, TOLERANCE, TOLERANCE))
        for a, b in zip(one, other, strict=True)
    )


def scores_are_finite(model: Model) -> None:
    """h, and g if there is one, have their shapes and are finite, as the scorer itself checks."""
    for observation in model.observations:
        model.scorer(observation)


def states_are_scored_alone(model: Model) -> None:
    """A state's scores do not depend on the batch."""
    for observation in model.observations:
        h, g = model.scorer(observation)
        for slot in range(observation.batch):
            alone = model.scorer(observation.take(np.array([slot])))
            same = _close(alone, (h[[slot]], None if g is None else g[[slot]]))
            require(same, f"what slot {slot} shows is scored otherwise alone")


def numbers_mean_nothing(model: Model) -> None:
    """Renumbering agents and tasks renumbers the scores."""
    rng = np.random.default_rng(1)
    for observation in model.observations:
        h, g = model.scorer(observation)
        agents, tasks = rng.permutation(h.shape[1]), rng.permutation(h.shape[2])
        expected = h[:, agents][:, :, tasks], None if g is None else g[:, tasks][:, :, tasks]
        require(
            _close(model.scorer(permuted(observation, agents, tasks)), expected),
            "scores depend on the indices of agents or tasks, so they cannot generalise to other sizes",
        )


def masked_agents_count_for_nothing(model: Model) -> None:
    """The others have the same scores whether agents are masked or left out."""
    for observation in model.observations:
        some = observation.agent_alive & (np.arange(observation.agent_alive.shape[1]) > 0)
        masked = replace(observation, agent_alive=some)
        h, _ = model.scorer(masked)
        for slot in range(observation.batch):
            rest, left = living_agents(masked, slot)
            same = np.allclose(model.scorer(rest)[0], h[[slot]][:, left], TOLERANCE, TOLERANCE)
            require(same, "scores change where masked agents are left out")


def parameters_are_what_it_learns(model: Model) -> None:
    """The same parameters give the same scores, others give others."""
    again = model._replace(network=CustomModel(model.spec, model.parameters))
    first = model.observations[0]
    require(_close(again.scorer(first), model.scorer(first)), "the same parameters make other scores")
    initial = model._replace(network=CustomModel(model.spec, parameters_of(make_custom(model.spec))))
    differ = not all(_close(initial.scorer(one), model.scorer(one)) for one in model.observations)
    require(differ, "other parameters make no difference to the scores")


MODEL_CHECKS: dict[str, Callable[[Model], None]] = {
    "scores have their shapes and are finite": scores_are_finite,
    "a state's scores do not depend on the batch": states_are_scored_alone,
    "renumbering agents and tasks renumbers the scores": numbers_mean_nothing,
    "masked agents change no score of others": masked_agents_count_for_nothing,
    "scores follow from the parameters": parameters_are_what_it_learns,
}


def check_inference(inference: Any) -> list[Finding]:
    """Run every check on an inference procedure (function, object or name) on small random problems."""
    solver = Solver(full_name("inference", text_of("inference", inference), ()))
    findings = run_checks(INFERENCE_CHECKS, solver)
    if all(finding.status == "passed" for finding in findings):
        worth = [float((_value(solver, one) / _best(solver, one)).mean()) for one in _problems()]
        findings.append(Finding("worth", "measured", f"{np.mean(worth):.1%} of the optimum on small random problems"))
    return findings


def _problems() -> list[Problem]:
    """Random problems in batches of three: plain, with capacities and contributions, with masks."""
    rng, problems = np.random.default_rng(0), []
    for k in range(INSTANCES):
        n, m = rng.integers(1, 5, 2)
        extra: dict[str, Any] = {"task_scores": rng.normal(0.0, 0.2, (3, m, m))}
        if k % 3 == 1:
            extra |= {
                "contributions": rng.uniform(0.5, 1.5, (3, n, m)),
                "capacities": rng.uniform(1.0, 3.0, (3, m)),
            }
        if k % 3 == 2:
            extra |= {"agent_alive": rng.random((3, n)) < 0.8, "task_alive": rng.random((3, m)) < 0.8}
            extra |= {"allowed": rng.random((3, n, m)) < 0.8}
        problems.append(Problem(rng.uniform(0.2, 1.0, (3, n, m)), **extra))
    return problems


def _value(solver: Solver, problem: Problem) -> Any:
    return 1.0 + solver(problem).objective


def _best(solver: Solver, problem: Problem) -> Any:
    return 1.0 + Solver("quad" if reads_task_scores(solver.method) else "lp", "exact")(problem).objective


def answers_are_feasible(solver: Solver) -> None:
    """Answers respect tasks, masks and capacities, or the solver raises."""
    for problem in [*_problems(), Problem(np.zeros((1, 0, 2))), Problem(np.zeros((1, 2, 0)))]:
        solver(problem)


def answers_repeat(solver: Solver) -> None:
    """The same problem has the same answer, alone or in a batch, and is not modified."""
    for problem in _problems():
        before = copy.deepcopy(problem)
        answer = solver(problem).assignment
        for field in fields(problem):
            same = np.array_equal(getattr(before, field.name), getattr(problem, field.name))
            require(same, f"{field.name} of the problem is changed")
        require(np.array_equal(solver(problem).assignment, answer), "the same problem has another answer")
        arrays = {field.name: getattr(problem, field.name) for field in fields(problem)}
        for b in range(len(answer)):
            one: dict[str, Any] = {name: array[[b]] for name, array in arrays.items() if isinstance(array, np.ndarray)}
            require(np.array_equal(solver(Problem(**one)).assignment[0], answer[b]), "alone, it has another answer")


def bounds_hold(solver: Solver) -> None:
    """No assignment has an objective above the bound, where there is one."""
    for problem in _problems():
        bound, best = solver(problem).bound + 1.0, _best(solver, problem)
        require(not (bound < best - 1e-7).any(), f"the bound {bound.min() - 1:g} is below an assignment's worth")


INFERENCE_CHECKS: dict[str, Callable[[Solver], None]] = {
    "answers are feasible": answers_are_feasible,
    "the same problem has the same answer": answers_repeat,
    "bounds hold": bounds_hold,
}


def check_learner(learner: Any, env: EnvLike = "rescue:2x4", **settings: Any) -> list[Finding]:
    """Run every check on a learner (class or name) in an environment; `settings` are those of a run, such as model."""
    text = text_of("learner", learner, ("setup",))
    chosen = TrainSettings(text_of("environment", env), learner=text, **{"steps": 1, "num_envs": 4} | settings)
    return run_checks(LEARNER_CHECKS, lambda: make_learner(chosen))


MakeLearner = Callable[[], Learner]


def updates_report(make: MakeLearner) -> None:
    """An update counts environment steps and returns reward and episodes."""
    learner = make()
    checked_update(learner, 0.0)
    checked_parameters(learner)


def parameters_can_be_given(make: MakeLearner) -> None:
    """`parameters` returns what `start` set; the policy has the same parameters, and acts."""
    learner = make()
    parameters = {name: array + 1 for name, array in checked_parameters(learner).items()}
    learner.start(parameters)
    require(_equal(learner.parameters(), parameters), "parameters() are not those that start() was given")
    policy = learner.policy()
    require(_equal(policy.parameters, parameters), "the policy has other parameters than the learner")
    policy.act(learner.envs[0].observe())


def states_go_on(make: MakeLearner) -> None:
    """A learner restored from a saved state continues bit for bit."""
    learner, other = make(), make()
    checked_update(learner, 0.0)
    arrays, plain = learner.get_state()
    # As from a checkpoint: sorted by name, and JSON.
    other.set_state({name: np.array(arrays[name]) for name in sorted(arrays)}, json.loads(json.dumps(plain)))
    require(other.steps == learner.steps, "the steps are not part of the state")
    for turn in (0.3, 0.6):
        learner.update(turn)
        other.update(turn)
        require(_equal(learner.parameters(), other.parameters()), "from a saved state it goes on otherwise")


def _equal(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


LEARNER_CHECKS: dict[str, Callable[[MakeLearner], None]] = {
    "an update counts steps and reports": updates_report,
    "parameters can be given": parameters_can_be_given,
    "a saved state goes on bit for bit": states_go_on,
}
