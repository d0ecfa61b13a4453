from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pytest

import muster
from muster.assign.settings import InferenceSettings
from muster.data import BatchObservation
from muster.envs.env import Env, Observation
from muster.envs.registry import another, make
from muster.envs.vector import IDLE, BatchEnv
from muster.errors import InputError
from muster.evaluation.evaluate import evaluate
from muster.learning.envs import prepare
from muster.learning.settings import ESSettings, TrainSettings
from muster.models.direct import init_parameters
from muster.models.spec import ModelSpec
from muster.policy.learned import LearnedPolicy, prior_policy
from muster.policy.lookahead import LookAhead, best_beyond_chance, worth_of
from muster.policy.names import resolve
from muster.policy.settings import NoiseSettings
from muster.rng import episode_seeds
from tests.envs.custom_envs import Orders, SavedOrders


def untrained(env: BatchEnv, method: str = "lp") -> LearnedPolicy:
    spec = ModelSpec.of(env.observe(), "dm", method == "quad", prior=False)
    parameters = init_parameters(spec, np.random.default_rng(0))
    header = {"env": env.name}
    return LearnedPolicy("p", spec, parameters, InferenceSettings(method), NoiseSettings(), header)


def test_look_ahead_of_a_loaded_policy_is_that_of_the_saved_one(tmp_path):
    policy = untrained(make("battle:m5v5"), "quad")
    policy.save(tmp_path / "p.safetensors")
    loaded = LearnedPolicy.load(tmp_path / "p.safetensors")
    ahead = [
        evaluate(one.with_rollouts(4, candidates="theta"), make("battle:m5v5", 2), 2, 1) for one in (policy, loaded)
    ]
    assert ahead[0].records.reward.tolist() == ahead[1].records.reward.tolist()


class Doors(Env):
    """One door of three is the right one, every time; an episode is a single decision. Nothing tells which."""

    n_agents, n_tasks, max_steps, metric = 1, 3, 1, "return"

    def reset(self, rng: np.random.Generator) -> None:
        self.right = int(rng.integers(3))

    def observe(self) -> Observation:
        return Observation(np.zeros((1, 1)), np.arange(3.0)[:, None])

    def step(self, assignment: np.ndarray) -> tuple[float, bool]:
        return float(assignment[0] == self.right), True


