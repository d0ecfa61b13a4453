from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import muster
from muster.errors import InputError, UnknownNameError
from muster.evaluation.compare import differences
from muster.policy.names import resolve


def test_the_figures_are_those_of_the_episodes():
    found = muster.evaluate("closest", "rescue:2x4", episodes=400, seed=3)
    steps = found.records.outcome
    assert found.mean == steps.mean()
    assert found.steps_minus_one == steps.mean() - 1
    assert found.ci95[0] < found.mean < found.ci95[1]
    assert found.failed == 0
    assert found.decisions_per_second > 0
    assert found.ms_per_decision > 0


def test_failed_episodes_count_at_the_limit():
    """A policy that gives up on the hard ones gains nothing by it."""
    whole = muster.evaluate("closest", "rescue:2x4", episodes=400).records.outcome
    found = muster.evaluate("closest", "rescue:2x4,max_steps=14", episodes=400)
    assert found.failed == (whole > 14).sum()
    assert found.mean == pytest.approx(np.minimum(whole, 14).mean())
    assert found.finished_mean.mean == pytest.approx(whole[whole <= 14].mean())
    assert f"{found.failed} ({found.failed / 4:.1f} %)" in repr(found)


def test_when_every_episode_fails_the_mean_is_the_limit():
    found = muster.evaluate("closest", "rescue:2x4,max_steps=1", episodes=20)
    assert found.failed == 20
    assert (found.mean, found.ci95, found.steps_minus_one) == (1.0, (1.0, 1.0), 0.0)
    assert found.finished_mean is None


def test_the_batch_changes_no_figure():
    one, other = (muster.evaluate("closest", "rescue:3x6", 100, batch=batch) for batch in (7, 100))
    ignored = ("decisions_per_second", "ms_per_decision")
    same = {name: value for name, value in one.as_dict().items() if name not in ignored}
    assert same.items() <= other.as_dict().items()


def test_an_environment_object_and_a_policy_object_do_as_well_as_names():
    env = muster.make("rescue:2x4", 10)
    found = muster.evaluate(resolve("closest", env), env, 50)
    assert found.policy == "closest"
    assert found.mean == muster.evaluate("closest", "rescue:2x4", 50).mean


def test_few_and_slow_are_written_as_such():
    found = replace(muster.evaluate("closest", "rescue:2x4", 1), decisions_per_second=0.043)
    assert "closest on rescue:2x4: 1 episode of seed 0\n" in repr(found)
    assert "0.043 decisions a second" in repr(found)


def test_a_path_does_as_well_as_a_name():
    file = Path(muster.__file__).parent / "policy" / "shipped" / "rescue-2x4-lp-dm.safetensors"
    by_name, by_path = (muster.evaluate(one, "rescue:2x4", 10) for one in ("rescue-2x4-lp-dm", file))
    assert by_path.mean == by_name.mean
    assert muster.compare(["closest", file], "rescue:2x4", 10).evaluations[1].policy == str(file)


def test_differences_are_paired():
    best, baseline = (muster.evaluate(policy, "rescue:3x6", 200) for policy in ("topline", "closest"))
    (gap,) = differences([best, baseline])
    assert gap.mean == pytest.approx(baseline.mean - best.mean)
    assert gap.lower == 0, "nothing beats the optimum on any episode"
    assert gap.higher + gap.equal == gap.episodes == 200
    assert gap.ci95[0] > 0
    paired_width = gap.ci95[1] - gap.ci95[0]
    assert paired_width < (baseline.ci95[1] - baseline.ci95[0]) + (best.ci95[1] - best.ci95[0])


def test_different_episodes_cannot_be_compared():
    with pytest.raises(InputError, match="did not run the same episodes"):
        differences([muster.evaluate("closest", "rescue:2x4", 10, seed=seed) for seed in (0, 1)])


def test_win_rates_count_every_episode(monkeypatch):
    env = muster.make("rescue:2x4,max_steps=14", 50)
    env.metric = "win_rate"
    monkeypatch.setattr(env, "outcome", lambda: (~env.unsolved.any(axis=1)).astype(float))
    found = muster.evaluate("closest", env, 100)
    assert found.mean == pytest.approx(1 - found.failed / 100)
    assert 0 < found.ci95[0] < found.mean < found.ci95[1] < 1
    assert "steps_minus_one" not in found.as_dict()


@pytest.mark.parametrize(
    ("arguments", "error", "complaint"),
    [
        (("clossest", "rescue:2x4"), UnknownNameError, "no policy 'clossest' for rescue:2x4; did you mean 'closest'?"),
        (
            ("rescue:2x4", "closest"),
            InputError,
            "the policy comes first and then the environment, got 'rescue:2x4'",
        ),
        (("closest", "rescue:2x4", 0), InputError, "at least 1 episode, or 'all', got 0"),
        (("closest", "rescue:2x4", "some"), InputError, "at least 1 episode, or 'all', got 'some'"),
        (("closest", "rescue:2x4", "all"), InputError, "rescue:2x4 has episodes without end; say how many"),
        (
            ("closest", "rescue:2x4", 10, 0, True),
            InputError,
            "noise is for learned policies; 'closest' is",
        ),
        (("topline", "rescue:2x40"), InputError, "up to 16 victims, got 40"),
        ((lambda view: [0, 1], "rescue:2x4", 1), InputError, "a policy is a name, a path or an object with a name"),
        ((None, "rescue:2x4", 1), InputError, "got None; a function of your own"),
        (("closest", "rescue:2x4", 1, "a"), InputError, "from 0 to 2^64 - 1, or 'sealed', got 'a'"),
    ],
)
def test_bad_input_gets_one_clear_sentence(arguments, error, complaint):
    with pytest.raises(error) as caught:
        muster.evaluate(*arguments)
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy", "env", "episodes", "steps", "within"),
    [
        ("topline", "rescue:2x4", 10_000, 11.22, 0.06),
        ("topline", "rescue:5x10", 10_000, 8.24, 0.05),
        ("topline", "rescue:8x15", 1000, 6.82, 0.10),
        ("lp-distance", "rescue:2x4", 10_000, 12.32, 0.15),
        ("lp-distance", "rescue:5x10", 10_000, 10.09, 0.15),
        ("lp-distance", "rescue:8x15", 10_000, 8.42, 0.15),
        ("closest", "rescue:2x4", 10_000, 15.04, 0.15),
        ("closest", "rescue:5x10", 10_000, 14.01, 0.15),
        ("closest", "rescue:8x15", 10_000, 12.21, 0.15),
    ],
)
def test_the_figures_of_the_documentation(policy, env, episodes, steps, within):
    found = muster.evaluate(policy, env, episodes)
    assert found.mean == pytest.approx(steps, abs=within)
    assert found.failed == 0
    assert np.isfinite(found.ci95).all()
