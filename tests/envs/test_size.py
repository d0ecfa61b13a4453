"""Environments that would not fit into memory are refused before anything is made."""

from __future__ import annotations

import os

import pytest

import muster
from muster.cli.main import main
from muster.envs.size import resized, size_of
from tests.envs.custom_envs import Orders


@pytest.mark.parametrize("env", ["rescue:2x4,grid=40_000", "rescue:2x4,grid=40000", "pursuit:4x2,grid=40000"])
def test_what_does_not_fit_is_refused_by_its_settings(env, capsys):
    with pytest.raises(muster.InputError, match="would take about"):
        muster.make(env, 64)
    with pytest.raises(SystemExit, match="2"):
        main(["evaluate", "closest", env, "--episodes", "1000000"])
    assert "would take about" in capsys.readouterr().err


@pytest.mark.parametrize("size", ["n_agents=1000000,n_tasks=1000000", "n_agents=10_000_000_000_000_000,n_tasks=1"])
def test_a_custom_environment_that_does_not_fit_is_refused_before_its_reset(size, monkeypatch):
    monkeypatch.setattr(Orders, "reset", lambda self, rng: pytest.fail("reset"))
    with pytest.raises(muster.InputError, match=r"1 x Orders of 10+ agents and 1.* tasks would take about .* GB"):
        muster.make(f"tests.envs.custom_envs:Orders,{size}")


def test_sizes_are_those_of_the_environment():
    for env in ("rescue:3x5,grid=20", "pursuit:4x2", "battle:w15v17", "fleet:24,city=small,limit=9"):
        family, _, text = env.partition(":")
        size, made = size_of(family, text), muster.make(env)
        assert (size.agents, size.tasks) == (made.n_agents, made.n_tasks)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_only_regular_files_are_read(tmp_path):
    """A pipe or a device would be waited for, or read without end."""
    pipe = tmp_path / "pipe.safetensors"
    os.mkfifo(pipe)
    with pytest.raises(muster.MusterError, match="not a regular file"):
        muster.load(pipe)
    for log in (f"log:{pipe}", "log:/dev/zero"):
        with pytest.raises(muster.InputError, match="not a regular file"):
            muster.make(log)
    for command in (["train", "rescue:2x4", "--config", str(pipe)], ["card", str(pipe)], ["card", "/dev/zero"]):
        with pytest.raises(SystemExit, match="2"):
            main(command)


def test_describing_a_policy_imports_nothing(tmp_path, monkeypatch, capsys):
    (tmp_path / "planted.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(str(tmp_path))
    policy = muster.load("rescue-2x4-quad-dm")
    header = {name: value for name, value in policy.header.items() if name not in ("features", "env")}
    file = tmp_path / "odd.safetensors"
    policy.variant(header=header | {"env": "planted:Env"}).save(file)
    main(["card", str(file)])
    assert "planted:Env" in capsys.readouterr().out


def test_sizes_are_put_into_the_names_of_environments():
    assert resized("rescue:2x4,grid=32", 3, 5) == "rescue:3x5,grid=32"
    assert resized("battle:zh10v10", 4, 6) == "battle:zh2v3"
    assert resized("fleet:24,city=small,limit=9", 3, 5) == "fleet:3,city=small,limit=5"
    assert resized("a.b:C,n_tasks=2,speed=1", 3, 5) == "a.b:C,speed=1,n_agents=3,n_tasks=5"
