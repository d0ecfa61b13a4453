"""A client of the application in process, without a server."""

from __future__ import annotations

from starlette.testclient import TestClient

from muster.service.app import make_app
from muster.service.settings import ServeSettings

LOCAL = "http://localhost"
RESCUE, BATTLE, FLEET = "rescue-2x4-quad-dm", "battle-w15v17-quad-dm", "fleet-24-lp-dm"
FADING, SCALED = "rescue-small-quad-dm", "rescue-5x10-quad-dm"
# A situation of RESCUE with one agent and one task, whole and without its pairs.
EXAMPLE = {"agents": [{"x": 0, "y": 0}], "tasks": {"x": [0], "y": [0], "picked up": [0]}}
PAIRS = {"dx": [[0]], "dy": [[0]], "|dx|": [[0]], "|dy|": [[0]], "king moves": [[0]]}
GOOD = {**EXAMPLE, "pairs": PAIRS, "task_pairs": PAIRS}


def client_of(*policies: str, **settings: object) -> TestClient:
    return TestClient(make_app(ServeSettings(**{"time_limit": 60.0} | settings), policies), base_url=LOCAL)
