"""Each extension point, used by a distribution outside the package (tests/fixtures/parts)."""

from __future__ import annotations

import json
import shutil
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import muster
from muster.cli.main import main
from muster.custom import GROUPS, entries
from muster.errors import InputError, MusterError
from muster.learning.settings import TrainSettings

SOURCE = Path(__file__).parent / "fixtures" / "parts"
SHORT = {"steps": 600, "evaluate_episodes": 4}


@pytest.fixture(scope="module", autouse=True)
def parts(tmp_path_factory):
    """The distribution, installed into a folder of its own as pip lays it out."""
    site = tmp_path_factory.mktemp("site")
    project = tomllib.loads((SOURCE / "pyproject.toml").read_text())["project"]
    shutil.copytree(SOURCE / "parts", site / "parts")
    info = site / f"{project['name']}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    groups = project["entry-points"].items()
    lines = [f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in own.items()) for group, own in groups]
    (info / "entry_points.txt").write_text("\n".join(lines))
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(site))
        patch.setenv("PYTHONPATH", str(site))  # for workers
        yield site
        for name in [name for name in sys.modules if name == "parts" or name.startswith("parts.")]:
            del sys.modules[name]


def test_entry_points_of_every_kind_are_found(capsys):
    assert {kind: sorted(entries(kind)) for kind in GROUPS} == {
        "environment": ["couriers"],
        "model": ["pairnet", "weighted"],
        "inference": ["bounded", "greedy"],
        "learner": ["climb"],
    }
    main(("envs", "--kind", "learner", "--json"))
    assert json.loads(capsys.readouterr().out)["climb"] == f"{entries('learner')['climb']}, of an installed package"
    assert muster.make("couriers,n_agents=5").name == "parts.env:Couriers,n_agents=5"


@pytest.mark.parametrize(
    "file", [*sorted((SOURCE / "parts").glob("*.py")), SOURCE / "pyproject.toml"], ids=lambda f: f.name
)
def test_the_documentation_shows_the_distribution_as_it_is(file):
    if file.stem not in ("__init__", "env"):
        assert file.read_text() in (SOURCE.parents[2] / "docs" / "research" / "extend.md").read_text()


@pytest.mark.parametrize(
    "named",
    [
        {"model": "weighted", "inference": "greedy", "learner": "climb"},
        {"model": "weighted", "inference": "quad", "learner": "es", "es": {"pairs": 4, "episodes": 2}},
        {"model": "pairnet,hidden=4", "inference": "lp", "learner": "ppo", "ppo": {"rollout_length": 5}},
        {"model": "pairnet", "inference": "lp", "learner": "es", "es": {"pairs": 4, "episodes": 2}},
        {"inference": "bounded,slack=0.5", "learner": "a2c"},
        {"model": "dm", "inference": "lp", "learner": "climb,sigma=0.1"},
    ],
    ids=lambda named: "-".join(named[part] for part in ("model", "inference", "learner") if part in named),
)
def test_parts_by_name_train_save_and_go_on_bit_for_bit(named, tmp_path):
    if named.get("model", "").startswith("pairnet"):
        pytest.importorskip("torch")
    named = named if named["learner"] == "es" else {**named, "num_envs": 8}
    whole = muster.train("couriers", out=tmp_path / "whole", **named, **SHORT)
    muster.train("couriers", out=tmp_path / "parts", report=lambda row, progress: True, **named, **SHORT)
    resumed = muster.train("couriers", out=tmp_path / "parts", resume=True, steps=SHORT["steps"])
    assert _same(whole, resumed)
    loaded = muster.load(tmp_path / "whole")
    assert _same(loaded, whole)
    assert muster.evaluate(loaded, "couriers", episodes=8).mean == muster.evaluate(whole, "couriers", episodes=8).mean
    card = json.loads((tmp_path / "whole" / "card.json").read_text())
    assert card["learner"] == TrainSettings("couriers", **named).learner
    assert card["results"]


def _same(one, other) -> bool:
    return all(np.array_equal(one.parameters[name], other.parameters[name]) for name in other.parameters)


def test_parts_as_objects_are_those_by_name():
    from parts.env import Couriers
    from parts.inference import Bounded, greedy
    from parts.learner import HillClimbing
    from parts.model import Weighted

    model = Weighted(task_width=1, pair_width=1, task_scores=False, start=0.5)
    with pytest.raises(InputError, match="no attribute 'start'"):
        muster.train(Couriers, model=model, **SHORT)
    by_object = muster.train(Couriers, model=Weighted, inference=greedy, learner=HillClimbing, **SHORT)
    by_name = muster.train("couriers", model="weighted", inference="greedy", learner="climb", **SHORT)
    assert _same(by_object, by_name)
    assert by_object.spec.kind == "parts.model:Weighted"
    assert by_object.inference.method == "parts.inference:greedy"
    bounded = muster.train(Couriers, model=Weighted, inference=Bounded(slack=0.5), learner=HillClimbing, **SHORT)
    assert bounded.inference.method == "parts.inference:Bounded,slack=0.5"


