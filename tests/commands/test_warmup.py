from __future__ import annotations

from typing import get_args

from muster.cli import main
from muster.commands import warmup
from muster.envs.registry import EXAMPLES, make
from muster.inference import assign
from muster.inference.settings import Method


def test_every_procedure_world_rule_and_learner_is_warmed_up():
    names = [name for name, _ in warmup.parts()]
    assert len(set(names)) == len(names)
    for method in get_args(Method):
        assert f"inference, {method}" in names
    for env in EXAMPLES:
        assert {f"{env}, {rule}" for rule in make(env).baselines()} < set(names)
    assert {"learning, es", "learning, imitate", "service, JSON", "fleet, recorded days", *warmup.VARIANTS} < set(names)


def test_what_is_warmed_up_for_lp_has_to_be_rounded_and_proven():
    found = assign(**warmup.ROUNDED, method="lp", effort="paper")
    assert found.status == "rounded"
    assert assign(**warmup.ROUNDED, method="lp", effort="exact").status == "optimal"


def test_each_part_is_named_and_timed_and_the_folder_is_told(capsys, monkeypatch):
    done = []
    monkeypatch.setattr(warmup, "parts", lambda: [("one", lambda: done.append(1)), ("two", lambda: done.append(2))])
    main(["warmup"])
    said = capsys.readouterr().out
    assert done == [1, 2]
    for words in ("one … 0.0 s", "two … 0.0 s", "all ready after", "kept in"):
        assert words in said


def test_a_replay_and_a_learner_of_the_smallest_world_can_be_used():
    uses = dict(warmup.parts())
    uses[f"{EXAMPLES[0]}, replay"]()
    uses["learning, es"]()
    uses["fleet, recorded days"]()
