"""Server processes for tests, on 127.0.0.1."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

_START_SECONDS = 180


def free_port() -> int:
    """Return a free port."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        port: int = reserved.getsockname()[1]
        return port


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
        process.wait()
