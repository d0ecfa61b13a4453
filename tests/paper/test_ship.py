"""Cards of shipped policies are those that the records and files give."""

from __future__ import annotations

import json

import pytest

from muster.policy.names import SHIPPED, shipped
from paper.ship import card_of
from paper.tables.rescue import Rescue
from paper.train import RUNS_OF


@pytest.mark.parametrize("name", shipped())
def test_the_card_beside_the_weights_is_that_of_the_records(name):
    assert json.loads(json.dumps(card_of(name))) == json.loads((SHIPPED / f"{name}.json").read_text(encoding="utf-8"))


def test_the_command_of_a_shipped_policy_names_a_run_that_there_is():
    for name in shipped():
        card = json.loads((SHIPPED / f"{name}.json").read_text(encoding="utf-8"))
        *start, table, only, run = card["command"].split()
        if only == "--only":
            assert start == ["python", "-m", "paper", "train"]
            assert run in RUNS_OF[table]()


def test_results_are_those_of_the_record():
    cells = Rescue().load().where(policy="rescue-2x4-quad-dm-a2c-s0", noise=False)
    results = card_of("rescue-2x4-quad-dm")["results"]
    assert {result["env"]: result["mean"] for result in results} == {f"rescue:{cell.test}": cell.mean for cell in cells}
    assert all(result["best_baseline"] == "lp-distance" for result in results)
