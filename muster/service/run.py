"""`muster serve`: kernels first, then the port, then one process behind it or several."""

from __future__ import annotations

import dataclasses
import gc
import socket
import sys
from typing import Any, get_args

from muster.assign import assign
from muster.assign.settings import Method
from muster.errors import InputError
from muster.parallel import thread_count
from muster.service import acting
from muster.service.app import make_app
from muster.service.board import Board
from muster.service.forms import Forms
from muster.service.gate import Lines, plain_log
from muster.service.processes import Doorkeeper
from muster.service.server import Server, Worker
from muster.service.settings import ServeSettings
from muster.service.state import State

SWITCH_INTERVAL = 0.0005
"""Seconds that a thread may hold the interpreter's lock while others want it: the event loop answers meanwhile."""


def serve(settings: ServeSettings, policies: tuple[str, ...]) -> None:
    """Listen until told to stop."""
    app = make_app(share(settings), policies)
    state: State = app.state.service
    with bound(settings.host, settings.port) as listener:
        print("muster: loading what is compiled, before the first request needs it", file=sys.stderr, flush=True)
        warm(state)
        plain_log()
        app.state.gate.say = Lines().say
        # What is there now stays: it need not be looked through for garbage, which takes longer than a small request.
        gc.collect()
        gc.freeze()
        sys.setswitchinterval(SWITCH_INTERVAL)
        host, port = listener.getsockname()[:2]
        several = f"{settings.processes} processes with " if settings.processes > 1 else ""
        said = f"muster: {several}{len(state.policies)} policies at http://{host}:{port}"

        def announce() -> None:
            print(said, file=sys.stderr, flush=True)

        if settings.processes == 1:
            Server(app, announce).run(sockets=[listener])
            return
        board = Board(settings.processes)

        def work(number: int, way: socket.socket) -> None:
            Worker(app, board, number, way).run()

        Doorkeeper(listener, board, settings.grace, work).run(announce)


def share(settings: ServeSettings) -> ServeSettings:
    """The settings of one process: its part of what is shared out among them."""
    each = settings.processes
    return dataclasses.replace(
        settings,
        processes=1,
        threads=max(1, (settings.threads or thread_count()) // each),
        queue=settings.queue // each,
        connections=settings.connections // each,
    )


def bound(host: str, port: int) -> socket.socket:
    """A socket that has its port, and does not listen yet."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    except OSError as error:
        raise InputError(f"cannot listen on {host}: {error.strerror or error}") from None
    try:
        listener.bind(address)
    except OSError as error:
        listener.close()
        raise InputError(f"cannot listen on port {port} of {host}: {error.strerror}; try another --port") from None
    return listener


def warm(state: State) -> None:
    """Use everything once that has kernels: nobody's request waits for a compiler."""
    problem: dict[str, Any] = {
        "scores": [[4.0, 2.0], [3.0, 4.0], [3.0, 1.0]],
        "task_scores": [[0.5, 0.1], [0.1, 0.0]],
        "capacities": [4.0, 2.5],
        "previous": [0, 1, 0],
        "switch_cost": 1.0,
    }
    for method in get_args(Method):
        assign(**problem, method=method)
    # Contributions that differ by agent and by task, without task scores: LP has an entry of its own for them.
    del problem["task_scores"]
    for effort in ("fast", "best"):
        assign(**problem, contributions=[[3.0, 2.0], [2.0, 3.0], [2.0, 1.0]], method="lp", effort=effort)
    Forms(lambda data: None).read(b"{}")
    for served in state.policies.values():
        acting.act(acting.example(served), state.policies, state.settings.size_limit)
        served.described()
