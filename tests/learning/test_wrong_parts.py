"""Models, inference procedures and learners that do not do what is asked of them: each gets one sentence."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import muster
from muster.errors import InputError

ENV, PRIOR_ENV = "rescue:2x4", "tests.learning.toy:Sized"
ES = {"learner": "es", "es": {"pairs": 2, "episodes": 2}}
HERE = f"{__name__}:"


class Model:
    """A weight for each feature of a pair."""

    def __init__(self, pair_width: int, start: float = 0.0):
        self.start = start
        self.parameters = {"w": np.full(pair_width, start, np.float32)}

    def scores(self, observation):
        return observation.pair_features @ self.parameters["w"], None


class Failing(Model):
    """Divides by zero."""

    def scores(self, observation):
        raise ZeroDivisionError("in the model")


class Undefined(Model):
    """NaN for tasks that are gone."""

    def scores(self, observation):
        h, g = super().scores(observation)
        return np.where(observation.task_alive[:, None], h, np.nan), g


class Complex(Model):
    """Numbers with an imaginary part."""

    def scores(self, observation):
        return super().scores(observation)[0] * 1j, None


class Writing(Model):
    """Writes to what it reads."""

    def scores(self, observation):
        observation.pair_features[...] = 0.0
        return super().scores(observation)


def no_problem():
    """An inference without arguments."""


def failing(problem):
    """An inference that fails."""
    raise ZeroDivisionError("in the inference")


class Learner(muster.Learner):
    """Learns nothing, and does everything right; those below get one thing wrong."""

    def __init__(self, setup):
        super().__init__(setup)
        self.now, self.updates = setup.first_parameters(), 0

    def update(self, progress=0.0):
        self.updates += 1
        (episodes,) = self.run_episodes(self.now, 0, 2)
        return {"reward": float(episodes.reward.mean()), "episodes": 2, "sigma": 0.25}

    def parameters(self):
        return self.now

    def start(self, parameters):
        self.now = dict(parameters)


class Standing(Learner):
    """Counts no steps."""

    def update(self, progress=0.0):
        return {"reward": 0.0, "episodes": 1}


class Unreported(Learner):
    """Reports nothing."""

    def update(self, progress=0.0):
        super().update()


class Lists(Learner):
    """Reports an array."""

    def update(self, progress=0.0):
        return super().update() | {"spread": np.zeros(3)}


class Unrewarded(Learner):
    """Reports no reward."""

    def update(self, progress=0.0):
        return super().update() | {"reward": float("nan")}


class Unaware(Learner):
    """Does not ask how far the run is."""

    def update(self):
        return super().update()


class Foreign(Learner):
    """Has parameters of no model."""

    def parameters(self):
        return {**self.now, "mine": np.zeros(3)}


class Growing(Learner):
    """Has parameters of another shape after an update."""

    def parameters(self):
        return {name: np.stack([array] * 2) if self.updates else array for name, array in self.now.items()}


class Living(Learner):
    """Returns the arrays that it changes; its first update is the best."""

    def update(self, progress=0.0):
        metrics = super().update()
        for array in self.now.values():
            array[...] = self.updates
        return metrics | {"reward": -float(self.updates)}


def train(**settings):
    return muster.train(ENV, **{"inference": "lp", "steps": 40} | settings)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        (ES | {"model": Failing}, r"Failing failed: ZeroDivisionError: in the model \(.*line"),
        (ES | {"model": Undefined}, r"Undefined must return h with a finite number for every pair.*got nan"),
        (ES | {"model": Complex}, r"Complex must return h with a finite number.*got complex64"),
        (ES | {"model": failing}, "must be a torch module, or have scores"),
        (ES | {"model": Model(7)}, r"the parameters of the object of .*:Model.* w of shape \(\d,\), got \(7,\)"),
        (ES | {"inference": no_problem}, "no_problem failed: TypeError: .* takes 0 positional arguments"),
        (ES | {"inference": failing}, "failing failed: ZeroDivisionError: in the inference"),
        ({"learner": Standing}, r"update\(\) of .*:Standing counted no environment steps"),
        ({"learner": Unreported}, "must return a dict of numbers, reward and episodes among them, got None"),
        ({"learner": Lists}, r"dict of numbers.*got \{'spread': array"),
        ({"learner": Unrewarded}, "Unrewarded must return the mean reward of its episodes, got nan"),
        ({"learner": Unaware}, r"update\(\) of .*:Unaware failed: TypeError: .*takes 1 positional argument"),
        ({"learner": Foreign}, r"parameters\(\) of .*:Foreign must be the model's: mine none but h\.left.*got \(3,\)"),
        ({"learner": Growing}, r"parameters\(\) of .*:Growing must be the model's: h\.left of shape .*got \(2, "),
        ({"learner": functools.partial(Learner)}, "a custom learner is a class, a function or an object"),
    ],
)
def test_a_wrong_part_is_named_in_one_sentence(settings, complaint):
    with pytest.raises(InputError, match=complaint):
        train(**settings)


def test_a_part_that_fails_in_the_first_update_leaves_the_folder_free(tmp_path):
    for learner in (Standing, Unreported):
        with pytest.raises(InputError, match=r"update\(\) of"):
            train(learner=learner, out=tmp_path / "run")
    assert train(learner=Learner, out=tmp_path / "run", evaluate_episodes=4)


def test_a_learner_is_not_made_by_its_user():
    with pytest.raises(InputError, match="a learner is made by muster"):
        Learner(None)


def test_the_trainer_copies_the_arrays_of_a_learner():
    """Else the best policy, of the first update, would have the last one's weights."""
    policy = train(learner=Living, log_every=1)
    assert policy.header["steps"] > 2
    assert all((array == 1.0).all() for array in policy.parameters.values())


