from __future__ import annotations

import re
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import muster
from muster.envs.env import Env
from muster.envs.pettingzoo import parallel_env
from muster.envs.rescue import RescueEnv
from muster.envs.singles import batched
from muster.errors import InputError, MusterError
from tests.envs.custom_envs import Orders


def test_make_begins_the_first_episodes_of_the_seed():
    small, large = muster.make("rescue:2x4", 3, seed=5), muster.make("rescue:2x4", num_envs=9, seed=5)
    assert isinstance(small, RescueEnv)
    assert small.name == "rescue:2x4"
    assert np.array_equal(small.task_cells, large.task_cells[:3])
    assert small.unsolved.all()
    assert not np.array_equal(small.task_cells, muster.make("rescue:2x4", 3, seed=6).task_cells)


@pytest.mark.parametrize(
    ("env", "complaint"),
    [
        ("resque:2x4", "no environment 'resque'; did you mean 'rescue'?"),
        ("rescue", "'rescue' does not say which rescue; write rescue:AGENTSxTASKS"),
        ("rescue:", "'rescue:' does not say which rescue"),
        ("rescue:two", "rescue takes agents x tasks, such as rescue:2x4"),
        ("rescue:0x4", "agents must be at least 1, got 0"),
        ("rescue:2x0", "tasks must be at least 1, got 0"),
        ("rescue:200x100", "300 distinct start cells do not fit on the 256 cells of a 16x16 grid"),
        ("rescue:20x10,grid=4,placement=distinct-within-type", "20 distinct start cells do not fit on the 16 cells"),
        ("rescue:2x4,gird=32", "no rescue setting 'gird'; did you mean 'grid'?"),
        ("rescue:2x4,grid", "reads name=value, got 'grid'"),
        ("rescue:2x4,grid=big", "grid must be a whole number or 2 whole numbers such as 2x3, got 'big'"),
        ("rescue:2x4,grid=0", "at least 1 row and 1 column, got 0x0"),
        ("rescue:2x4,placement=indepedent", "no placement 'indepedent'; did you mean 'independent'?"),
        ("rescue:2x4,random_moves=maybe", "random_moves must be true or false, got 'maybe'"),
        ("rescue:2x4,max_steps=0", "max_steps must be at least 1, got 0"),
        ("rescue:2x4,max_steps=-3", "max_steps must be at least 1, got -3"),
        ("batle:w15v17", "no environment or module 'batle'; did you mean 'battle'?"),
        ("no.such:Environment", "no module 'no.such' can be imported from here"),
        ("lamps", "no environment 'lamps'; there is battle, fleet, log, package.module:Class for your own"),
        ("lamps.py:Lamps", "no module 'lamps.py' can be imported from here; a class in lamps.py is lamps:Lamps"),
        ("examples.delivery:Deliver", "no class 'Deliver' in examples.delivery; did you mean 'Delivery'?"),
        ("tests.envs.custom_envs:Orders,n_agent=4", "Orders 'n_agent'; did you mean 'n_agents'?"),
        ("tests.envs.custom_envs:Orders,n_agents=many", "n_agents must be a whole number, got 'many'"),
        ("tests.envs.custom_envs:Orders,n_agents=2.5", "n_agents must be a whole number, got '2.5'"),
        ("tests.envs.custom_envs:Orders,kind=c", "no kind 'c'; there is a, b"),
        ("tests.envs.custom_envs:Orders,rate", "option of tests.envs.custom_envs:Orders reads name=value, got 'rate'"),
        ("tests.envs.custom_envs:Orders,rate=-1", "Orders cannot be made: ValueError: rate must not be negative"),
        ("tests.envs.custom_envs:Ordres", "no class 'Ordres' in tests.envs.custom_envs; did you mean 'Orders'?"),
        (
            "tests.envs.test_registry:Needy",
            "Needy needs n_agents, rate; write tests.envs.test",
        ),
        (
            "examples.delivery:Delivery,n_agents=5",
            "no option 'n_agents=5': the constructor of examples",
        ),
        (
            "examples.delivery:nearest",
            "is not a subclass of muster.Env or muster.BatchEnv; examples.delivery has Delivery",
        ),
        ("examples.delivery:Delivery speed=2", "options follow commas, as in examples.delivery:NAME,option=value"),
    ],
)
def test_a_bad_environment_string_gets_one_clear_sentence(env, complaint):
    with pytest.raises(MusterError) as caught:
        muster.make(env)
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("env", "complaint"),
    [
        ("lamps", "no environment 'lamps'; in lamps.py there is lamps:Lamps"),
        ("./lamps.py:Lamps", "in lamps.py there is lamps:Lamps"),
        ("day/night", "no environment 'day/night'; a class NAME in day/night.py is day.night:NAME"),
        ("day/light", "a class NAME in day/light.py is day.light:NAME"),
        ("day-time:Lamps", "rename day-time.py, such as day_time.py"),
        (
            "../here/lamps",
            "modules are imported from the current folder; go to that of ../here/lamps.py, write lamps:NAME",
        ),
    ],
)
def test_a_file_named_as_an_environment_is_read_for_its_classes_and_not_run(env, complaint, tmp_path, monkeypatch):
    (tmp_path / "here/day").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    texts = {
        "lamps": "1 / 0\nclass Plain: 0\nclass Lamps(Env): 0",
        "day/night": "class",
        "day/light": "",
        "day-time": "",
    }
    for name, text in texts.items():
        Path(f"{name}.py").write_text(text)
    with pytest.raises(InputError, match=re.escape(complaint)):
        muster.make(env)


