"""The application: addresses, limits and the page, put together."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Mount
from starlette.staticfiles import StaticFiles

from muster import __version__
from muster.errors import InputError
from muster.service.addresses import ADDRESSES, add_to, ways_of
from muster.service.crowd import Crowd
from muster.service.door import Door
from muster.service.gate import LOCAL, OPEN, Gate
from muster.service.pool import Pool
from muster.service.refusals import Refusal
from muster.service.served import serve_policies
from muster.service.settings import ServeSettings
from muster.service.shortcut import Shortcut
from muster.service.state import State

PAGE = Path(__file__).parent / "page"
ABOUT = """Assign agents to tasks: by the solver (`/solve`, `/check`) or by a trained policy (`/act`).

Every error is one object: `code`, `error` (a sentence) and `where` (the entry). Answers carry `X-Request-ID`.
"""


def make_app(settings: ServeSettings | None = None, policies: Sequence[str] = ()) -> FastAPI:
    """The service as an ASGI application; `app.state` has its State (`service`), its `gate` and its `shortcut`."""
    settings = settings or ServeSettings()
    crowd = Crowd(settings.connections, settings.read_limit)
    state = State(settings, serve_policies(policies), Pool(settings.threads, settings.queue), crowd, ready=True)
    state.metrics.watch(state)
    app = FastAPI(title="muster", version=__version__, description=ABOUT, docs_url=None, redoc_url=None)
    app.state.service = state
    direct = add_to(app, state)
    if find_spec("muster.service.watch"):
        app.include_router(import_module("muster.service.watch").router(state))
    app.router.routes.append(Page({*(path for _, path in ADDRESSES), "/openapi.json"}))
    app.add_exception_handler(Refusal, _refused)
    app.add_exception_handler(HTTPException, _not_there)
    if settings.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(settings.origins),
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type", "X-Request-ID"],
            expose_headers=["X-Request-ID", "Retry-After"],
        )
        # What CORS is about lies in answers to pages from elsewhere: nothing is answered past it.
        direct = {}
    token, hosts = read_token(settings.token_file).encode(), LOCAL if settings.host in LOCAL else ()
    gate = Gate(state.metrics, is_guarded, token, hosts)
    app.state.gate = gate
    app.state.shortcut = Shortcut(state, gate, ways_of(state) if direct else {})
    app.add_middleware(Door, state=state, gate=gate, direct=direct)
    return app


def is_guarded(path: str) -> bool:
    """Whether a path needs the token: all do but the page's own files, and what tells that the service is alive."""
    return path not in OPEN and path not in PAGE_FILES and not path.startswith("/viewer/")


PAGE_FILES = frozenset({"/", *(f"/{file.relative_to(PAGE).as_posix()}" for file in PAGE.rglob("*") if file.is_file())})


class Page(Mount):
    """The page's files, at / and wherever there is no address."""

    def __init__(self, taken: set[str]) -> None:
        super().__init__("/", StaticFiles(directory=PAGE, html=True), name="page")
        self._taken = taken

    def matches(self, scope: Any) -> tuple[Match, Any]:
        """Leave addresses alone, so that a wrong method there is called so."""
        return (Match.NONE, {}) if scope.get("path") in self._taken else super().matches(scope)


async def _refused(request: Request, refusal: Any) -> Response:
    del request
    response: Response = refusal.response()
    return response


def instead(error: Any) -> str:
    """The methods that an address does know."""
    allowed = (error.headers or {}).get("Allow", "")
    return f"; try {allowed}" if allowed else ""


async def _not_there(request: Request, error: Any) -> Response:
    if error.status_code == 405:
        return Refusal(
            "method", f"{request.method[:16]} is not known here{instead(error)}", "", error.headers
        ).response()
    return Refusal("not_found", "there is nothing at this address").response()


def read_token(file: Path | None) -> str:
    """The secret in a file; none without a file."""
    if file is None:
        return ""
    try:
        token = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read the token file {file}: {getattr(error, 'strerror', None) or error}") from None
    if not token:
        raise InputError(f"the token file {file} is empty")
    return token