def test_a_run_starts_from_the_weights_of_a_module():
    torch = pytest.importorskip("torch")
    from parts.network import PairNetwork

    net = PairNetwork(1, 1, 1, hidden=4)
    with torch.no_grad():
        net.out.bias.fill_(7.0)
    given = {"inference": "lp", "steps": 1, "num_envs": 2, "ppo": {"rollout_length": 1, "learning_rate": 1e-9}}
    policy = muster.train("couriers", model=net, **given)
    assert policy.spec.kind == "parts.network:PairNetwork,hidden=4"
    assert policy.parameters["out.bias"][0] == pytest.approx(7.0)


def test_a_plain_model_has_workers_and_the_same_bits(tmp_path):
    named = {"model": "weighted", "inference": "greedy", "es": {"pairs": 2, "episodes": 2}, "steps": 100}
    assert _same(muster.train("couriers", workers=2, **named), muster.train("couriers", **named))


@pytest.mark.parametrize(
    ("named", "complaint"),
    [
        ({"model": "wieghted"}, "no model 'wieghted'; did you mean 'weighted'?"),
        ({"learner": "clmb"}, "no learner 'clmb'; did you mean 'climb'?"),
        ({"inference": "gredy"}, "no inference 'gredy'; did you mean 'greedy'?"),
        ({"model": "weighted", "learner": "ppo"}, "is no torch module, so there are no gradients for ppo to follow"),
        ({"model": "weighted,strat=1"}, "no option of parts.model:Weighted 'strat'; did you mean 'start'?"),
        ({"learner": "climb", "workers": 2}, "runs in one process; leave out --workers"),
        ({"learner": "parts.model:Weighted"}, "must be a subclass of muster.Learner"),
        ({"inference": "parts.env:np"}, "must be a function of a Problem"),
        ({"model": "parts.env:Couriers"}, r"must be a torch module, or have scores\(observation\)"),
        ({"model": "parts.nothing:Net"}, "no module 'parts.nothing' can be imported"),
        ({"model": 3}, "a custom model is a class, a function or an object of a class of your own.*got 3"),
        ({"inference": lambda problem: problem}, "no other program can import <lambda>"),
        ({"learner": f"{__name__}:Rootless"}, r"must call super\(\).__init__\(setup\)"),
        ({"learner": f"{__name__}:Listing"}, r"must return a dict of arrays.*got \[1.0\]"),
        ({"learner": f"{__name__}:Silent"}, r"update\(\) of .*:Silent must return a dict of numbers.*got None"),
    ],
)
def test_what_cannot_be_gets_one_sentence(named, complaint):
    with pytest.raises(MusterError, match=complaint):
        muster.train("couriers", **named, **SHORT)


class Silent(muster.Learner):
    """Reports nothing."""

    def __init__(self, setup):
        super().__init__(setup)
        self.now = setup.first_parameters()

    def update(self, progress=0.0):
        self.steps += 1

    def parameters(self):
        return self.now

    def start(self, parameters):
        self.now = parameters


class Uncounted(Silent):
    """Reports rewards without the number of episodes."""

    def update(self, progress=0.0):
        super().update(progress)
        return {"reward": 1.0}


@pytest.mark.parametrize("learner", [Silent, Uncounted])
@pytest.mark.parametrize("length", [{"steps": 10}, {"minutes": 0.01}])
def test_a_learner_without_metrics_is_refused_whether_timed_or_not(learner, length):
    with pytest.raises(InputError, match="must return a dict of numbers, reward and episodes among them, got"):
        muster.train("couriers", learner=f"{__name__}:{learner.__name__}", **length)


class Rootless(Silent):
    """Forgets its base class."""

    def __init__(self, setup):
        self.setup = setup


class Listing(Silent):
    """Gives its weights no names."""

    def parameters(self):
        return [1.0]


def test_a_module_that_no_name_describes_is_refused():
    nn = pytest.importorskip("torch.nn")
    with pytest.raises(InputError, match="container:Sequential have no names; write a class"):
        muster.train("couriers", model=nn.Sequential(nn.Linear(3, 1)), **SHORT)