class Coins(Doors):
    """The right door is drawn only once one is chosen: looking ahead can know nothing."""

    def reset(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def step(self, assignment: np.ndarray) -> tuple[float, bool]:
        return float(assignment[0] == self.rng.integers(3)), True


class KnownBeforehand(Coins):
    """The same, but the door was drawn at the start, unseen; `redraw` knows."""

    def reset(self, rng: np.random.Generator) -> None:
        self.right = int(rng.integers(3))

    def redraw(self, rng: np.random.Generator) -> None:
        self.right = int(rng.integers(3))

    def step(self, assignment: np.ndarray) -> tuple[float, bool]:
        return float(assignment[0] == self.right), True

    def get_state(self) -> Mapping[str, int]:
        return {"right": self.right}

    def set_state(self, state: Mapping[str, np.ndarray]) -> None:
        self.right = int(state["right"])


@pytest.mark.parametrize("ahead", [{"candidates": "theta"}, {"candidates": "scores"}, {"futures": 2}])
def test_trying_finds_what_the_environment_is_like(ahead):
    policy = untrained(make(Doors)).with_rollouts(24, size=3.0, **ahead)
    assert evaluate(policy, Doors, 40).mean > 0.8


@pytest.mark.parametrize("env", [Coins, KnownBeforehand])
def test_trying_does_not_see_what_chance_will_bring(env):
    for ahead in ({"candidates": "scores"}, {"futures": 4}):
        policy = untrained(make(env)).with_rollouts(24, size=3.0, **ahead)
        assert evaluate(policy, env, 120).mean == pytest.approx(1 / 3, abs=0.12)


@pytest.mark.slow
def test_look_ahead_wins_battles_that_the_policy_alone_does_not():
    policy = muster.load("battle-m10v10-lp-dm")
    alone = evaluate(policy, "battle:m10v12", 30, seed=5)
    ahead = evaluate(policy.with_rollouts(8, horizon=15), "battle:m10v12", 30, seed=5)
    assert ahead.mean > alone.mean + 0.1
    assert ahead.look_ahead == policy.with_rollouts(8, horizon=15).rollouts
    assert alone.look_ahead is None


@pytest.mark.parametrize("ahead", [{"candidates": "theta"}, {"candidates": "scores"}, {"futures": 3}])
def test_episodes_are_the_same_whatever_the_batch_and_the_threads(ahead, monkeypatch):
    policy = muster.load("rescue-2x4-quad-dm").with_rollouts(3, horizon=4, **ahead)
    name = "rescue:3x6,random_moves=true"
    together = evaluate(policy, name, 7, batch=7).records
    for batch, threads in ((1, 1), (3, 2)):
        env = make(name, batch)
        env.threads = threads
        apart = evaluate(policy, env, 7).records
        assert np.array_equal(together.outcome, apart.outcome)
        assert np.array_equal(together.changes, apart.changes)
    again = evaluate(policy, name, 7, seed=0).records
    assert np.array_equal(together.outcome, again.outcome)


def test_the_environment_itself_is_left_alone():
    env = make("battle:m3v3", 2)
    acting = resolve(muster.load("battle-m10v10-lp-dm").with_rollouts(3), env)
    acting.reset(np.arange(2), episode_seeds(0, np.arange(2)))
    before = env.get_state()
    acting.act(env.observe())
    assert all(np.array_equal(array, before[name]) for name, array in env.get_state().items())


def test_slots_without_an_episode_cost_nothing(monkeypatch):
    env = make("rescue:2x4", 4)
    acting = resolve(muster.load("rescue-2x4-lp-dm").with_rollouts(3), env)
    env._running[1:] = False
    tried: list[int] = []
    monkeypatch.setattr(LookAhead, "_decide", lambda self, slots, state, each: tried.extend(slots) or -1)
    assert (acting.act(env.observe())[1:] == -1).all()
    assert tried == [0]


def test_only_two_candidates_are_the_policy_and_one_more():
    """With nothing to choose from, worth decides: the policy itself wins ties."""
    env = make("rescue:2x4", 5)
    policy = muster.load("rescue-2x4-lp-dm")
    acting = resolve(policy.with_rollouts(2, size=1e-9), env)
    acting.reset(np.arange(5), episode_seeds(0, np.arange(5)))
    seen = env.observe()
    assert np.array_equal(acting.act(seen), policy.act(seen))
    assert not acting.best.any()


def test_the_best_of_a_decision_is_a_candidate_of_the_next(monkeypatch):
    env = make("battle:m3v3", 3)
    acting = resolve(muster.load("battle-m10v10-lp-dm").with_rollouts(4), env)
    acting.reset(np.arange(3), episode_seeds(0, np.arange(3)))
    tried: list[np.ndarray] = []
    play = LookAhead._try

    def watched(self, slots, state, moves, part):
        tried.append(moves.copy())
        found, first = play(self, slots, state, moves, part)
        return np.arange(4.0) + 0 * found, first

    monkeypatch.setattr(LookAhead, "_try", watched)
    for _ in range(2):
        env.step(acting.act(env.observe()))
    assert np.array_equal(tried[1][:, 1], tried[0][:, 3])
    assert not tried[0][:, 0].any()
    assert not tried[1][:, 0].any()


def test_time_decides_how_many_are_tried(monkeypatch):
    env = make("rescue:2x4", 1)
    acting = resolve(muster.load("rescue-2x4-lp-dm").with_rollouts(until=0.2), env)
    acting.reset(np.arange(1), episode_seeds(0, np.arange(1)))
    rounds: list[int] = []
    play = LookAhead._try
    monkeypatch.setattr(LookAhead, "_try", lambda self, *given: rounds.append(1) or play(self, *given))
    acting.act(env.observe())
    assert len(rounds) > 2


@pytest.mark.parametrize("single", [Orders, SavedOrders])
def test_environments_of_ones_own_can_be_looked_ahead_in(single):
    """With ids, idling, views of any length; saving themselves or run again."""
    policy = untrained(make(single, 3))
    alone = evaluate(policy, single, 3).mean
    assert evaluate(policy.with_rollouts(6, horizon=4), single, 3).mean > alone


def test_fleets_are_looked_ahead_in_with_other_requests():
    env = make("fleet:6,city=small", 4)
    for _ in range(3):
        env.step(np.full((4, 6), -1))
    copies = another(env, 4)
    copies.set_state(env.get_state())
    copies.reseed(episode_seeds(3, np.arange(4)))
    known = slice(0, 4)
    assert np.array_equal(copies.fleet.pickups[:, known], env.fleet.pickups[:, known])
    assert not np.array_equal(copies.fleet.pickups[:, 4:], env.fleet.pickups[:, 4:])


def test_a_critic_values_what_is_cut():
    policy = untrained(make(SavedOrders))
    values: list[int] = []

    def critic(seen: BatchObservation) -> np.ndarray:
        values.append(seen.batch)
        return np.zeros(seen.batch)

    evaluate(policy.with_rollouts(2, critic, horizon=3), SavedOrders, 1)
    assert values


def test_worth_follows_the_metric():
    rescue = make("rescue:2x4", 2)
    rescue.steps[:] = 5
    unfinished = np.array([False, True])
    assert worth_of(rescue, np.zeros(2), unfinished, False).tolist() == [-5, -9]
    assert worth_of(rescue, np.array([1.0, 2.0]), unfinished, True).tolist() == [1, 2]
    battle = make("battle:m1v1", 1)
    assert worth_of(battle, np.array([0.5]), np.zeros(1, bool), False).tolist() == [0.25]


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({}, "needs a number of rollouts"),
        ({"rollouts": 4, "until": 1.0}, "not both"),
        ({"rollouts": 0}, "rollouts must be at least 1"),
        ({"rollouts": 4, "futures": 0}, "futures must be at least 1"),
        ({"rollouts": 4, "futures": 2, "candidates": "theta"}, "leave out candidates"),
        ({"until": 0.0}, "positive"),
        ({"rollouts": 4, "candidates": "weights"}, "candidates"),
    ],
)
def test_bad_settings_are_refused(settings, reason):
    with pytest.raises(InputError, match=reason):
        muster.load("rescue-2x4-lp-dm").with_rollouts(**settings)


