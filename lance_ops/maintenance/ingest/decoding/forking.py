"""Fork a decoder for each reader of raw files: what the fork server runs.

The fork server has imported what decoders need and has started no thread, so a fork of it decodes at once. It never
reads a raw file itself: no file can change how the next reader's files are decoded.

A byte over the socket `control` asks for a decoder. With it come two sockets, whose other ends the reader keeps: one
for its requests to the decoder, and `told`. Over `told` the fork server sends the decoder's process id, and when the
decoder has ended its exit status. It kills the decoder when the reader closes its end of `told`, or ends itself.
"""

from __future__ import annotations

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

__all__ = ["NUMBER", "main"]

NUMBER = struct.Struct("<i")
"""A process id or an exit status, as it is sent over `told`."""


def main() -> None:
    """Serve `control`, whose descriptor is the first argument; the second one is how long to wait idly, in seconds."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # Dagster ignores it in a background job, which a child inherits
    gc.freeze()  # a collection in a fork would copy the pages that it shares
    _Forking(socket.socket(fileno=int(sys.argv[1])), float(sys.argv[2])).serve()


class _Forking:
    """Forks decoders, tells how they ended, and kills those of readers that are gone."""

    def __init__(self, control: socket.socket, idle_seconds: float) -> None:
        self._control, self._idle_seconds = control, idle_seconds
        self._is_open = True
        self._decoders: dict[int, socket.socket] = {}
        """The `told` sockets of the decoders that have not ended, by process id."""
        self._selector = selectors.DefaultSelector()
        self._child_ended, self._wakes = socket.socketpair()
        for end in (self._child_ended, self._wakes):
            end.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wakes.fileno(), warn_on_full_buffer=False)

    def serve(self) -> None:
        """Fork decoders until `control` is closed and all have ended, or nobody has asked for one for a while."""
        self._selector.register(self._control, selectors.EVENT_READ, self._fork)
        self._selector.register(self._child_ended, selectors.EVENT_READ, self._reap)
        while self._is_open or self._decoders:
            ready = self._selector.select(None if self._decoders else self._idle_seconds)
            if not ready:
                return
            for key, _ in ready:
                key.data()

    def _fork(self) -> None:
        asked, descriptors, _, _ = socket.recv_fds(self._control, 1, 2)
        if not asked:
            self._is_open = False
            self._selector.unregister(self._control)
            return
        connection, told = (socket.socket(fileno=descriptor) for descriptor in descriptors)
        process_id = os.fork()
        if not process_id:
            self._decode(connection, told)
        connection.close()
        self._decoders[process_id] = told
        self._selector.register(told, selectors.EVENT_READ, partial(self._kill, process_id))
        _send(told, process_id)

    def _decode(self, connection: socket.socket, told: socket.socket) -> None:
        """Decode, as the forked process, until the reader closes the connection."""
        status = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for end in (self._control, self._child_ended, self._wakes, told, *self._decoders.values()):
                end.close()
            self._selector.close()
            answer_requests(connection)
            status = 0
        finally:
            os._exit(status)

    def _kill(self, process_id: int) -> None:
        """Kill a decoder whose reader has closed its end of `told`."""
        if (told := self._decoders.get(process_id)) is not None:  # else it has just ended
            self._selector.unregister(told)
            os.kill(process_id, signal.SIGKILL)

    def _reap(self) -> None:
        with suppress(BlockingIOError):
            self._child_ended.recv(4096)
        for process_id, told in list(self._decoders.items()):
            ended, status = os.waitpid(process_id, os.WNOHANG)
            if ended:
                with suppress(KeyError):  # it was killed
                    self._selector.unregister(told)
                _send(told, os.waitstatus_to_exitcode(status))
                told.close()
                del self._decoders[process_id]


def _send(told: socket.socket, number: int) -> None:
    with suppress(OSError):  # the reader is gone
        told.send(NUMBER.pack(number))
