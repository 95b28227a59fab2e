"""What the fork server runs: it forks a decoder for each reader of raw files.

The fork server has imported what decoders need and has started no thread, so a fork of it decodes at once. It never
reads a raw file itself: no file can change how the next reader's files are decoded.

A byte over the socket `control` asks for a decoder. With it come two sockets, whose other ends the reader keeps: one
for its requests to the decoder, and `reports`. Over `reports` the fork server sends the decoder's process id, or the
negative number of the error that kept it from starting, and when the decoder has ended its exit status. The fork server
kills the decoder when the reader closes its end of `reports`, or when the reader's process ends. If the fork server
itself ends, the system kills its decoders.
"""

from __future__ import annotations

import ctypes
import gc
import os
import selectors
import signal
import socket
import struct
import sys
from contextlib import suppress
from functools import partial

from lance_ops.maintenance.ingest.decoding.decoder import answer_requests

__all__ = ["REPORT", "main"]

REPORT = struct.Struct("<i")
"""A message over `reports`: one number."""

_PR_SET_PDEATHSIG = 1
"""The option of Linux's `prctl` that names the signal which a process gets when its parent ends."""


def main() -> None:
    """Serve `control`, whose descriptor is the first argument; the second one is how long to stay idle, in seconds."""
    signal.pthread_sigmask(signal.SIG_SETMASK, [])  # a child inherits what is blocked, and what is ignored
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # Dagster ignores it in a background job
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to the reader, too
    gc.freeze()  # a collection in a fork would copy the pages that it shares
    _ForkServer(_blocking_socket(int(sys.argv[1])), float(sys.argv[2])).serve()


class _ForkServer:
    """Forks decoders, reports how they ended, and kills those of readers that are gone.

    It learns of their ends by SIGCHLD: Linux before 5.3 has no descriptors of processes.
    """

    def __init__(self, control: socket.socket, idle_seconds: float) -> None:
        self._control, self._idle_seconds = control, idle_seconds
        self._control_is_open = True
        self._decoders: dict[int, socket.socket] = {}
        """The `reports` sockets of the decoders that have not ended, by process id."""
        self._selector = selectors.DefaultSelector()
        self._signal_reads, self._signal_writes = socket.socketpair()
        for end in (self._signal_reads, self._signal_writes):
            end.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._signal_writes.fileno(), warn_on_full_buffer=False)

    def serve(self) -> None:
        """Serve until `control` is closed and all decoders have ended, or there was nothing to do for a while."""
        self._selector.register(self._control, selectors.EVENT_READ, self._fork)
        self._selector.register(self._signal_reads, selectors.EVENT_READ, self._report_ended)
        while self._control_is_open or self._decoders:
            ready = self._selector.select(None if self._decoders else self._idle_seconds)
            if not ready:
                return
            for key, _ in ready:
                key.data()

    def _fork(self) -> None:
        asked, descriptors, _, _ = socket.recv_fds(self._control, 1, 2)
        if not asked:
            self._control_is_open = False
            self._selector.unregister(self._control)
            return
        connection, reports = map(_blocking_socket, descriptors)
        try:
            process_id = os.fork()
        except OSError as error:
            _send(reports, -(error.errno or 1))
            connection.close()
            reports.close()
            return
        if not process_id:
            self._decode(connection, reports)
        connection.close()
        self._decoders[process_id] = reports
        self._selector.register(reports, selectors.EVENT_READ, partial(self._kill, process_id, reports))
        _send(reports, process_id)

    def _decode(self, connection: socket.socket, reports: socket.socket) -> None:
        """Answer the reader in the forked process until the reader closes the connection; then end the process."""
        status = 1
        try:
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for end in (self._control, self._signal_reads, self._signal_writes, reports, *self._decoders.values()):
                end.close()
            self._selector.close()
            answer_requests(connection)
            status = 0
        finally:
            os._exit(status)

    def _kill(self, process_id: int, reports: socket.socket) -> None:
        """Kill a decoder whose reader has closed its end of `reports`, unless it has just ended."""
        if self._decoders.get(process_id) is reports:
            self._selector.unregister(reports)
            os.kill(process_id, signal.SIGKILL)

    def _report_ended(self) -> None:
        with suppress(BlockingIOError):
            self._signal_reads.recv(4096)
        for process_id, reports in list(self._decoders.items()):
            ended, status = os.waitpid(process_id, os.WNOHANG)
            if ended:
                with suppress(KeyError):  # it was killed
                    self._selector.unregister(reports)
                _send(reports, os.waitstatus_to_exitcode(status))
                reports.close()
                del self._decoders[process_id]


def _blocking_socket(descriptor: int) -> socket.socket:
    """Return a socket that waits for data. A default timeout in the reader's process makes sockets that do not wait."""
    made = socket.socket(fileno=descriptor)
    made.setblocking(True)
    return made


def _send(reports: socket.socket, number: int) -> None:
    with suppress(OSError):  # the reader is gone
        reports.send(REPORT.pack(number))
