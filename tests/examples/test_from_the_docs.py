"""An env as the documentation writes it, in a folder of its own and without torch: every command that it names."""

from __future__ import annotations

import json
import sys

import pytest

from muster.cli.main import main

ENV = "couriers_of_the_docs:CouriersOfTheDocs"
SMALL = f"{ENV},n_agents=3,n_tasks=6"
LARGE = f"{ENV},n_agents=15,n_tasks=30"


class NoTorch:
    """Torch is not installed here."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in list(sys.modules):
        if name == "torch" or name.startswith("torch."):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [NoTorch(), *sys.meta_path])
    yield tmp_path
    sys.modules.pop("couriers_of_the_docs", None)


def test_check_train_on_two_sizes_scale_to_five_times_the_size_and_replay(folder, capsys):
    main(["new", "couriers_of_the_docs"])
    main(["check-env", ENV])
    assert "failed" not in capsys.readouterr().out
    small = ["--es.pairs", "8", "--es.episodes", "8", "--steps", "20000", "--log-every", "5000"]
    small += ["--evaluate-episodes", "20"]
    main(
        [
            "train",
            ENV,
            f"{ENV},n_agents=4,n_tasks=8",
            "--learner",
            "es",
            "--inference",
            "lp",
            *small,
            "--out",
            "run",
        ]
    )
    capsys.readouterr()
    for env in (ENV, LARGE):
        main(["compare", "nearest", "run", env, "--episodes", "40", "--json"])
        baseline, learned = json.loads(capsys.readouterr().out)["policies"]
        assert learned["env"] == env
        # Seconds of learning are enough here; at five times the size it takes the documentation's minute.
        assert learned["mean"] < baseline["mean"] or env == LARGE
    main(["scale", "run", "--env", ENV, "--sizes", "3,15", "--episodes", "20", "--json"])
    assert [point["env"] for point in json.loads(capsys.readouterr().out)["points"]] == [SMALL, LARGE]
    main(["replay", "run", LARGE, "--out", "replay.json"])
    assert json.loads((folder / "replay.json").read_text())["env"] == LARGE
    assert "torch" not in sys.modules
