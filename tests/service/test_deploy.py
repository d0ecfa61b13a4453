"""The files in deploy/: the unit's command is one that runs, the dashboard asks for metrics that there are."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

from tests.service.clients import RESCUE, client_of
from tests.service.test_server import Service

DEPLOY = Path(__file__).parents[2] / "deploy"


def test_the_command_of_the_unit_runs(tmp_path):
    unit = (DEPLOY / "muster.service").read_text()
    command = shlex.split(re.search(r"^ExecStart=(.*)$", unit, re.MULTILINE)[1])
    (tmp_path / "token").write_text("s3cret")
    flags = [word.replace("${CREDENTIALS_DIRECTORY}", str(tmp_path)) for word in command[2:]]
    flags[flags.index("--port") + 1] = "0"
    flags[flags.index("--decision-log") + 1] = str(tmp_path / "decisions")
    with Service(*flags) as service:
        assert service.ask("/ready")[0] == 200
        assert service.ask("/policies")[0] == 401
    assert all(json.loads(line)["path"] for line in service.lines if "status" in line)


def test_the_dashboard_asks_for_metrics_that_there_are():
    dashboard = json.loads((DEPLOY / "grafana-dashboard.json").read_text())
    asked = {
        name for panel in dashboard["panels"] for t in panel["targets"] for name in re.findall(r"muster_\w+", t["expr"])
    }
    with client_of(RESCUE) as client:
        text = client.get("/metrics").text
    for name in asked:
        assert re.sub("_(bucket|sum|count|total)$", "", name) in text, name
