"""Policies as objects: they run wherever their name does, and a variant keeps whatever it does not change."""

import numpy as np
import pytest

import muster
from muster import InputError
from muster.assign.settings import InferenceSettings
from muster.envs.env import Observation
from muster.evaluation.evaluate import evaluate
from muster.evaluation.replay import record
from muster.evaluation.scale import run_curve
from muster.models.direct import init_parameters
from muster.models.spec import ModelSpec
from muster.models.torch_networks import ScoringModel, parameters_of
from muster.policy import learned
from muster.policy.learned import LearnedPolicy
from muster.policy.names import resolve
from muster.policy.settings import NoiseSettings

SHIPPED = "rescue-2x4-quad-dm"


def untrained(env: str, method="lp", kind="dm", pair_features=False, seed=0) -> LearnedPolicy:
    made = muster.make(env)
    made.show(pair_features=pair_features, planes=kind == "pem")
    spec = ModelSpec.of(made.observe(), kind, method == "quad")
    rng = np.random.default_rng(seed)
    parameters = parameters_of(ScoringModel(spec, rng)) if kind == "pem" else init_parameters(spec, rng)
    inference = InferenceSettings(method, assign_all=True)
    return LearnedPolicy("untrained", spec, parameters, inference, NoiseSettings(), {"env": env})


@pytest.mark.parametrize("noise", [False, True])
def test_a_loaded_policy_plays_as_its_name_does(noise):
    policy = muster.load(SHIPPED)
    by_name, by_object = (muster.evaluate(one, "rescue:3x6", 30, noise=noise) for one in (SHIPPED, policy))
    assert (by_object.records.outcome == by_name.records.outcome).all()
    assert by_object.noise == by_name.noise == noise
    assert policy.noisy is False  # a copy was run
    quiet = muster.evaluate(policy, "rescue:3x6", 30)
    assert (quiet.records.outcome == by_name.records.outcome).all() != noise


@pytest.mark.parametrize("pair_features", [False, True])
def test_a_policy_acts_on_what_an_environment_shows_unasked_or_with_more(pair_features):
    policy = untrained("rescue:3x5", "quad", "dm", pair_features)
    unasked, more = muster.make("rescue:4x7", 6, seed=3), muster.make("rescue:4x7", 6, seed=3)
    more.show(planes=True, prior=True)
    rng = np.random.default_rng(0)
    for _ in range(3):
        plain, full = unasked.observe(), more.observe()
        assert full.planes is not None
        assert np.array_equal(policy.act(plain), policy.act(full))
        assert np.array_equal(policy.scores(plain)[0], policy.scores(full)[0])
        step = rng.integers(0, 7, (6, 4))
        unasked.step(step)
        more.step(step)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("dm", r"reads 5 pair features but what is observed has 0; call env.show\(pair_features=True\)"),
        ("pem", r"which what is observed does not show; call env.show\(planes=True\)"),
    ],
)
def test_an_observation_without_what_the_policy_reads_is_refused(kind, message):
    policy = untrained("rescue:2x4", kind=kind, pair_features=kind == "dm")
    env = muster.make("rescue:2x4")
    env.show(pair_features=False)
    with pytest.raises(InputError, match=message):
        policy.act(env.observe())


def test_variants_keep_what_they_do_not_change():
    policy = untrained("rescue:2x4", "quad")
    both = policy.with_noise().with_inference(effort="best")
    assert both.noisy
    assert both.inference == InferenceSettings("quad", effort="best", assign_all=True)
    assert policy.with_inference(effort="best").with_noise().noisy
    assert both.without_task_scores().noisy
    renamed = both.variant(name="x")
    assert (renamed.name, renamed.spec, renamed.header, renamed.noisy) == ("x", policy.spec, policy.header, True)
    assert not policy.noisy
    seen = muster.make("rescue:6x9", 20).observe()
    assert not np.array_equal(both.act(seen), policy.act(seen))


def test_a_noisy_object_is_recorded_as_noisy():
    policy = untrained("rescue:2x4").with_noise()
    assert evaluate(policy, "rescue:2x4", 3).noise is True


def test_noise_is_refused_where_there_is_none():
    class Idle:
        name = "idle"

        def reset(self, slots, seeds):
            pass

        def act(self, observation):
            return np.full(observation.agent_alive.shape, -1)

    env = muster.make("rescue:2x4")
    assert resolve(Idle(), env).name == "idle"
    with pytest.raises(InputError, match="noise is for learned policies, which 'idle' is not"):
        evaluate(Idle(), env, 1, noise=True)
    with pytest.raises(InputError, match="'closest' is a baseline"):
        evaluate("closest", env, 1, noise=True)


def test_an_object_is_refused_by_an_environment_of_another_kind():
    with pytest.raises(InputError, match="was trained on rescue:2x4; it cannot run on tests"):
        evaluate(untrained("rescue:2x4"), "tests.learning.toy:Pairing", 1)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("closest", r"'closest' is a baseline and needs its environment: muster.evaluate\('closest', 'rescue:2x4'\)"),
        ("wcnok", r"'wcnok' is a baseline and needs its environment: muster.evaluate\('wcnok', 'battle:w15v17'\)"),
        ("rescue-2x4-quad-dn", "no learned policy 'rescue-2x4-quad-dn', .*; did you mean 'rescue-2x4-quad-dm'"),
        ("zzz", "no learned policy 'zzz', nor a run or .safetensors file at that path; muster policies lists"),
    ],
)
def test_a_name_that_is_no_learned_policy_gets_an_answer(name, message):
    with pytest.raises(InputError, match=message):
        muster.load(name)


