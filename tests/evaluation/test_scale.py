"""The zero-shot curve."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import muster
from muster.cli.main import main
from muster.cli.scale import draw_curve
from muster.envs.registry import make
from muster.errors import InputError
from muster.evaluation.compare import differences
from muster.evaluation.episodes import Episodes
from muster.evaluation.evaluate import Evaluation
from muster.evaluation.scale import KINDS, Curve, Point, env_of, parse_sizes, plan, run_curve, split_env
from muster.evaluation.statistics import verdict_of
from tests.policy.policy_files import write_random_policy


def evaluated(policy: str, outcome: list[float], metric: str = "win_rate", failed: int = 0) -> Evaluation:
    """An evaluation with these outcomes; the first `failed` episodes hit the limit."""
    n = len(outcome)
    truncated = np.arange(n) < failed
    steps = np.ones(n, np.int64)
    episodes = Episodes(np.arange(n, dtype=np.uint64), np.array(outcome), steps, np.zeros(n), truncated, 1.0, 1.0)
    mean = float(np.mean(outcome))
    return Evaluation(policy, "x", n, 0, False, metric, mean, (mean, mean), failed, 1.0, 1.0, episodes)


def point(size: int, own: list[float], other: list[float], metric: str = "win_rate", failed: int = 0) -> Point:
    one, best = evaluated("p", own, metric, failed), evaluated("b", other, metric)
    return Point(size, "x", one, (best,), best, differences([best, one])[0])


def test_sizes_of_each_form() -> None:
    assert parse_sizes("5..100") == [5, 8, 12, 18, 28, 42, 65, 100]
    assert parse_sizes("5..20:5") == [5, 10, 15, 20]
    assert parse_sizes("20, 5,5") == [5, 20]
    assert parse_sizes("3..3") == [3]
    assert parse_sizes("1..3") == [1, 2, 3]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("5..", "sizes are such as"),
        ("a,b", "sizes are such as"),
        ("", "sizes are such as"),
        ("-3..5", "sizes are such as"),
        ("1.5..3", "sizes are such as"),
        ("9..5", "goes upwards"),
        ("5..9:0", "at least 1"),
        ("0..4", "at least 1"),
        ("0..0", "at least 1"),
        ("0,4", "at least 1"),
        ("1..500:1", "at most 100 sizes"),
    ],
)
def test_bad_sizes_get_one_sentence(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_sizes(text)


def test_environments_keep_the_ratio_of_training() -> None:
    names = {size: env_of(KINDS["battle:w"], "", size) for size in (5, 15, 30, 60, 100)}
    assert list(names.values()) == [f"battle:w{name}" for name in ("5v6", "15v17", "30v34", "60v68", "100v113")]
    assert env_of(*split_env("battle:zh,latency=3"), 11) == "battle:zh11v11,latency=3"
    assert env_of(*split_env("rescue,grid=32"), 9) == "rescue:9x18,grid=32"
    assert env_of(*split_env("rescue:grid=32"), 9, ratio=1.1) == "rescue:9x10,grid=32"
    assert env_of(*split_env("battle:m"), 10, ratio=1.1) == "battle:m10v11"


def test_every_default_baseline_exists() -> None:
    for kind in KINDS.values():
        assert set(kind.baselines) <= set(make(env_of(kind, "", 3)).baselines())


def test_a_policy_wins_where_the_whole_interval_does() -> None:
    assert point(5, [1.0] * 50, [0.0] * 25 + [1.0] * 25).verdict == "wins"
    assert point(5, [1.0] * 50, [1.0] * 50).verdict == "even"
    assert point(5, [0.0] * 25 + [1.0] * 25, [1.0] * 50).verdict == "loses"
    assert point(5, [10.0] * 50, [12.0] * 50, "steps").verdict == "wins"
    assert point(5, [14.0] * 50, [12.0] * 50, "steps").verdict == "loses"


def test_whoever_fails_more_does_not_win_by_the_rest() -> None:
    """Failed episodes count at the limit: 10 of 50 at 100 steps outweigh two steps less in the others."""
    assert point(5, [100.0] * 10 + [10.0] * 40, [12.0] * 50, "steps", failed=10).verdict == "loses"
    assert point(5, [13.0] * 1 + [10.0] * 49, [12.0] * 50, "steps", failed=1).verdict == "wins"


WON = [1.0] * 50, [0.0] * 50
EVEN = [1.0] * 50, [1.0] * 50
LOST = [0.0] * 50, [1.0] * 50


def test_being_even_is_neither_the_last_win_nor_the_first_loss() -> None:
    assert Curve("p", (point(5, *WON), point(9, *WON))).conclusion() == "p wins at every size, 5 to 9"
    curve = Curve("p", (point(5, *EVEN), point(9, *WON), point(12, *EVEN), point(20, *WON), point(40, *LOST)))
    assert (curve.last_win, curve.first_loss) == (20, 40)
    assert curve.conclusion() == (
        "p: wins at 9, 20; even at 5, 12; loses at 40: "
        "the last size at which it wins is 20, the first at which it loses is 40"
    )
    level = Curve("p", (point(5, *EVEN), point(9, *EVEN)))
    assert (level.last_win, level.first_loss) == (None, None)
    assert level.conclusion() == "p: even at 5, 9: it wins at no size, it loses at none"


def test_the_picture_marks_each_verdict_and_where_it_wins_last_and_loses_first() -> None:
    figure = pytest.importorskip("matplotlib.figure").Figure()
    axes = figure.subplots()
    draw_curve(axes, Curve("p", (point(5, *EVEN), point(9, *WON), point(40, *LOST))))
    words = [text.get_text() for text in axes.get_legend().get_texts()]
    assert words[2:] == ["wins", "even", "loses", "last size at which it wins: 9", "first size at which it loses: 40"]
    marked = {line.get_label(): list(line.get_xdata()) for line in axes.get_lines()}
    assert (marked["wins"], marked["even"], marked["loses"]) == ([9], [5], [40])
    assert marked["last size at which it wins: 9"] == [9, 9]


def test_a_group_of_runs_has_one_curve_with_an_interval_over_training_seeds(tmp_path: Path, capsys) -> None:
    runs = [str(write_random_policy(tmp_path / f"p-s{seed}.safetensors", "rescue:2x4", seed=seed)) for seed in range(3)]
    call = ["--env", "rescue", "--sizes", "2,3", "--baseline", "closest", "--episodes", "30", "--json"]
    main(["scale", str(tmp_path / "p-s*"), *call])
    found = json.loads(capsys.readouterr().out)
    assert found["policy"] == str(tmp_path / "p-s*")
    group = muster.compare(["closest", runs], "rescue:2x4", 30)
    first = found["points"][0]
    assert first["policy"]["mean"] == group.groups[1].iqm == np.mean([one["mean"] for one in first["runs"]])
    assert tuple(first["difference"]["ci95"]) == group.group_differences[0].ci95
    assert (
        first["verdict"]
        == {"better": "wins", "even": "even", "worse": "loses"}[verdict_of(group.group_differences[0].ci95, "steps")]
    )
    with pytest.raises(SystemExit):
        main(["scale", str(tmp_path / "q-s*"), *call])
    assert "no run or policy file matches" in capsys.readouterr().err


def test_one_episode_gives_no_interval_and_no_verdict(capsys) -> None:
    call = ["scale", "lp-distance", "--env", "rescue", "--sizes", "2,8", "--baseline", "closest", "--episodes", "1"]
    main(call)
    assert "lp-distance: one episode has no interval, and no verdict" in capsys.readouterr().out
    main([*call, "--json"])
    found = json.loads(capsys.readouterr().out)
    assert {point["verdict"] for point in found["points"]} == {None}
    assert found["points"][0]["policy"]["ci95"] is None
    assert "(one episode: no interval)" in repr(muster.evaluate("closest", "rescue:2x4", 1))


def test_more_return_is_better() -> None:
    assert point(5, [3.0] * 50, [2.0] * 50, "return").verdict == "wins"
    assert point(5, [1.0] * 50, [2.0] * 50, "return", failed=50).verdict == "loses"


def test_a_curve_shows_itself_in_a_terminal_and_a_notebook() -> None:
    curve = Curve("<p>", (point(5, *WON), point(9, *LOST)))
    lines = repr(curve).splitlines()
    assert lines[0] == "<p>: win rate, 50 episodes a size (seed 0)"
    assert lines[1].split("  ")[0] == "size"
    assert len(lines) == 1 + 1 + 2 + 1
    page = curve._repr_html_()
    assert page.count("<tr>") == 3
    assert "&lt;p&gt;" in page


def test_the_same_call_gives_the_same_curve_and_the_best_baseline(tmp_path: Path) -> None:
    policy = str(write_random_policy(tmp_path / "p.safetensors", "battle:m5v5"))
    envs, names = plan(policy, "battle:m", "3,5")
    one, again = (run_curve(policy, envs, names, 6) for _ in range(2))
    assert names == ("c", "wcnoks", "wcnoknc")
    for first, second in zip(one.points, again.points, strict=True):
        assert first.difference == second.difference
        assert first.best.mean == max(other.mean for other in first.baselines)
        np.testing.assert_array_equal(first.policy.records.seeds, first.best.records.seeds)


def test_the_command_prints_draws_and_gives_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "curve.png"
    call = ["scale", "lp-distance", "--env", "rescue,grid=8", "--sizes", "2,4", "--episodes", "60"]
    main([*call, "--baseline", "closest", "--out", str(picture)])
    assert "lp-distance wins at every size, 2 to 4" in capsys.readouterr().out
    assert picture.stat().st_size > 5000
    main([*call, "--baseline", "closest", "closest-manhattan", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert (found["last_win"], found["first_loss"]) == (4, None)
    assert [one["env"] for one in found["points"]] == ["rescue:2x4,grid=8", "rescue:4x8,grid=8"]
    assert len(found["points"][0]["baselines"]) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["closest", "--env", "rescue:2x4"], "write rescue rather than rescue:2x4"),
        (["c", "--env", "battle:w15v17"], "write battle:w rather than"),
        (["c", "--env", "battle:x"], "did you mean 'battle:w'"),
        (["c", "--env", "couriers"], "package.module:Class for your own"),
        (["closest", "--env", "rescue", "--sizes", "5.."], "sizes are such as"),
        (["closest", "--env", "rescue", "--sizes", "100"], "enlarge grid"),
        (["closest", "--env", "rescue", "--sizes", "2", "--baseline", "clost"], "did you mean 'closest'"),
        (["closest", "--env", "rescue", "--sizes", "2", "--ratio", "-1"], "ratio must be positive"),
        (["closest", "--env", "rescue", "--sizes", "2", "--episodes", "0"], "at least 1"),
        (["closest", "--env", "rescue", "--sizes", "2", "--out", "x.nonsense"], "cannot write x.nonsense"),
        (["closest", "--env", "rescue", "--sizes", "2", "--out", "nowhere/x.png"], "no folder 'nowhere'"),
        (["nothing.safetensors", "--env", "rescue", "--sizes", "2"], "no policy file"),
        (["rescue-2x4-quad-dm", "--env", "battle:w", "--sizes", "3"], "cannot run battle:w3v4"),
    ],
)
def test_mistakes_get_one_sentence(arguments, message, capsys, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as left:
        main(["scale", *arguments])
    assert left.value.code == 2
    said = capsys.readouterr().err
    assert message in said
    assert "Traceback" not in said


def test_a_picture_without_matplotlib_names_the_extra(capsys, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(SystemExit):
        main(["scale", "closest", "--env", "rescue", "--sizes", "2", "--out", "x.png"])
    assert "pip install 'matplotlib" in capsys.readouterr().err


def test_a_fleet_of_any_size_keeps_its_requests_in_proportion():
    kind, options = split_env("fleet,city=large")
    assert env_of(kind, options, 50) == "fleet:50,demand=1,city=large"
    assert env_of(kind, options, 50, ratio=1.5) == "fleet:50,demand=1.5,city=large"
    assert make(env_of(kind, options, 50)).n_tasks == 10
    with pytest.raises(InputError, match="write fleet rather than"):
        split_env("fleet:24,city=large")


def test_a_custom_environment_without_baselines_needs_a_policy_to_compare_with(tmp_path: Path) -> None:
    env = "tests.envs.custom_envs:NoBaselines"
    assert split_env(env)[0].baselines == ("prior",)
    env += ",prior=false"
    path = write_random_policy(tmp_path / "p.safetensors", env)
    with pytest.raises(InputError, match=r"has no baselines and no prior: name policies .*--baseline"):
        plan(str(path), env)


def test_custom_environments_come_in_sizes_too():
    kind, options = split_env("examples.warehouse:Warehouse,rate=0.3")
    assert env_of(kind, options, 8) == "examples.warehouse:Warehouse,n_agents=8,n_tasks=24,rate=0.3"
    assert kind.baselines == ("worth", "nearest", "prior")
    with pytest.raises(InputError, match="must take n_agents and n_tasks for it to come in sizes"):
        split_env("examples.delivery:Delivery")
    with pytest.raises(InputError, match="scale chooses n_agents and n_tasks itself"):
        split_env("examples.warehouse:Warehouse,n_agents=3")


def test_an_option_grows_with_the_size():
    """On a grid of so many cells a side, every agent has as many cells at any size."""
    envs, _ = plan("closest", "rescue,grid=8*sqrt(n),max_steps=50", "1,4,9,10")
    assert [env.partition(",")[2] for env in envs.values()] == [f"grid={side},max_steps=50" for side in (8, 16, 24, 26)]
    doubled, _ = plan("closest", "rescue,grid=3*n", "4,6")
    assert [make(env).name for env in doubled.values()] == ["rescue:4x8,grid=12", "rescue:6x12,grid=18"]
    # Only whole numbers are rounded.
    faster, _ = plan("closest", "pursuit,grid=9*sqrt(n),speed=0.2*sqrt(n)", "4,8")
    assert [env.partition(",")[2] for env in faster.values()] == ["grid=18,speed=0.4", "grid=26,speed=0.565685"]
    with pytest.raises(InputError, match="cannot run rescue:4x8,grid=cbrt"):
        plan("closest", "rescue,grid=cbrt(n)", "4")
