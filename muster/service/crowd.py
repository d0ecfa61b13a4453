"""All connections of a server, and who makes room when there are too many.

A connection is idle while no request of it is being answered. When there are too many, the one that has been idle
longest makes room, so that a crowd of clients that say nothing keeps nobody out.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from muster.data import Ints


class Crowd:
    """All connections of a server."""

    def __init__(self, most: int, seconds: float) -> None:
        self.most = most
        self.seconds = seconds
        """For which a client may be in the middle of its headers, or leave an answer unread."""
        self.open = 0
        self.closed: Ints = np.zeros(1, np.int64)
        """[1] how many there were and are no more; where a service has several processes, on their board."""
        self.idle: dict[Any, None] = {}
        """Those without a request, longest first."""
        self.closed_idle = 0
        """How many had to make room."""