def test_weights_are_packed_once(monkeypatch):
    packed = []
    monkeypatch.setattr(learned, "make_scorer", lambda *a, make=learned.make_scorer: packed.append(1) or make(*a))
    policy = untrained("rescue:2x4")
    env = muster.make("rescue:2x4", 4)
    for _ in range(3):
        env.step(policy.act(env.observe()))
    noisy = policy.with_noise()
    noisy.act(env.observe())
    assert len(packed) == 1


@pytest.mark.parametrize("kind", ["dm", "pem", SHIPPED])
def test_a_policy_fits_a_terminal_and_a_notebook(kind):
    policy = muster.load(SHIPPED) if kind == SHIPPED else untrained("rescue:2x4", "quad", kind)
    lines = repr(policy).splitlines()
    assert lines[0] == f"LearnedPolicy {policy.name}"
    assert max(map(len, lines)) <= 80
    page = policy._repr_html_()
    for words in ("rescue:2x4", policy.inference.method, policy.spec.kind):
        assert words in repr(policy)
        assert words in page


def test_scores_learned_for_another_procedure_are_no_costs():
    with pytest.raises(InputError, match=r"learned its scores for 'quad'.*no routes"):
        muster.load(SHIPPED).with_inference(method="routes")


def test_a_setting_that_there_is_not_is_named():
    policy = muster.load(SHIPPED)
    with pytest.raises(InputError, match="no setting 'metod'; did you mean 'method'"):
        policy.with_inference(metod="lp")
    with pytest.raises(InputError, match="no setting 'foo'"):
        policy.with_rollouts(rollouts=4, foo=1)


def test_one_situation_needs_no_batch_and_no_padding():
    policy = untrained("tests.learning.toy:Pairing", "quad")
    rng = np.random.default_rng(0)
    sizes = [(2, 3), (4, 1), (1, 6), (3, 3)]
    views = [Observation(rng.normal(size=(n, 1)), rng.normal(size=(m, 1)), capacities=[2.0] * m) for n, m in sizes]
    alone = [policy.act(view) for view in views]
    assert [one.shape for one in alone] == [(n,) for n, _ in sizes]
    assert all(one.min() >= -1 and one.max() < m for one, (_, m) in zip(alone, sizes, strict=True))
    together = policy.act(views)
    assert [one.tolist() for one in together] == [one.tolist() for one in alone]
    for view, one in zip(views, alone, strict=True):
        fields = {name: getattr(view, name) for name in ("agent_features", "task_features", "capacities")}
        assert policy.act(**fields).tolist() == one.tolist()
    assert policy.act([]) == []


def test_a_situation_equals_the_same_in_a_batch():
    policy = muster.load(SHIPPED)
    env = muster.make("rescue:5x9", 3, seed=4)
    env.show(pair_features=True, planes=False)
    seen = env.observe()
    names = ("agent_features", "task_features", "pair_features", "task_pair_features")
    for slot, expected in enumerate(policy.act(seen)):
        assert (
            policy.act(Observation(**{name: getattr(seen, name)[slot] for name in names})).tolist() == expected.tolist()
        )


@pytest.mark.parametrize(
    ("given", "fields", "message"),
    [
        (None, {"agent_feature": 1}, "no field of a view 'agent_feature'; did you mean 'agent_features'"),
        (None, {"agent_features": [[1.0]]}, "at least agent_features .* and task_features"),
        (None, {"agent_features": [[1.0, 2.0]], "task_features": [[1.0]]}, "reads 1 agent features but .* has 2"),
        (3, {}, "takes an observation, a view"),
        ([3], {}, "takes an observation, a view"),
    ],
)
def test_a_situation_that_is_none_is_refused(given, fields, message):
    with pytest.raises(InputError, match=message):
        untrained("tests.learning.toy:Pairing").act(given, **fields)


class Stubborn:
    """Keeps to the first task of an episode that it gave each agent: memory per slot, and no base class."""

    name = "stubborn"

    def __init__(self):
        self.kept = {}

    def reset(self, slots, seeds):
        for slot, seed in zip(slots, seeds, strict=True):
            self.kept[int(slot)] = int(seed) % 7

    def act(self, observation):
        batch, n = observation.agent_alive.shape
        rows = []
        for slot in range(batch):
            alive = np.flatnonzero(observation.task_alive[slot])
            free = np.roll(alive, self.kept[slot])
            rows.append([free[i] if i < len(free) else -1 for i in range(n)])
        return np.where(observation.agent_alive, np.array(rows).reshape(batch, n), -1)


def test_an_object_with_memory_per_slot_is_evaluated_compared_scaled_and_replayed():
    """Its memory follows the slots: what it does in an episode depends on no batch."""
    env = "rescue:2x4,grid=8"
    alone, batched = (muster.evaluate(Stubborn(), env, 12, batch=batch).records.outcome for batch in (1, 5))
    assert (alone == batched).all()
    assert len(set(alone)) > 1
    found = muster.compare([Stubborn(), "closest"], env, 12)
    assert (found.evaluations[0].records.outcome == alone).all()
    curve = run_curve(Stubborn(), {2: env, 3: "rescue:3x6,grid=8"}, ("closest",), 12)
    assert curve.points[0].policy.mean == found.evaluations[0].mean
    made = muster.make(env)
    assert len(record(resolve(Stubborn(), made), made, seed=0).assignments) == alone[0]
