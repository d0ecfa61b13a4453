"""The sealed set of episodes: for final evaluations, out of reach for training, validation and search."""

from __future__ import annotations

import json

import numpy as np
import pytest

import muster
from muster.cli.main import main
from muster.errors import InputError
from muster.learning.learner import REPORT, TRAINING, VALIDATION, training_seeds
from muster.learning.settings import LARGEST_SEED, TrainSettings
from muster.rng import SEALED_SET, episode_seeds


def test_the_sealed_set_is_a_set_of_its_own_and_always_the_same():
    found = muster.evaluate("closest", "rescue:2x4", 20, seed="sealed")
    assert found.records.seeds[0] == 3908020788542980755
    assert found.seed == "sealed"
    assert "20 episodes of seed sealed" in repr(found)
    assert not np.intersect1d(found.records.seeds, episode_seeds(0, np.arange(1000))).size


def test_the_command_line_names_it(capsys):
    main(("compare", "topline", "closest", "rescue:2x4", "--seed", "sealed", "--episodes", "5", "--json"))
    found = json.loads(capsys.readouterr().out)
    assert [one["seed"] for one in found["policies"]] == ["sealed", "sealed"]


def test_no_run_and_no_search_can_draw_from_it():
    assert max(TRAINING, VALIDATION, REPORT) + LARGEST_SEED < SEALED_SET
    reached = training_seeds(LARGEST_SEED, 0, np.arange(10))
    assert not np.intersect1d(reached, episode_seeds("sealed", np.arange(10))).size
    for seed in (SEALED_SET, SEALED_SET - TRAINING, LARGEST_SEED + 1):
        with pytest.raises(InputError, match="seed must be between"):
            TrainSettings("rescue:2x4", seed=seed)


@pytest.mark.parametrize("command", ["train", "search"])
def test_training_and_search_refuse_its_name(command, capsys):
    with pytest.raises(SystemExit) as left:
        main((command, "rescue:2x4", "--seed", "sealed"))
    assert left.value.code == 2
    assert "sealed" in capsys.readouterr().err


def test_no_log_to_learn_from_is_written_of_it(tmp_path):
    with pytest.raises(InputError, match="must not see the sealed episodes"):
        muster.evaluate("closest", "rescue:2x4", 2, seed="sealed", log=tmp_path / "log.jsonl")
    with pytest.raises(InputError, match="or 'sealed'"):
        muster.evaluate("closest", "rescue:2x4", 2, seed="seeled")