def test_an_inference_is_told_whether_every_agent_gets_a_task():
    problem = muster.Problem(scores=-np.ones((1, 2, 2)))
    for assign_all, expected in ((True, [0, 1]), (False, [-1, -1])):
        solver = muster.Solver("parts.inference:greedy", assign_all=assign_all)
        assert solver(problem).assignment[0].tolist() == expected
    assert muster.Solver("parts.inference:Bounded", assign_all=True)(problem).status[0] == "optimal"


def test_the_environments_of_a_distribution_are_listed(capsys):
    main(["envs"])
    assert "couriers\n    parts.env:Couriers, of an installed package" in capsys.readouterr().out


def test_the_command_line_takes_names(tmp_path, capsys):
    out = str(tmp_path / "run")
    words = ["--model", "weighted", "--inference", "greedy", "--learner", "climb,sigma=0.5", "--steps", "300"]
    main(["train", "couriers", *words, "--out", out, "--evaluate-episodes", "4"])
    main(["evaluate", out, "couriers", "--episodes", "4", "--json"])
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["inference"] == "parts.inference:greedy"
    main(["scale", out, "--env", "couriers", "--sizes", "2,4", "--episodes", "4", "--json"])
    assert len(json.loads(capsys.readouterr().out.splitlines()[-1])["points"]) == 2


def test_describing_a_policy_imports_nothing_of_it(tmp_path, capsys):
    muster.train("couriers", model="weighted", inference="greedy", learner="climb", out=tmp_path / "run", **SHORT)
    kept = {name: sys.modules.pop(name) for name in list(sys.modules) if name.startswith("parts")}
    try:
        main(["card", str(tmp_path / "run")])
        repr(muster.load(tmp_path / "run"))
        assert not [name for name in sys.modules if name.startswith("parts")]
    finally:
        sys.modules.update(kept)


def statuses(findings) -> dict[str, str]:
    return {finding.check: finding.status for finding in findings}


def test_the_parts_of_the_distribution_pass_their_checks():
    pytest.importorskip("torch")
    for model in ("weighted", "pairnet"):
        assert set(statuses(muster.check_model(model, "couriers")).values()) == {"passed"}
    for inference in ("greedy", "bounded"):
        found = muster.check_inference(inference)
        assert set(statuses(found).values()) == {"passed", "measured"}, found
    found = muster.check_learner("climb", "couriers", model="weighted", inference="lp")
    assert set(statuses(found).values()) == {"passed"}, found


class Weights:
    """What the broken models have."""

    def __init__(self):
        self.parameters = {"w": np.ones(1, np.float32)}


class Indexed(Weights):
    """Scores by the index of the task."""

    def scores(self, observation):
        shape = observation.agent_alive.shape + observation.task_alive.shape[1:]
        return np.broadcast_to(np.arange(shape[2], dtype=np.float32), shape) * self.parameters["w"], None


class Constant(Weights):
    """Does not read its parameters, and knows how many agents there are."""

    def scores(self, observation):
        shape = observation.agent_alive.shape + observation.task_alive.shape[1:]
        return np.full(shape, shape[1], np.float32), None


def crowding(problem):
    """Everyone to task 0."""
    return np.zeros(problem.scores.shape[:2], int)


class Boasting:
    """No agent gets a task, and that is said to be the best."""

    def __call__(self, problem):
        batch, agents, _ = problem.scores.shape
        return SimpleNamespace(assignment=np.full((batch, agents), -1), bound=np.zeros(batch))


class Forgetful(muster.Learner):
    """Learns by a count that it does not save."""

    def __init__(self, setup):
        super().__init__(setup)
        self.now, self.count = setup.first_parameters(), 0

    def update(self, progress=0.0):
        self.count, self.steps = self.count + 1, self.steps + 1
        self.now = {name: array + self.count for name, array in self.now.items()}
        return {"reward": 0.0, "episodes": 1}

    def parameters(self):
        return dict(self.now)

    def start(self, parameters):
        self.now = dict(parameters)


@pytest.mark.parametrize(
    ("findings", "failed"),
    [
        (lambda: muster.check_model(Indexed), "renumbering agents and tasks renumbers the scores"),
        (lambda: muster.check_model(Constant), "scores follow from the parameters"),
        (lambda: muster.check_model(Constant), "masked agents change no score of others"),
        (lambda: muster.check_inference(crowding), "answers are feasible"),
        (lambda: muster.check_inference(Boasting), "bounds hold"),
        (lambda: muster.check_learner(Forgetful, inference="lp"), "a saved state goes on bit for bit"),
    ],
)
def test_a_broken_part_fails_its_check(findings, failed):
    assert statuses(findings())[failed] == "failed"