class Needy(Orders):
    def __init__(self, n_agents: int, rate: float, n_tasks=4, strict=False) -> None:
        super().__init__(n_agents, n_tasks, rate)
        self.strict = strict


def test_options_are_typed_by_the_signature_and_named_canonically():
    env = muster.make("tests.envs.custom_envs:Orders, kind=b ,n_agents=7,n_tasks=5", 2)
    assert (env.n_agents, env.n_tasks) == (7, 5)
    assert (env.singles[0].rate, env.singles[0].kind) == (0.5, "b")
    assert env.name == "tests.envs.custom_envs:Orders,n_agents=7,kind=b"
    assert muster.make(env.name).name == env.name


def test_defaults_tell_the_type_where_nothing_is_annotated():
    env = muster.make("tests.envs.test_registry:Needy,n_agents=2,rate=1,n_tasks=6,strict=true")
    single = env.singles[0]
    assert (env.n_tasks, single.strict, type(single.rate)) == (6, True, float)
    with pytest.raises(InputError, match="n_tasks must be a whole number, got 'few'"):
        muster.make("tests.envs.test_registry:Needy,n_agents=2,rate=1,n_tasks=few")


def test_a_class_and_keywords_do_as_well_as_a_string():
    text = muster.make("tests.envs.custom_envs:Orders,n_agents=6", 3, seed=4)
    mixed = muster.make("tests.envs.custom_envs:Orders", num_envs=3, seed=4, n_agents=6)
    given = muster.make(Orders, 3, 4, n_agents=6)
    assert text.name == mixed.name == given.name
    assert np.array_equal(text.observe().agent_features, given.observe().agent_features)
    assert muster.make("rescue:2x4", grid=32).name == muster.make("rescue:2x4,grid=32").name
    assert muster.make(batched(Orders), 2, rate=0.25).name == "tests.envs.custom_envs:Orders,rate=0.25"


@pytest.mark.parametrize(
    ("env", "options", "complaint"),
    [
        (Orders, {"n_agent": 4}, "no option 'n_agent' of .*Orders; did you mean 'n_agents'"),
        (Orders, {"n_agents": "4"}, "n_agents in .*Orders must be a whole number, got '4'"),
        (Needy, {}, "needs n_agents, rate"),
        (Env, {}, "cannot be made: TypeError: Can't instantiate abstract class"),
        (int, {}, "is not a subclass of muster.Env"),
        (
            Orders(),
            {},
            "is a string such as 'rescue:2x4', or a class; got .* give the class, Orders, and its",
        ),
        (None, {}, "an environment is a string such as 'rescue:2x4', or a class; got None$"),
        ("tests.envs.custom_envs:Orders,rate=1", {"rate": 2.0}, "rate is given in .* and as a keyword"),
    ],
)
def test_bad_classes_and_keywords_get_one_clear_sentence(env, options, complaint):
    with pytest.raises(InputError, match=complaint):
        muster.make(env, **options)


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("import nothing_of_this_name", "broken_own needs the module 'nothing_of_this_name', which is not installed"),
        ("class Environment(", "broken_own cannot be imported: SyntaxError"),
        ("1 / 0", "broken_own cannot be imported: ZeroDivisionError: division by zero .*broken_own.py, line 1"),
    ],
)
def test_a_module_that_cannot_be_imported_is_explained(source, complaint, tmp_path, monkeypatch):
    (tmp_path / "broken_own.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InputError, match=complaint):
        muster.make("broken_own:Environment")


def test_gymnasium_and_pettingzoo_take_own_environments_with_options():
    name = "tests.envs.custom_envs:Orders"
    env = gymnasium.make("muster/Assignment-v0", env=f"{name},n_agents=4", rate=1.0, disable_env_checker=True)
    assert env.unwrapped.batch_env.name == f"{name},n_agents=4,rate=1.0"
    vector = gymnasium.make_vec("muster/Assignment-v0", 3, env=Orders, n_tasks=6)
    assert vector.reset(seed=0)[0]["allowed"].shape == (3, 3, 6)
    parallel = parallel_env(Orders, n_agents=5)
    seen, _ = parallel.reset(seed=0)
    forbidden = ~parallel.batch_env.observe().allowed[0]
    assert all((seen[f"agent_{i}"]["action_mask"][1:] == ~forbidden[i]).all() for i in range(5))


def test_an_empty_batch_is_refused():
    with pytest.raises(InputError, match="at least 1 environment, got 0"):
        muster.make("rescue:2x4", 0)
