"""Ask the fork server for processes that decode raw files; it is started with the first of them.

A new interpreter takes 0.3 s until it can decode, and a fork of the fork server some milliseconds. The fork server of
the standard library's `multiprocessing` would inherit the environment with its secrets.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from functools import cache

from lance_ops.core import local_times
from lance_ops.maintenance.ingest.decoding import (
    csv_bytes,
    csv_files,
    csv_rows,
    decoder,
    fork_server,
    json_bytes,
    json_files,
    json_names,
    orc_moments,
    requests,
    text_values,
    unshared_bytes,
)
from lance_ops.maintenance.ingest.decoding.fork_server import REPORT

__all__ = ["DECODING_MODULES", "FORK_CLIENT", "ForkClient", "ForkedDecoder", "LostForkServer"]

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
    fork_server,
)
"""The modules that the fork server runs. Each stands after those that it imports. The last one has `main`."""

_IDLE_SECONDS = 30
"""The fork server ends when it has had no decoder for so long. The next reader starts another server."""
_ANSWER_SECONDS = 60
"""How long a reader waits until the fork server has started, if it must, and has forked a decoder."""
_END_SECONDS = 10
"""How long `close` waits for the end of a killed decoder, which cannot end while its disk does not answer."""

_ENVIRONMENT_NAMES = ("PATH", "HOME", "LANG", "TZ", "TZDIR", "LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONHOME")
_ENVIRONMENT_SETTINGS = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",  # it reserves no address space ahead
    "MALLOC_ARENA_MAX": "2",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}

_HIDE_PANDAS = """
def find_no_pandas(name, path=None, target=None):
    if name == "pandas":
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, types.SimpleNamespace(find_spec=find_no_pandas))
"""
"""The decoders need no pandas, which pyarrow imports for the first array that it makes of Python values, in 0.3 s.

`sys.modules["pandas"] = None` would not do: pyarrow looks into `sys.modules` itself.
"""


class LostForkServer(OSError):
    """The fork server has ended or does not answer, so nobody learns how its decoders end. It starts no new one."""

    def __init__(self) -> None:
        super().__init__("the process that starts decoders has ended")


class ForkedDecoder:
    """A process that decodes raw files. A reader sends its requests over `connection`."""

    def __init__(self, process_id: int, connection: socket.socket, reports: socket.socket) -> None:
        self.process_id, self.connection = process_id, connection
        self._reports = reports
        self._status: int | None = None

    def wait(self, seconds: float) -> int:
        """Return the exit status once the process has ended; -9 says that signal 9 ended it.

        Raises `TimeoutError` if it has not ended after so many seconds, and `LostForkServer` if nobody can tell.
        """
        if self._status is None:
            self._status = _received(self._reports, seconds)
        return self._status

    def close(self) -> None:
        """Have the fork server kill the process, and wait until it has ended."""
        with suppress(OSError):
            self._reports.shutdown(socket.SHUT_WR)
            self.wait(_END_SECONDS)
        self.let_go()

    def let_go(self) -> None:
        """Close this process's ends of the sockets. If no other process has them, the fork server kills the decoder."""
        self._reports.close()
        self.connection.close()


