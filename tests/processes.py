"""Server processes for tests, on 127.0.0.1."""

from __future__ import annotations

import os
import random
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

_START_SECONDS = 180
_STOP_SECONDS = 30
_PORTS = range(11_000, 32_768)
"""Ports that browsers allow, and that Linux does not choose itself; it chooses from 32,768 on."""

_reservations: list[socket.socket] = []


def free_port() -> int:
    """Return a port that nobody listens at, and that stays free until a server listens there, which takes seconds.

    The system gives such a port to no connection. A name in the abstract namespace of Unix sockets marks it as taken,
    for the calls of this and of other processes, until this process ends.
    """
    for port in random.SystemRandom().sample(_PORTS, len(_PORTS)):
        reservation = socket.socket(socket.AF_UNIX)
        try:
            reservation.bind(f"\0lance-ops-test-port-{port}")
            with socket.socket() as tried:
                tried.bind(("127.0.0.1", port))
        except OSError:
            reservation.close()
        else:
            _reservations.append(reservation)
            return port
    raise AssertionError("every port is taken")


@contextmanager
def running(command: Sequence[str], port: int | None, settings: Mapping[str, str] | None = None) -> Iterator[None]:
    """Run a server process for the block, which starts once the server accepts connections (if it has a port).

    `settings` are added to its environment.
    """
    environment = {**os.environ, **(settings or {})}
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    try:
        deadline = time.monotonic() + _START_SECONDS
        while port is not None:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                if process.poll() is not None or time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
        yield
    finally:
        process.terminate()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:  # it ignores the signal, as its parent did when it started
            process.kill()
            process.wait()
