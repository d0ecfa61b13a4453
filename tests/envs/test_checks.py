from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from muster.data import BatchObservation, Bools, Ints
from muster.envs.checks import check_env, run
from muster.envs.checks.contract import CHECKS
from muster.envs.env import Env, Observation
from muster.envs.renderer import Renderer
from muster.envs.rescue import RescueEnv, RescueSettings
from muster.envs.singles import BatchOfSingles
from muster.envs.vector import State, Step
from muster.errors import InputError
from muster.rng import Seeds
from tests.envs.custom_envs import Orders
from tests.envs.one_check import run_check


def status(make: Callable[[int], RescueEnv] | str) -> dict[str, str]:
    return {finding.check: finding.status for finding in check_env(make)}


@pytest.mark.parametrize(
    "env",
    [
        "rescue:2x4",
        "rescue:5x10",
        "rescue:1x1,grid=1x2",
        "rescue:3x5,mud=0.4",
        "rescue:3x5,grid=4x9,placement=independent,solved_assignable=true,max_steps=12",
    ],
)
def test_our_environments_pass_every_check(env):
    findings = check_env(env)
    assert {found.status for found in findings[:-1]} == {"passed"}, findings
    assert findings[-1].status == "measured"


def test_delivery_passes_every_check_but_that_of_numbers_that_it_does_not_draw():
    findings = check_env("examples.delivery:Delivery")
    assert {found.check for found in findings if found.status != "passed"} == {"fresh random numbers", "speed"}


@pytest.mark.parametrize("env", ["battle:w2v2", "battle:zh1v1,planes=true,final_reward=true"])
def test_battles_pass_every_check_that_can_be_run(env):
    """Units are updated in the order of their numbers, so renumbering them is another battle."""
    found = {finding.check: finding.status for finding in check_env(env)}
    assert found.pop("the numbering does not matter") == "unchecked"
    assert found.pop("speed") == "measured"
    assert set(found.values()) == {"passed"}


def test_random_moves_pass_every_check_but_the_numbering_one():
    assert status("rescue:3x5,random_moves=true")["the numbering does not matter"] == "unchecked"


class Faulty(RescueEnv):
    def __init__(self, n_envs: int) -> None:
        super().__init__(RescueSettings(), n_envs)


class DependsOnTheSlot(Faulty):
    def reset(self, slots: Ints, seeds: Seeds) -> None:
        super().reset(slots, seeds + np.asarray(slots).astype(np.uint64))


class ForgetsTheSeed(Faulty):
    def reset(self, slots: Ints, seeds: Seeds) -> None:
        super().reset(slots, np.zeros_like(seeds))


class SharesItsArrays(Faulty):
    def observe(self) -> BatchObservation:
        seen = super().observe()
        return BatchObservation(
            **{name: getattr(seen, name) for name in seen.__slots__ if name != "task_alive"}, task_alive=self.unsolved
        )


class LosesAnAgent(Faulty):
    def observe(self) -> BatchObservation:
        seen = super().observe()
        return replace(seen, agent_alive=seen.agent_alive & (np.arange(self.n_agents) > 0))


class PaysAfterTheEnd(Faulty):
    def step(self, assignment: Ints) -> Step:
        result = super().step(assignment)
        return Step(np.full_like(result.reward, -0.01), result.terminated, result.truncated)


class ForgetsTheSteps(Faulty):
    def set_state(self, state: State) -> None:
        super().set_state(state)
        self.steps[:] = 0
        self.unsolved[:] = True


class PrefersTheFirstAgent(Faulty):
    def step(self, assignment: Ints) -> Step:
        assignment = np.array(assignment)
        assignment[:, 0] = np.where(assignment[:, 0] < 0, 0, assignment[:, 0])
        return super().step(assignment)


class WritesToTheAssignment(Faulty):
    def step(self, assignment: Ints) -> Step:
        result = super().step(assignment)
        assignment[:] = -1
        return result


class MissesALimit(Faulty):
    def __init__(self, n_envs: int) -> None:
        super().__init__(n_envs)
        self.max_steps = 5

    def step(self, assignment: Ints) -> Step:
        result = super().step(np.full_like(assignment, -1))
        return Step(result.reward, result.terminated, np.zeros_like(result.truncated))


class ShowsDoubles(Faulty):
    def observe(self) -> BatchObservation:
        seen = super().observe()
        others = {name: getattr(seen, name) for name in seen.__slots__ if name != "agent_features"}
        return BatchObservation(**others, agent_features=seen.agent_features.astype(np.float64))


class IsNotGivenFreshNumbers(Faulty):
    def __init__(self, n_envs: int) -> None:
        RescueEnv.__init__(self, RescueSettings(random_moves=True), n_envs)

    def reseed(self, seeds: Seeds) -> None:
        pass


class SaysNothingIsRandom(IsNotGivenFreshNumbers):
    def __init__(self, n_envs: int) -> None:
        super().__init__(n_envs)
        self.random = False

    def reseed(self, seeds: Seeds) -> None:
        RescueEnv.reseed(self, seeds)