def test_metrics_of_a_learner_are_in_the_log(tmp_path):
    train(learner=Learner, out=tmp_path / "run", evaluate_episodes=4)
    assert '"sigma": 0.25' in (tmp_path / "run" / "metrics.jsonl").read_text()
    assert "sigma" in (tmp_path / "run" / "metrics.csv").read_text().partition("\n")[0].split(",")


@pytest.mark.parametrize(
    ("findings", "said"),
    [
        (lambda: muster.check_model(Failing), "in the model"),
        (lambda: muster.check_model(Writing), "writes to the observation"),
        (lambda: muster.check_inference(failing), "in the inference"),
    ],
)
def test_checks_tell_an_error_once(findings, said):
    first, *others = findings()
    assert said in first.detail
    assert others
    assert {finding.detail for finding in others} == {"the same"}


def test_check_learner_has_the_sentences_of_training():
    for learner, said in ((Standing, "counted no environment steps"), (Unreported, "must return a dict of numbers")):
        assert said in muster.check_learner(learner, ENV, inference="lp")[0].detail


@pytest.mark.parametrize("report", [lambda row: None, lambda: None, lambda row, progress, run: None])
def test_a_report_of_another_signature_is_refused_before_the_run(report, tmp_path):
    with pytest.raises(InputError, match=r"a function of two arguments, report\(row, progress\)"):
        train(learner=Learner, report=report, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_num_envs_is_refused_where_it_has_no_effect():
    with pytest.raises(InputError, match="num_envs is for the other learners"):
        train(num_envs=8, **ES)


class Curious:
    """Scores by the environment's prior, which it must be shown or not."""

    def __init__(self, agent_width: int, shown: bool = True):
        self.shown, self.parameters = shown, {"w": np.zeros(agent_width, np.float32)}

    def scores(self, observation):
        assert (observation.prior is not None) == self.shown
        h = np.zeros(observation.pairs.shape) + (observation.agent_features @ self.parameters["w"])[:, :, None]
        return h + observation.prior if self.shown else h, None


@pytest.mark.parametrize("prior", [True, False])
def test_a_custom_model_is_shown_the_prior_unless_it_shall_not_be(prior):
    policy = muster.train(PRIOR_ENV, model=f"{HERE}Curious,shown={prior}", inference="lp", prior=prior, steps=8, **ES)
    assert policy.spec.corrects == prior


def test_a_model_without_weights_has_nothing_to_learn():
    with pytest.raises(InputError, match="Model has no parameters to learn"):
        muster.train(PRIOR_ENV, model=Model, inference="lp", steps=8, **ES)


class Policy:
    """Acts with what it is given."""

    name = "mine"

    def __init__(self, answer):
        self.answer = answer

    def act(self, observation):
        return self.answer


@pytest.mark.parametrize("answer", [None, np.full((4, 2), 0.5)])
def test_a_policy_that_does_not_act_with_indices_is_named(answer):
    with pytest.raises(InputError, match=r"act\(\) of the policy mine must return a task index for each agent.*got"):
        muster.evaluate(Policy(answer), ENV, episodes=4)


def test_a_model_without_torch_is_no_torch_module():
    pytest.importorskip("torch")
    with pytest.raises(InputError, match="Model is no torch module, so there is none to return"):
        train(model=Model, **ES).to_torch()
