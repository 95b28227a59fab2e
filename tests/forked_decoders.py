"""Fork the processes that decode raw files from one that has imported what they need: each import takes 0.3 s.

Each reader still has a process of its own, which ends with it and has its limits.
`tests/maintenance/ingest/decoding/test_decoding_process.py` starts them as the library does.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import threading
from contextlib import suppress
from typing import Any, cast

from lance_ops.maintenance.ingest.decoding import decoding_process
from lance_ops.maintenance.ingest.decoding.decoder import main
from lance_ops.maintenance.ingest.decoding.decoding_process import DecodingProcess, start_program

__all__ = ["DecoderTemplate", "start_alone"]

start_alone = DecodingProcess._start
"""How the library starts the process."""

_NUMBER_BYTES = 4

_SERVE = f"""
import os, signal, socket

def decode(connection):
    sys.argv[-1] = str(connection)
    status = 1
    try:
        sys.modules[{main.__module__!r}].main()
        status = 0
    finally:
        os._exit(status)

def watch(connection, told):
    child = os.fork()
    if not child:
        os.close(told)
        decode(connection)
    os.close(connection)
    os.write(told, child.to_bytes({_NUMBER_BYTES}, "little"))
    os.write(told, os.waitpid(child, 0)[1].to_bytes({_NUMBER_BYTES}, "little"))
    os._exit(0)

def serve(control):
    watching = set()
    while True:
        asked, descriptors, _, _ = socket.recv_fds(control, 1, 2)
        if not asked:
            return
        watcher = os.fork()
        if not watcher:
            control.close()
            watch(*descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        watching.add(watcher)
        watching -= {{each for each in watching if os.waitpid(each, os.WNOHANG)[0]}}

serve(socket.socket(fileno=int(sys.argv[-1])))
"""
"""What the template runs after the imports. For each request it forks a process that forks a decoder and awaits it."""


class DecoderTemplate:
    """A process that forks decoders; it starts with the first of them. Forks of this process may use it, too."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._environment: dict[str, str] = {}
        self._beginning = threading.Lock()

    def start(self, decoder: DecodingProcess) -> None:
        """Start the process of a `DecodingProcess`: as the library does if the environment has changed."""
        with self._beginning:
            if self._process is None:
                self._begin()
        if decoding_process._environment() != self._environment:
            start_alone(decoder)
            return
        assert self._control is not None
        ours, theirs = socket.socketpair()
        told, tells = os.pipe()
        with theirs:
            socket.send_fds(self._control, [b"!"], [theirs.fileno(), tells])
        os.close(tells)
        decoder._process = cast(Any, _Forked(told))
        decoder._connection = ours
        decoder._answers = ours.makefile("rb")
        decoder.num_started += 1

    def close(self) -> None:
        """End the template."""
        if self._control is not None and self._process is not None:
            self._control.close()
            self._process.wait()

    def _begin(self) -> None:
        self._environment = decoding_process._environment()
        self._control, theirs = socket.socketpair()
        imports, _, _ = decoding_process._program().rpartition("\n")
        with theirs:
            self._process = start_program(imports + _SERVE, theirs, self._environment)


class _Forked:
    """A forked decoder, with the methods of `subprocess.Popen` that a `DecodingProcess` calls."""

    def __init__(self, told: int) -> None:
        self._told = told
        self._handle = os.pidfd_open(self._number())
        self._status: int | None = None

    def kill(self) -> None:
        if self._status is None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, signal.SIGKILL)

    def wait(self, timeout: float | None = None) -> int:
        if self._status is None:
            if not select.select([self._told], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("decoder", timeout or 0)
            self._status = os.waitstatus_to_exitcode(self._number())
            os.close(self._told)
            os.close(self._handle)
        return self._status

    def _number(self) -> int:
        return int.from_bytes(os.read(self._told, _NUMBER_BYTES), "little")
