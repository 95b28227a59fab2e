"""Start the fork server and ask it for processes that decode raw files.

A new interpreter takes 0.3 s until it can decode, a fork of the fork server some milliseconds. The standard library's
fork server would inherit the environment with its secrets, and the limits on this process's children.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from functools import cache

from lance_ops.core import local_times
from lance_ops.maintenance.ingest.decoding import (
    csv_bytes,
    csv_files,
    csv_rows,
    decoder,
    forking,
    json_bytes,
    json_files,
    json_names,
    orc_moments,
    requests,
    text_values,
    unshared_bytes,
)
from lance_ops.maintenance.ingest.decoding.forking import NUMBER

__all__ = ["DECODING_MODULES", "FORK_SERVER", "ForkServer", "ForkedDecoder", "LostForkServer"]

DECODING_MODULES = (
    local_times,
    requests,
    text_values,
    csv_rows,
    csv_bytes,
    csv_files,
    json_bytes,
    json_names,
    json_files,
    orc_moments,
    unshared_bytes,
    decoder,
    forking,
)
"""What the fork server runs: each module stands after those that it imports, and the last one has the entry."""

_IDLE_SECONDS = 30
"""How long the fork server waits for a reader before it ends. The next reader starts another one."""

_KEPT = ("PATH", "HOME", "LANG", "TZ", "TZDIR", "TMPDIR", "VIRTUAL_ENV")
_KEPT_PREFIXES = ("LC_", "LD_", "PYTHON")
_SETTINGS = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",  # it reserves no address space ahead
    "MALLOC_ARENA_MAX": "2",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}

_WITHOUT_PANDAS = """
def find_no_pandas(name, path=None, target=None):
    if name == "pandas":
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, types.SimpleNamespace(find_spec=find_no_pandas))
"""
"""The decoders need no pandas, which pyarrow imports for the first array that it makes of Python values, in 0.3 s.

`sys.modules["pandas"] = None` would not do: pyarrow looks into `sys.modules` itself.
"""


class LostForkServer(OSError):
    """The fork server has ended, so nobody knows how a decoder of it ended."""


class ForkedDecoder:
    """A process that decodes raw files. A reader sends its requests over `connection`."""

    def __init__(self, process_id: int, connection: socket.socket, told: socket.socket) -> None:
        self.process_id, self.connection = process_id, connection
        self._told = told
        self._status: int | None = None

    def wait(self, seconds: float | None = None) -> int:
        """Return the exit status once the process has ended; -9 says that signal 9 ended it.

        Raises `TimeoutError` if it has not ended after so many seconds, and `LostForkServer`.
        """
        if self._status is None:
            self._told.settimeout(seconds)
            self._status = _number(self._told)
        return self._status

    def close(self) -> None:
        """Kill the process if it has not ended, and wait until it has."""
        with suppress(OSError):
            self._told.shutdown(socket.SHUT_WR)
        with suppress(LostForkServer):
            self.wait()
        self._told.close()
        self.connection.close()


class ForkServer:
    """Forks decoders for all threads of this process. Its own process starts with the first of them."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._server: _Server | None = None
        self._replaced: list[_Server] = []
        self.num_started = 0

    def fork(self) -> ForkedDecoder:
        """Return a new process that decodes. Raises `OSError` if no process starts."""
        with self._turn:
            environment = _environment()
            if self._server is not None and self._server.environment == environment:
                with suppress(LostForkServer):  # nobody needed it for a while
                    return self._server.fork()
            server = _Server(environment)
            self._replace(server)
            return server.fork()

    def let_go(self) -> None:
        """Leave the process to itself: it ends with the last of its decoders. The next reader starts another one.

        A fork of this process does so, because the fork server is not its child.
        """
        for server in (self._server, *self._replaced):
            if server is not None:
                server.control.close()
                server.process.returncode = 0  # nobody awaits it
        self._turn, self._server, self._replaced = threading.Lock(), None, []

    def _replace(self, server: _Server) -> None:
        if self._server is not None:
            self._server.control.close()
            self._replaced.append(self._server)
        self._server = server
        self.num_started += 1
        self._replaced = [each for each in self._replaced if each.process.poll() is None]


class _Server:
    """A process that forks decoders, started with an environment."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.environment = environment
        self.control, theirs = socket.socketpair()
        try:
            with theirs:
                self.process = _start(_program(), theirs, environment)
        except BaseException:
            self.control.close()
            raise

    def fork(self) -> ForkedDecoder:
        """Ask for a decoder. Raises `LostForkServer`."""
        connection, theirs = socket.socketpair()
        told, tells = socket.socketpair()
        try:
            with theirs, tells:
                try:
                    socket.send_fds(self.control, [b"+"], [theirs.fileno(), tells.fileno()])
                except ConnectionError as error:
                    raise LostForkServer("the process that starts decoders has ended") from error
            return ForkedDecoder(_number(told), connection, told)
        except BaseException:
            connection.close()
            told.close()
            raise


def _number(told: socket.socket) -> int:
    """Receive a number from the fork server."""
    try:
        received = told.recv(NUMBER.size)
    except ConnectionError:
        received = b""
    if not received:
        raise LostForkServer("the process that starts decoders has ended")
    number: int = NUMBER.unpack(received)[0]
    return number


def _start(program: str, control: socket.socket, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start the fork server. Its program is its input: Linux allows 128 KiB for an argument."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-", str(control.fileno()), str(_IDLE_SECONDS)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment,
        pass_fds=[control.fileno()],
    )
    assert process.stdin is not None
    with suppress(BrokenPipeError), process.stdin as text:  # the socket tells of a process that has ended
        text.write(program.encode())
    return process


@cache
def _program() -> str:
    """Return the text that the fork server runs: it makes our modules of their texts, in the order of their imports.

    It imports no package of ours, so it starts in a fraction of a second.
    """
    lines = ["import sys, types", _WITHOUT_PANDAS]
    for module in DECODING_MODULES:
        spec = importlib.util.find_spec(module.__name__)
        assert spec is not None and spec.loader is not None
        source = spec.loader.get_source(module.__name__)  # type: ignore[attr-defined]  # loaders of source have it
        made = f"sys.modules[{module.__name__!r}]"
        lines.append(f"{made} = types.ModuleType({module.__name__!r})")
        lines.append(f"exec({source!r}, {made}.__dict__)")
    return "\n".join([*lines, f"{made}.main()"])


def _environment() -> dict[str, str]:
    """Return the environment without secrets: only what an interpreter needs to start."""
    kept = {name: value for name, value in os.environ.items() if name in _KEPT or name.startswith(_KEPT_PREFIXES)}
    return kept | _SETTINGS


FORK_SERVER = ForkServer()
os.register_at_fork(after_in_child=FORK_SERVER.let_go)
atexit.register(FORK_SERVER.let_go)
