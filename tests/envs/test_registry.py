from __future__ import annotations

import numpy as np
import pytest

import muster
from muster.envs.rescue import RescueEnv
from muster.errors import InputError, MusterError


def test_make_begins_the_first_episodes_of_the_seed():
    small, large = muster.make("rescue:2x4", 3, seed=5), muster.make("rescue:2x4", num_envs=9, seed=5)
    assert isinstance(small, RescueEnv)
    assert small.name == "rescue:2x4"
    assert np.array_equal(small.task_cells, large.task_cells[:3])
    assert small.waiting.all()
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
        ("no.such:World", "no module 'no.such' can be imported from here"),
        ("examples.delivery:Deliver", "no class in examples.delivery 'Deliver'; did you mean 'Delivery'?"),
        ("examples.delivery:nearest", "is not a subclass of muster.envs.single.Env"),
    ],
)
def test_a_bad_environment_string_gets_one_clear_sentence(env, complaint):
    with pytest.raises(MusterError) as caught:
        muster.make(env)
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_empty_batch_is_refused():
    with pytest.raises(InputError, match="at least 1 environment, got 0"):
        muster.make("rescue:2x4", 0)