def test_what_cannot_be_is_refused():
    policy = muster.load("rescue-2x4-lp-dm")
    with pytest.raises(InputError, match="exploration noise"):
        policy.with_rollouts(4).with_noise()
    with pytest.raises(InputError, match="looks ahead"):
        policy.with_rollouts(4).act(make("rescue:2x4").observe())
    with pytest.raises(InputError, match="candidates 'scores'"):
        resolve(muster.load("rescue-2x4-lp-pem").with_rollouts(4, candidates="theta"), make("rescue:2x4"))
    with pytest.raises(InputError, match="does not say how to look ahead"):
        LookAhead(policy, make("rescue:2x4"))


@pytest.mark.parametrize("candidates", ["theta", "scores"])
def test_environments_that_read_reasons_hear_them_from_candidates(candidates):
    """Marines that prefer to wait are told to, also by who looks ahead: the policy itself is one of its candidates."""
    env = make("battle:m5v5,idle=reasons", 1)
    policy = untrained(env)
    down = {name: array - 10.0 if name == "h.bias3" else array for name, array in policy.parameters.items()}
    policy = LearnedPolicy("p", policy.spec, down, InferenceSettings("lp"), NoiseSettings(), policy.header)
    ahead = LookAhead(policy.with_rollouts(2, candidates=candidates, horizon=1), env)
    slots, seeds = np.arange(1), episode_seeds(0, np.arange(1))
    env.reset(slots, seeds)
    ahead.reset(slots, seeds)
    seen = env.observe()
    assert (policy.actions(seen) == IDLE).all()
    ahead.candidates.prepare(np.zeros((1, ahead.candidates.width), np.float32), seen)
    assert (ahead.candidates.act(seen) == IDLE).all()
    assert (ahead.actions(seen) == IDLE).all()
    assert (ahead.act(seen) == -1).all()


