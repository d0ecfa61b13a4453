"""`muster serve`: the solver and policies over HTTP."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import tyro

from muster.errors import MissingExtraError
from muster.service.settings import ServeSettings


@dataclass(frozen=True)
class Serve:
    """Put the solver and trained policies behind an HTTP address, within limits that hold; a page at /."""

    settings: Annotated[ServeSettings, tyro.conf.arg(name="")]
    policies: tyro.conf.Positional[tuple[str, ...]] = ()
    """Shipped policies by name, or paths to runs or model files; none: all shipped ones that need no torch."""

    def run(self) -> None:
        """Serve until interrupted or terminated."""
        try:
            import starlette  # noqa: F401
            import uvicorn  # noqa: F401
        except ImportError:
            raise MissingExtraError("muster serve", "serve") from None
        from muster.service.server import serve

        serve(self.settings, self.policies)
