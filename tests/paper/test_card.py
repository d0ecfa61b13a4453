"""Cards say what the records say, and where a policy stops winning."""

from __future__ import annotations

import json

import pytest

from muster.checkout import code_commit
from muster.cli.main import main
from muster.policy.names import load, shipped
from paper.tables import rescue
from paper.tables.card import as_markdown, make_card
from paper.tables.places import CHECKOUT, committed_record, in_checkout


def test_every_shipped_policy_has_a_card_from_records():
    for name in shipped():
        card = make_card(name)
        assert card["policy"] == name
        assert card["trained_on"]
        assert name in as_markdown(card)
        json.dumps(card, allow_nan=False)


def test_the_command_of_a_shipped_policy_names_settings_that_are_kept():
    for name in shipped():
        command = make_card(name)["command"]
        assert command.startswith("muster train ")
        settings = command.removeprefix("muster train --config ")
        if in_checkout() and settings != command:
            assert (CHECKOUT / settings).exists(), command


def test_a_run_s_card_has_the_commit_that_its_policy_was_trained_at(tmp_path):
    policy = load("rescue-2x4-lp-dm")
    for header, said in ({"commit": "0123456789ab, changed"}, "0123456789ab, changed"), ({}, "not recorded"):
        policy.variant(header=policy.header | header).save(tmp_path / "own.safetensors")
        assert make_card(str(tmp_path / "own.safetensors"))["commit"] == said


def test_shipped_policies_from_before_say_which_commit_has_the_file():
    with_file = make_card("rescue-2x4-lp-dm")["commit"]
    assert "not recorded" in with_file
    if in_checkout() and code_commit():
        assert "put the file there" in with_file


def test_figures_are_those_of_the_record():
    record = rescue.Record.load(committed_record("rescue"))
    expected = {
        cell.test: cell for cell in record.cells if cell.policy == "rescue-2x4-quad-dm-played-a2c-s0" and not cell.noise
    }
    figures = make_card("rescue-2x4-quad-dm")["figures"]
    assert {figure["test"]: figure["mean"] for figure in figures} == {
        f"rescue:{test}": cell.mean for test, cell in expected.items()
    }
    assert all(figure["best_rule"] == "lp-distance" for figure in figures)


def test_a_policy_that_loses_is_said_to_lose():
    """AMAX cannot gather: the record of pursuit has it behind the best rule from the smallest size on."""
    card = make_card("pursuit-4x2-amax-dm")
    assert card["stops_winning"].startswith("pursuit:4x2: worse than lp-distance")
    assert any("pursuit:40x20: worse than" in text for text in card["known_failures"])
    assert any("hit the limit" in text for text in card["known_failures"])


def test_only_the_actor_critic_trains_with_noise():
    assert "| noise in training |" in as_markdown(make_card("rescue-2x4-lp-dm"))
    assert "| noise, where asked for |" in as_markdown(make_card("rescue-5x10-lp-dm"))


def test_failures_that_the_docs_tell_of_are_on_the_card():
    assert (
        "rescue:16x32 and larger: worse than the rule lp-distance"
        in make_card("rescue-2x4-quad-dm")["known_failures"][0]
    )
    assert "muster scale plays larger ones" in make_card("rescue-2x4-quad-dm")["stops_winning"]


def test_rules_that_are_not_on_record_are_named():
    assert "routes-distance" in make_card("rescue-2x4-quad-dm")["not_compared"]


def test_a_file_of_ones_own_is_measured_on_request(tmp_path, capsys):
    file = tmp_path / "mine.safetensors"
    load("rescue-2x4-lp-dm").save(file)
    main(["card", str(file), "--envs", "rescue:2x4", "--episodes", "20", "--json"])
    card = json.loads(capsys.readouterr().out)
    (figure,) = card["figures"]
    assert figure["episodes"] == 20
    assert figure["paired"]
    assert "topline" not in figure["rivals"]
    assert card["latency_ms"]["rescue:2x4"] > 0
    main(["card", str(file)])
    assert "None on record" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["nobody"], "no learned policy"),
        (["closest"], "fixed rule"),
        (["rescue-2x4-lp-dm", "--episodes", "5"], "--episodes says how --envs are measured"),
        (["rescue-2x4-lp-dm", "--envs", "rescue:2x4", "--episodes", "0"], "episodes must be at least 1, got 0"),
    ],
)
def test_cards_of_what_is_no_policy(flags, words, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["card", *flags])
    assert words in capsys.readouterr().err
