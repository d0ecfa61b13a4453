"""The commands of "Solve your own data" do what the page says, on the files that it shows."""

from __future__ import annotations

import csv
import json
import shlex
from pathlib import Path

from muster.cli.main import main
from tests.test_docs import BLOCK, ROOT, shell_lines


def test_the_commands_of_the_page_run(tmp_path: Path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs/how-to/own-data.md").read_text(encoding="utf-8")
    for _, file, content in BLOCK.findall(text):
        if file:
            (tmp_path / file).write_text(content, encoding="utf-8")
    printed = []
    for line in shell_lines(text):
        main(shlex.split(line)[1:])
        printed.append(capsys.readouterr().out)
    solved, explained, kept, checked = printed
    assert "lp: optimal, objective 4.5" in solved
    with (tmp_path / "plan.csv").open(encoding="utf-8") as plan:
        assert [row["task"] for row in csv.DictReader(plan)] == ["south", "north", ""]
    # The sentences are those that the page shows.
    assert all(line.strip() in text for line in explained.splitlines() if line.startswith(("van", "no agent")))
    assert json.loads(kept)["changes"] == 0
    assert checked.endswith("nothing exceeds it\n")
