"""A browser and a service for the tests of the page; without a browser they are skipped, and say so."""

from __future__ import annotations

import os
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent.parent
SHOTS = Path(os.environ.get("MUSTER_SCREENSHOTS", ROOT / "build" / "browser"))
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
CUSTOM = "examples.warehouse:Warehouse"
POLICIES = ("rescue-2x4-quad-dm", "battle-w15v17-quad-dm")


def find_browser() -> str | None:
    """Debian's Chromium, or what MUSTER_BROWSER names."""
    names = (os.environ.get("MUSTER_BROWSER", ""), "chromium", "chromium-browser", "google-chrome")
    return next((found for name in names if name and (found := shutil.which(name))), None)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api", reason="no Playwright; make browser installs it")
    path = find_browser()
    if path is None:
        pytest.skip("no browser is found; make browser installs one")
    with api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield running
        running.close()


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The service's folder of runs."""
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="session")
def service(browser: Any, runs: Path) -> Iterator[str]:
    """The address of a service; after `browser`, so that nothing starts where there is none."""
    import uvicorn

    from muster.service.app import make_app
    from muster.service.settings import ServeSettings

    app = make_app(ServeSettings(runs=runs, threads=1, time_limit=120.0, envs=(CUSTOM,)), POLICIES)
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", ws="none", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
    server.should_exit = True
    thread.join(10)
    listener.close()


LOOKS = [(1440, "light"), (1440, "dark"), (390, "light"), (390, "dark")]


def look_around(page: Any, name: str) -> None:
    """A picture in every look, to be looked at by a person; in none may the page be wider than its window."""
    SHOTS.mkdir(parents=True, exist_ok=True)
    for wide, scheme in LOOKS:
        page.set_viewport_size({"width": wide, "height": 900 if wide > 500 else 844})
        page.emulate_media(color_scheme=scheme)
        # Two pictures later, whatever follows the window's size has done so.
        page.evaluate("() => new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go)))")
        assert page.evaluate("document.documentElement.scrollWidth") <= wide
        page.screenshot(path=SHOTS / f"{name}-{wide}-{scheme}.png", full_page=True)


def serious_findings(page: Any) -> list[str]:
    """What axe-core finds that keeps people from reading or using the page, in light and in dark."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="no axe-core; make setup installs it")
    found = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        for violation in axe.Axe().run(page).response["violations"]:
            if violation["impact"] in ("serious", "critical"):
                nodes = "; ".join(f"{node['html'][:120]} {node['failureSummary']}" for node in violation["nodes"][:3])
                found.append(f"{scheme}: {violation['id']}: {nodes}")
    return found


class Opened:
    """A page and everything that it complained about."""

    def __init__(self, browser: Any) -> None:
        self.context = browser.new_context(viewport={"width": 1440, "height": 900})
        self.page = self.context.new_page()
        self.page.set_default_timeout(60_000)
        self.complaints: list[str] = []
        self.page.on("console", lambda message: self._note(message.type, message.text))
        self.page.on("pageerror", lambda error: self._note("error", str(error)))

    def _note(self, kind: str, text: str) -> None:
        # What the service refuses, or does not answer, the browser reports as well; the page says it in a sentence.
        if kind in ("error", "warning") and "status of 400" not in text and "net::ERR_FAILED" not in text:
            self.complaints.append(text)

    def close(self) -> None:
        self.context.close()


@pytest.fixture
def page(request: pytest.FixtureRequest, browser: Any) -> Iterator[Any]:
    """A fresh page; its pictures are kept, and a complaint in its console is a failure."""
    opened = Opened(browser)
    yield opened.page
    SHOTS.mkdir(parents=True, exist_ok=True)
    name = "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in request.node.name)
    opened.page.screenshot(path=SHOTS / f"{name}.png", full_page=True)
    opened.close()
    assert opened.complaints == []
