"""Settings of the service. Nothing heavy: the command line reads it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from muster.errors import InputError
from muster.settings import AtLeast, Between, Positive, check_fields

SHARED = "PROMETHEUS_MULTIPROC_DIR"
"""Names the folder where the processes of one service write what they count."""
LOCAL = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """Where the service listens, whom it lets in, how much it takes on, and what it keeps. Checked when made."""

    host: str = "127.0.0.1"
    """Address to listen on; only this machine reaches the default."""
    port: Annotated[int, Between(0, 65535)] = 8000
    """Port to listen on; 0 takes a free one and says which."""
    token_file: Path | None = None
    """File with a secret; requests must then carry the header `Authorization: Bearer SECRET`."""
    insecure: bool = False
    """Listen beyond this machine without a token."""
    origins: tuple[str, ...] = ()
    """Web pages from elsewhere that may call the service (CORS), such as https://example.org; none by default."""
    processes: Annotated[int, AtLeast(1)] = 1
    """Processes behind the port. One interpreter works on one small request at a time; threads, queue and connections
    are shared out among several."""
    threads: Annotated[int | None, AtLeast(1)] = None
    """Requests worked on at once; none: one a core."""
    queue: Annotated[int, AtLeast(0)] = 128
    """Requests that may wait for a thread; those beyond are told to come back (429)."""
    body_limit: Annotated[int, AtLeast(1)] = 8_388_608
    """Bytes of a request's body at most."""
    size_limit: Annotated[int, AtLeast(1)] = 250_000
    """Agents x tasks of a request at most, over all its situations."""
    time_limit: Annotated[float, Positive()] = 10.0
    """Seconds from a request's last byte to its answer at most, waiting included."""
    read_limit: Annotated[float, Positive()] = 10.0
    """Seconds that a client may take to send its headers, and as many for its body."""
    connections: Annotated[int, AtLeast(1)] = 4000
    """Connections at most; beyond, those that have been idle longest are closed."""
    runs: Path = Path("runs")
    """Folder whose runs the page shows while they learn, and runs episodes of."""
    envs: tuple[str, ...] = ()
    """Custom environments, as package.module:Class, that the page may run, and models and inference of served policies;
    others are not imported."""
    decision_log: Path | None = None
    """Folder for a JSON line a decision of /act; none: nothing is kept."""
    shadow: str | None = None
    """Policy that decides the same requests beside the answer; how often it agrees is in the metrics and the log."""
    fallback: str | None = None
    """Baseline that answers where a policy fails, is out of time or far from what training saw; or `prior`."""
    jobs: Annotated[int, AtLeast(0)] = 16
    """Long solves (POST /jobs) that may wait; one is worked on at a time."""
    job_limit: Annotated[float, Positive()] = 3600.0
    """Seconds of a long solve at most."""
    log_format: Literal["text", "json"] = "text"
    """Lines of the log on standard error."""
    grace: Annotated[float, AtLeast(0.0)] = 0.5
    """Seconds for which requests are still taken after the signal to stop, while readiness already says no."""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.host not in LOCAL and self.token_file is None and not self.insecure:
            raise InputError(
                f"host {self.host} can be reached from other machines: give --token-file, or --insecure to go without"
            )
        for name in ("threads", "connections"):
            most = getattr(self, name)
            if most is not None and most < self.processes:
                raise InputError(f"{name} must be at least processes ({self.processes}), each has its own; got {most}")
        if self.processes > 1 and not hasattr(os, "fork"):
            raise InputError("processes must be 1 on this system: it cannot copy a process")
