"""The clients of `benchmarks/service.py`: one lean process, so that what is measured is the service.

    python -m benchmarks.service_client PORT --clients 16 --seconds 5 [--pause 0.01] [--rate 300] < REQUEST > TIMES

Sends the bytes of one HTTP request again and again, over one connection a client, and writes the seconds from each
request to the last byte of its answer as JSON. Clients are closed loops: each sends its next request when it has its
answer. With `--rate` requests fall due so many times a second whatever is answered (an open loop), and their time
counts from then, also where they had to wait for a client.
"""

from __future__ import annotations

import argparse
import json
import select
import socket
import sys
import time
from collections import deque


class Client:
    """One connection."""

    def __init__(self, port: int, request: bytes) -> None:
        self.request = request
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.began = 0.0
        self.received = b""

    def ask(self, due: float) -> None:
        """Send the request."""
        self.began = due
        self.received = b""
        self.socket.sendall(self.request)

    def has_answer(self) -> bool:
        """Take what came; whether the answer is there as a whole."""
        self.received += self.socket.recv(65536)
        head = self.received.find(b"\r\n\r\n")
        if head < 0 and self.received:
            return False
        assert self.received.startswith(b"HTTP/1.1 200"), self.received[:500]
        begin = self.received.index(b"content-length: ") + 16
        return len(self.received) >= head + 4 + int(self.received[begin : self.received.index(b"\r", begin)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("port", type=int)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--pause", type=float, default=0.0, help="seconds between an answer and the next request")
    parser.add_argument("--rate", type=float, default=0.0, help="requests a second, whatever is answered")
    arguments = parser.parse_args()
    request = sys.stdin.buffer.read()
    clients = [Client(arguments.port, request) for _ in range(arguments.clients)]
    times = open_loop(clients, arguments) if arguments.rate else closed_loops(clients, arguments)
    json.dump(times, sys.stdout)


def closed_loops(clients: list[Client], arguments: argparse.Namespace) -> list[float]:
    """Each client goes on when it has its answer."""
    waiting = Waiting(clients)
    times: list[float] = []
    now = time.perf_counter()
    end = now + arguments.seconds
    for client in clients:
        client.ask(time.perf_counter())
    left = len(clients)
    while left:
        for client in waiting.answered():
            now = time.perf_counter()
            times.append(now - client.began)
            if now >= end:
                left -= 1
                continue
            if arguments.pause:
                time.sleep(arguments.pause)
            client.ask(time.perf_counter())
    return times


def open_loop(clients: list[Client], arguments: argparse.Namespace) -> list[float]:
    """Requests fall due at a rate; a client that has nothing to do takes the next."""
    waiting = Waiting(clients)
    free = deque(clients)
    times: list[float] = []
    began, sent = time.perf_counter(), 0
    total = int(arguments.rate * arguments.seconds)
    while len(times) < total:
        due = began + sent / arguments.rate
        if sent < total and free and time.perf_counter() >= due:
            free.popleft().ask(due)
            sent += 1
            continue
        patience = max(0.0, due - time.perf_counter()) if sent < total and free else None
        for client in waiting.answered(patience):
            times.append(time.perf_counter() - client.began)
            free.append(client)
    return times


class Waiting:
    """Clients whose answer is on its way."""

    def __init__(self, clients: list[Client]) -> None:
        self._poll = select.epoll()
        self._by_number = {client.socket.fileno(): client for client in clients}
        for number in self._by_number:
            self._poll.register(number, select.EPOLLIN)

    def answered(self, seconds: float | None = None) -> list[Client]:
        """Those that have their answer now, after so many seconds at most."""
        ready = [self._by_number[number] for number, _ in self._poll.poll(seconds)]
        return [client for client in ready if client.has_answer()]


if __name__ == "__main__":
    main()
