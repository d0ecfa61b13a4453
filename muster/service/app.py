"""The application: addresses, limits and the page, put together."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.staticfiles import StaticFiles

from muster import __version__
from muster.errors import InputError, MusterError
from muster.service import acting, solving
from muster.service.door import LOCAL, OPEN, Door
from muster.service.pool import Pool
from muster.service.refusals import Refusal, refusal_of
from muster.service.replies import reply
from muster.service.served import serve_policies
from muster.service.settings import ServeSettings
from muster.service.state import State

PAGE = Path(__file__).parent / "page"


def make_app(settings: ServeSettings | None = None, policies: tuple[str, ...] = ()) -> FastAPI:
    """The service as an ASGI application; `app.state.service` is its State."""
    settings = settings or ServeSettings()
    state = State(settings, serve_policies(policies), Pool(settings.threads, settings.queue), ready=True)
    app = FastAPI(title="muster", version=__version__, docs_url=None, redoc_url=None)
    app.state.service = state
    add_addresses(app, state)
    if find_spec("muster.service.watch"):
        app.include_router(import_module("muster.service.watch").router(state))
    api = {getattr(route, "path", "") for route in app.routes}
    if PAGE.is_dir():
        app.mount("/", StaticFiles(directory=PAGE, html=True), name="page")
    add_errors(app)
    local = settings.host in LOCAL
    app.add_middleware(
        Door,
        guarded=lambda path: path not in OPEN and not is_page(path, api),
        token=read_token(settings.token_file),
        hosts=LOCAL if local else (),
    )
    return app


def is_page(path: str, api: set[str]) -> bool:
    """Whether a path is a file of the page, which holds nothing secret."""
    first = "/" + path.lstrip("/").partition("/")[0]
    return path == "/" or not any(known == first or known.startswith(first + "/") for known in api)


def add_addresses(app: FastAPI, state: State) -> None:
    """Everything but the page and what it asks for."""
    limit = state.settings.size_limit

    @app.get("/health")
    async def health() -> Response:
        """Whether the service is alive."""
        return reply({"status": "alive", "version": __version__})

    @app.get("/ready")
    async def ready() -> Response:
        """Whether requests will be answered: kernels are compiled, and nobody has asked the service to stop."""
        if not state.ready:
            raise Refusal("stopping", "the service is being stopped")
        return reply({"status": "ready"})

    @app.get("/policies")
    async def policies() -> Response:
        """The policies that are served, with their cards."""
        return reply({"policies": [served.card() for served in state.policies.values()]})

    @app.post("/solve")
    async def solve(request: Request) -> Response:
        """Assign agents to tasks."""
        return await state.answer(request, lambda data, deadline: solving.solve(data, deadline, limit))

    @app.post("/act")
    async def act(request: Request) -> Response:
        """Let a policy decide."""
        return await state.answer(request, lambda data, deadline: acting.act(data, state.policies, limit))


def add_errors(app: FastAPI) -> None:
    """Every error in one shape."""

    async def refused(request: Request, refusal: Any) -> Response:
        return refusal.response()

    async def mistaken(request: Request, error: Any) -> Response:
        return refusal_of(error).response()

    async def not_there(request: Request, error: Any) -> Response:
        if error.status_code == 405:
            return Refusal("method", f"{request.method} is not known here", "", error.headers).response()
        return Refusal("not_found", f"nothing is at {request.url.path!r:.80}").response()

    app.add_exception_handler(Refusal, refused)
    app.add_exception_handler(MusterError, mistaken)
    app.add_exception_handler(HTTPException, not_there)


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
