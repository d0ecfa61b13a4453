"""The server: kernels first, then the port; and an end that finishes what runs."""

from __future__ import annotations

import uvicorn

from muster.service.app import make_app
from muster.service.door import plain_log
from muster.service.settings import ServeSettings


def serve(settings: ServeSettings, policies: tuple[str, ...]) -> None:
    """Listen until told to stop."""
    app = make_app(settings, policies)
    plain_log()
    uvicorn.run(app, host=settings.host, port=settings.port, access_log=False, log_level="warning")