class Lottery(Doors):
    """Door 0 pays 0.4 for certain, the others 1 in a quarter of the cases: the policy takes door 0, and rightly so."""

    def reset(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def observe(self) -> Observation:
        return Observation(np.zeros((1, 1)), np.arange(3.0)[:, None], prior=np.array([[1.0, 0.0, 0.0]]))

    def step(self, assignment: np.ndarray) -> tuple[float, bool]:
        lucky = float(self.rng.random() < 0.25)
        return 0.4 if assignment[0] == 0 else lucky, True


class Bargain(Lottery):
    """The same, where the others pay 1 in nine cases of ten: the policy is wrong."""

    def step(self, assignment: np.ndarray) -> tuple[float, bool]:
        lucky = float(self.rng.random() < 0.9)
        return 0.4 if assignment[0] == 0 else lucky, True


def test_a_gain_by_chance_does_not_replace_the_policys_decision_and_a_real_one_does():
    """By the single best of 24 rollouts the lottery would nearly always be taken."""
    for env, target in ((Lottery, 0.38), (Bargain, 0.8)):
        prior = resolve("prior", make(env))
        assert evaluate(prior.with_rollouts(24, futures=16, size=3.0), env, 60).mean > target


def test_one_candidate_is_the_policy_itself():
    policy = muster.load("rescue-2x4-quad-dm")
    alone = evaluate(policy, "rescue:3x6", 6).records
    for ahead in ({"futures": 4}, {"candidates": "scores"}, {"candidates": "theta"}):
        found = evaluate(policy.with_rollouts(1, horizon=3, **ahead), "rescue:3x6", 6).records
        assert np.array_equal(found.outcome, alone.outcome)


def looking_ahead(env: BatchEnv, policy: str, **settings: int) -> LookAhead:
    acting = resolve(muster.load(policy).with_rollouts(**settings), env)
    acting.reset(np.arange(env.n_envs), episode_seeds(0, np.arange(env.n_envs)))
    assert isinstance(acting, LookAhead)
    return acting


def test_futures_are_the_same_for_all_candidates_and_differ_from_each_other(monkeypatch):
    """The same decision has the same worth, bit for bit, in a batch with others and in parts."""
    env = make("fleet:24,city=small", 2)
    ahead = looking_ahead(env, "fleet-24-lp-dm", rollouts=4, futures=5, horizon=6)
    own = muster.load("fleet-24-lp-dm").act(env.observe())
    idle = np.full_like(own, -1)
    state, slots = env.get_state(), np.arange(2)
    found = ahead._value(slots, state, np.stack([own, idle, own], axis=1), np.inf)
    assert np.array_equal(found[:, 0], found[:, 2])
    assert not np.array_equal(found[:, 0], found[:, 1])
    assert len(np.unique(found[0, 0])) > 1
    assert np.array_equal(ahead._value(slots, state, np.stack([idle, own], axis=1), np.inf), found[:, [1, 0]])
    monkeypatch.setattr("muster.policy.lookahead.MOST_COPIES", 3)
    assert np.array_equal(ahead._value(slots, state, np.stack([own, idle, own], axis=1), np.inf), found)


def test_candidates_that_decide_alike_are_tried_once(monkeypatch):
    env = make("rescue:2x4", 3)
    ahead = looking_ahead(env, "rescue-2x4-lp-dm", rollouts=5, futures=7, horizon=2)
    sizes: list[int] = []
    copy = LookAhead._copy
    monkeypatch.setattr(LookAhead, "_copy", lambda self, *given: sizes.append(len(given[0])) or copy(self, *given))
    move = np.array([0, 1])
    other = np.array([1, 0])
    moves = np.array([[move] * 3, [move, other, move], [move] * 3])
    worth = ahead._value(np.arange(3), env.get_state(), moves, np.inf)
    assert sizes == [2 * 7]
    assert not worth[[0, 2]].any()


def test_only_significant_gains_count_and_the_largest_of_them_is_taken():
    """Gains of 0.3 and 0.5 with a standard error of 0.1, and one of 0.6 with an error of 0.5."""
    signs = np.array([1.0, -1.0] * 50)
    error = math.sqrt(99) / 10
    own = np.random.default_rng(0).normal(size=100)
    gains = [own, own + 0.3 + error * signs, own + 0.5 + error * signs, own + 0.6 + 5 * error * signs]
    top, gain = best_beyond_chance(np.array([gains, [own] * 4, [own, *gains[3:] * 3]]), 1.5)
    assert top.tolist() == [2, 0, 0]
    assert gain == pytest.approx([0.5, 0, 0])
    assert best_beyond_chance(np.array([[own, own + 0.14 + error * signs]]), 1.5)[0] == 0
    assert best_beyond_chance(np.array([[own, own + 0.16 + error * signs]]), 1.5)[0] == 1
    assert best_beyond_chance(np.array([[own, own + 0.14 + error * signs]]), 1.3)[0] == 1


def test_a_round_that_is_not_through_in_time_does_not_count(monkeypatch):
    env = make("rescue:2x4", 1)
    ahead = looking_ahead(env, "rescue-2x4-lp-dm", until=1e-9, futures=4)
    seen = env.observe()
    steps: list[int] = []
    step = type(env).step
    monkeypatch.setattr(type(env), "step", lambda self, given: steps.append(1) or step(self, given))
    assert np.array_equal(ahead.act(seen), muster.load("rescue-2x4-lp-dm").act(seen))
    assert len(steps) <= 1


class Pairs(Env):
    """Every task needs two of five agents, or none."""

    n_agents, n_tasks, max_steps, metric = 5, 3, 4, "return"

    def reset(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def observe(self) -> Observation:
        two = np.full(3, 2.0)
        prior = np.arange(15.0).reshape(5, 3) % 7
        return Observation(np.zeros((5, 1)), np.zeros((3, 1)), prior=prior, capacities=two, minimums=two)

    def step(self, assignment: np.ndarray) -> tuple[float, bool]:
        assert set(np.bincount(assignment[assignment >= 0], minlength=3)) <= {0, 2}
        return float(self.rng.random() + assignment[0]), False


def test_minimums_hold_for_every_candidate():
    evaluate(resolve("prior", make(Pairs)).with_rollouts(12, futures=2, horizon=2, size=5.0), Pairs, 3)


@pytest.mark.parametrize("ahead", [{"futures": 2}, {}])
def test_linear_policies_look_ahead(ahead):
    """Weights of zero: the candidates of the linear model are those of the prior, and so is what is decided."""
    env = "fleet:6,city=small"
    setup = prepare(TrainSettings(env, "es", "lp", model="linear", es=ESSettings(pairs=1, episodes=2)))
    linear = LearnedPolicy(
        "new", setup.spec, init_parameters(setup.spec, None), setup.inference, NoiseSettings(), {"env": env}
    )
    prior = prior_policy(make(env), setup.inference)
    candidates = {} if ahead else {"candidates": "scores"}
    one, other = (
        evaluate(policy.with_rollouts(3, horizon=3, **ahead, **candidates), env, 3) for policy in (linear, prior)
    )
    assert one.look_ahead is not None
    assert np.array_equal(one.records.outcome, other.records.outcome)