class ForkClient:
    """Asks the fork server of this process for decoders, for all threads. The first request starts the server."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._server: _Server | None = None
        self._replaced: list[_Server] = []
        self._decoders = weakref.WeakSet[ForkedDecoder]()
        self.num_servers = 0
        """How many fork servers were started."""

    def fork(self) -> ForkedDecoder:
        """Return a new process that decodes.

        The first call starts a fork server, and so does the first one after the server has ended, or after a variable
        of the environment that it inherits has changed. Raises `OSError` if no process starts.
        """
        with self._lock:
            forked = self._fork()
            self._decoders.add(forked)
            return forked

    def _fork(self) -> ForkedDecoder:
        environment = _environment()
        if self._server is not None and self._server.environment == environment:
            with suppress(LostForkServer):  # nobody needed it for a while, or the system killed it
                return self._server.fork()
        server = _Server(environment)
        self._replace(server)
        return server.fork()

    def disconnect(self) -> None:
        """Close the connection to the fork server, without waiting: it ends when its last decoder has ended.

        The next `fork` starts another server.
        """
        for server in (self._server, *self._replaced):
            if server is not None:
                server.control.close()
                server.process.returncode = 0  # nobody will await it
        self._server, self._replaced = None, []

    def before_fork(self) -> None:
        """Let no thread start a server while this process is forked: the child would keep the ends of its sockets."""
        self._lock.acquire()

    def after_fork_in_parent(self) -> None:
        """Let threads go on."""
        self._lock.release()

    def after_fork_in_child(self) -> None:
        """Leave the server and its decoders to the parent process, whose they are."""
        self.disconnect()
        for each in self._decoders:
            each.let_go()
        self._decoders.clear()
        self._lock.release()

    def _replace(self, server: _Server) -> None:
        if self._server is not None:
            self._server.control.close()
            self._replaced.append(self._server)
        self._server = server
        self.num_servers += 1
        self._replaced = [each for each in self._replaced if each.process.poll() is None]


class _Server:
    """The process of a fork server, started with an environment."""

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
        """Ask for a decoder. Raises `LostForkServer`, and `OSError` if the server could not fork."""
        with ExitStack() as unused:
            connection, their_connection = map(unused.enter_context, socket.socketpair())
            reports, their_reports = map(unused.enter_context, socket.socketpair())
            try:
                socket.send_fds(self.control, [b"+"], [their_connection.fileno(), their_reports.fileno()])
            except ConnectionError as error:
                raise LostForkServer from error
            their_connection.close()
            their_reports.close()  # or nobody would notice that the server has ended
            try:
                answer = _received(reports, _ANSWER_SECONDS)
            except TimeoutError as error:
                raise LostForkServer from error
            if answer < 0:
                raise OSError(-answer, os.strerror(-answer))
            unused.pop_all()
        return ForkedDecoder(answer, connection, reports)


def _received(reports: socket.socket, seconds: float) -> int:
    """Return the next number that the fork server sends. Raises `LostForkServer` and `TimeoutError`."""
    reports.settimeout(seconds)
    try:
        received = reports.recv(REPORT.size)
    except ConnectionError as error:
        raise LostForkServer from error
    if not received:
        raise LostForkServer
    number: int = REPORT.unpack(received)[0]
    return number


def _start(program: str, control: socket.socket, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start a fork server. It reads its program from its input, because Linux allows 128 KiB for an argument.

    The server does not import Python's `site`, which may load `sitecustomize` and `.pth` files that start threads.
    """
    process = subprocess.Popen(
        [sys.executable, "-P", "-s", "-S", "-", str(control.fileno()), str(_IDLE_SECONDS)],
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


def _program() -> str:
    """Return the source code that the fork server runs: it makes our modules, and calls the last one's `main`."""
    where = [os.path.abspath(entry) for entry in sys.path if entry]
    return f"import sys, types\nsys.path[:] = {where!r}\n{_HIDE_PANDAS}{_modules()}main()"


@cache
def _modules() -> str:
    """Return the source code that makes our modules, in the order of their imports.

    The code imports no package of this library, so it runs in a fraction of a second.
    """
    lines = []
    for module in DECODING_MODULES:
        spec = importlib.util.find_spec(module.__name__)
        assert spec is not None and spec.loader is not None
        source = spec.loader.get_source(module.__name__)  # type: ignore[attr-defined]  # loaders of source have it
        made = f"sys.modules[{module.__name__!r}]"
        lines.append(f"{made} = types.ModuleType({module.__name__!r})")
        lines.append(f"exec({source!r}, {made}.__dict__)")
    return "\n".join([*lines, f"main = {made}.main\n"])


def _environment() -> dict[str, str]:
    """Return the environment without secrets: only what an interpreter and Arrow need."""
    names = [*_ENVIRONMENT_NAMES, *(name for name in os.environ if name.startswith("LC_"))]
    kept = {name: value for name in names if (value := os.environ.get(name)) is not None}
    return kept | _ENVIRONMENT_SETTINGS


FORK_CLIENT = ForkClient()
os.register_at_fork(
    before=FORK_CLIENT.before_fork,
    after_in_parent=FORK_CLIENT.after_fork_in_parent,
    after_in_child=FORK_CLIENT.after_fork_in_child,
)
atexit.register(FORK_CLIENT.disconnect)