class ShowsOtherThingsAfterwards(Faulty):
    def reseed(self, seeds: Seeds) -> None:
        self.task_cells[:] = 0


class DrawsOneScene(Faulty):
    """Its scenes are one object, whose arrays are the environment's own."""

    def renderer(self) -> Renderer:
        renderer = super().renderer()
        scene = renderer.scene(0)
        object.__setattr__(scene, "tasks", self.task_cells[0])
        object.__setattr__(scene, "agents", self.agent_cells[0])
        renderer.scene = lambda slot: scene  # type: ignore[method-assign]
        return renderer


class NeverEnds(Faulty):
    def running(self) -> Bools:
        return np.ones(self.n_envs, np.bool_)


class SavesOneNumberForAll(Faulty):
    def get_state(self) -> State:
        return {**super().get_state(), "clock": np.zeros(1)}


@pytest.mark.parametrize(
    ("faulty", "check"),
    [
        (SavesOneNumberForAll, "copies with the same seed agree"),
        (IsNotGivenFreshNumbers, "fresh random numbers"),
        (SaysNothingIsRandom, "fresh random numbers"),
        (ShowsOtherThingsAfterwards, "fresh random numbers"),
        (NeverEnds, "endings"),
        (DependsOnTheSlot, "the batch does not matter"),
        (ForgetsTheSeed, "the seed determines the episode"),
        (SharesItsArrays, "nothing is mutated"),
        (DrawsOneScene, "nothing is mutated"),
        (PaysAfterTheEnd, "endings"),
        (ForgetsTheSteps, "a saved state resumes"),
        (PrefersTheFirstAgent, "the numbering does not matter"),
        (WritesToTheAssignment, "nothing is mutated"),
        (MissesALimit, "endings"),
        (ShowsDoubles, "shapes and types"),
        (LosesAnAgent, "shapes and types"),
    ],
)
def test_a_failed_check_is_noticed(faulty, check):
    assert run_check(faulty, check).status == "failed"


class CarriesOutWhatIsForbidden(BatchOfSingles):
    """The batch of a user's class hands on whatever it is given."""

    single = Orders

    def _feasible(self, assignment: Ints) -> Ints:
        there = self.padded.arrays["task_alive"]
        return np.where(np.take_along_axis(there, np.maximum(assignment, 0), axis=1), assignment, -1)


class NumbersOrdersByPlace(Orders):
    """An order that moves up in the queue takes over the id of the one before it, whose picker then "had" it."""

    def observe(self) -> Observation:
        return replace(super().observe(), task_ids=self.ids // 2)


class LosesTrack(BatchOfSingles):
    """`previous` is the index that was given, though orders move up."""

    single = Orders

    def _previous(self) -> Ints:
        there = np.take_along_axis(self.padded.arrays["task_alive"], np.maximum(self._last, 0), axis=1)
        return np.where((self._last >= 0) & there, self._last, -1)


@pytest.mark.parametrize(
    ("faulty", "check", "detail"),
    [
        (CarriesOutWhatIsForbidden, "forbidden pairs are not carried out", "a forbidden pair is carried out at step"),
        (NumbersOrdersByPlace, "ids are unique and stay", "twice"),
        (LosesTrack, "ids are unique and stay", "previous is not the task that was given"),
    ],
)
def test_forbidden_pairs_and_ids_have_checks_that_can_fail(faulty, check, detail):
    found = run_check(faulty, check)
    assert found.status == "failed"
    assert detail in found.detail


class DrawsTheFutureAtTheStart(Orders):
    """All that will come is drawn in reset(), from a generator of its own: nothing can be drawn anew."""

    def reset(self, rng: np.random.Generator) -> None:
        super().reset(np.random.default_rng(rng.integers(2**32)))

    def redraw(self, rng: np.random.Generator) -> None:
        pass


def test_a_custom_environment_must_draw_anew_what_it_says_it_does():
    found = run_check(DrawsTheFutureAtTheStart, "fresh random numbers")
    assert found.status == "failed"
    assert "would see the future" in found.detail


class DrawsTheFutureInSecret(DrawsTheFutureAtTheStart):
    redraw = Env.redraw


def test_that_nothing_is_drawn_after_reset_is_no_proof_that_look_ahead_is_blind():
    found = run_check(DrawsTheFutureInSecret, "fresh random numbers")
    assert found.status == "unchecked"
    assert "define it if reset() draws what is observed later" in found.detail


def test_a_class_is_checked_like_its_name(monkeypatch):
    monkeypatch.setattr(run, "CHECKS", {name: CHECKS[name] for name in list(CHECKS)[:3]})
    by_class, by_name = (
        [(found.check, found.status) for found in check_env(env)] for env in (Orders, "tests.envs.custom_envs:Orders")
    )
    assert by_class == by_name
    assert len(by_class) > 3


@pytest.mark.parametrize("given", [Orders(), int, None, 3])
def test_what_is_no_environment_is_refused_before_any_check(given):
    with pytest.raises(InputError, match="check_env takes an environment string, a class of environments"):
        check_env(given)
