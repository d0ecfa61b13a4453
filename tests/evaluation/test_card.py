"""Cards: what is known of a policy, where it stops winning, and what `muster card` prints."""

from __future__ import annotations

import json

import pytest

from muster.cli.main import main
from muster.errors import ModelFileError
from muster.evaluation.card import make_card, read_card, write_card
from muster.evaluation.card_markdown import as_markdown
from muster.policy.learned import features_of
from muster.policy.names import load, shipped


def test_every_shipped_policy_has_the_card_of_its_weights():
    for name in shipped():
        card, policy = read_card(name), load(name)
        assert card["policy"] == name
        assert card["command"] != "not recorded"
        assert card["feature_hash"] == features_of(policy).hash
        assert name in as_markdown(card)


def test_a_policy_that_loses_is_said_to_lose():
    """AMAX cannot gather: the record of pursuit has it behind the best baseline from the smallest size on."""
    card = read_card("pursuit-4x2-amax-dm")
    assert card["stops_winning"].startswith("pursuit:4x2: worse than lp-distance")
    assert any("pursuit:40x20: worse than" in text for text in card["known_failures"])
    assert any("hit the limit" in text for text in card["known_failures"])


def test_what_the_docs_tell_of_is_on_the_card():
    card = read_card("rescue-2x4-quad-dm")
    assert "rescue:16x32 and larger: worse than the baseline lp-distance" in card["known_failures"][0]
    assert "muster scale evaluates larger ones" in card["stops_winning"]
    assert "routes-distance" in card["not_compared"]
    assert "put the file there" in card["commit"]


def test_a_file_without_a_card_has_what_its_header_says(tmp_path, capsys):
    policy, file = load("rescue-2x4-lp-dm"), tmp_path / "own.safetensors"
    for header, said in ({"commit": "0123456789ab, changed"}, "0123456789ab, changed"), ({}, "not recorded"):
        policy.variant(header=policy.header | header).save(file)
        assert read_card(str(file))["commit"] == said
    main(["card", str(file)])
    assert "None yet; `muster card POLICY --envs ENV …` measures some" in capsys.readouterr().out


def test_a_result_of_one_episode_has_no_interval(capsys):
    main(["card", "rescue-2x4-lp-dm", "--envs", "rescue:3x6", "--episodes", "1"])
    (row,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| rescue:3x6 ")]
    assert "nan" not in row
    assert " steps | " in row
    assert "even, paired" in row


def test_a_card_beside_other_weights_is_refused(tmp_path):
    file = tmp_path / "own.safetensors"
    load("rescue-2x4-lp-dm").save(file)
    write_card(file.with_suffix(".json"), make_card("x", load("rescue-2x4-quad-dm")))
    with pytest.raises(ModelFileError, match="not the card of these weights"):
        read_card(str(file))
    write_card(file.with_suffix(".json"), make_card("x", load(file), about="mine"))
    assert read_card(str(file))["about"] == "mine"


def test_a_policy_is_measured_on_request(tmp_path, capsys):
    file = tmp_path / "mine.safetensors"
    load("rescue-2x4-lp-dm").save(file)
    main(["card", str(file), "--envs", "rescue:2x4", "--episodes", "20", "--json"])
    card = json.loads(capsys.readouterr().out)
    (result,) = card["results"]
    assert result["episodes"] == 20
    assert result["paired"]
    assert "topline" not in result["baselines"]
    assert card["latency_ms"]["rescue:2x4"] > 0


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["nobody"], "no learned policy"),
        (["closest"], "is a baseline"),
        (["rescue-2x4-lp-dm", "--episodes", "5"], "--episodes says how --envs are measured"),
        (["rescue-2x4-lp-dm", "--envs", "rescue:2x4", "--episodes", "0"], "episodes must be at least 1, got 0"),
    ],
)
def test_cards_of_what_is_no_policy(flags, words, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["card", *flags])
    assert words in capsys.readouterr().err
