"""Decode raw files in another process, so that a hostile file crashes that process or exhausts its memory, not ours.

One process decodes the files of a task one after the other; another one replaces it after a crash. It receives an open
descriptor, and no name, URI, option of a store or secret. It may not write to files, its memory is bounded, and the
reader has it killed when no rows come in time.
"""

from __future__ import annotations

import json
import signal
import socket
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager, suppress
from itertools import islice
from types import TracebackType
from typing import IO, Any, Self, TypeVar

import pyarrow as pa
import pyarrow.ipc

from lance_ops.maintenance.ingest.decoding.decoder import OUT_OF_MEMORY, request_line
from lance_ops.maintenance.ingest.decoding.fork_client import FORK_CLIENT, ForkedDecoder, LostForkServer
from lance_ops.maintenance.ingest.decoding.requests import (
    MACHINE,
    DecodingRefused,
    RawLimits,
    RawRequest,
    lacks_resources,
)

__all__ = ["DecodingProcess"]

_Item = TypeVar("_Item")
_LESS_MEMORY = "split the file, or give the machine more memory than raw.limits.memory_bytes for each task"


class DecodingProcess:
    """A process that decodes files on request; it starts with the first request. Used by one thread at a time."""

    def __init__(self) -> None:
        self._decoder: ForkedDecoder | None = None
        self._answers: IO[bytes] | None = None
        self.num_started = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def schema(self, descriptor: int, request: RawRequest, limits: RawLimits) -> tuple[pa.Schema, int | None]:
        """Return a file's schema and the number of rows that its footer states, None for a format without it.

        Raises `DecodingRefused` if the file is not read or exceeds a limit, and `OSError` if no process starts.
        """

        def read() -> Generator[tuple[pa.Schema, int | None], None, None]:
            stream, num_rows = self._ask(descriptor, request, limits, only_schema=True)
            schema = stream.schema
            if next(self._read(stream, limits), None) is not None:
                raise AssertionError("rows were sent although only the schema was asked for")
            yield schema, num_rows

        return next(_retried_if_killed(read))

    def batches(self, descriptor: int, request: RawRequest, limits: RawLimits) -> Iterator[pa.RecordBatch]:
        """Yield the batches of a file; raise as `schema` does. A caller that stops early closes the iterator."""

        def read() -> Generator[pa.RecordBatch, None, None]:
            stream, _ = self._ask(descriptor, request, limits, only_schema=False)
            yield from self._read(stream, limits)

        yield from _retried_if_killed(read)

    def _read(self, stream: pa.RecordBatchReader, limits: RawLimits) -> Iterator[pa.RecordBatch]:
        with self._answered():
            while (batch := self._next(stream, limits)) is not None:
                yield batch
            self._check_answer(limits)

    @contextmanager
    def _answered(self) -> Iterator[None]:
        """End the process if the block stops early: the unread rest of its answer would be taken for the next one."""
        try:
            yield
        except DecodingRefused:  # it is the end of the answer
            raise
        except BaseException:
            self.close()
            raise

    def _next(self, stream: pa.RecordBatchReader, limits: RawLimits) -> pa.RecordBatch | None:
        try:
            return stream.read_next_batch()
        except StopIteration:
            return None
        except (OSError, pa.ArrowException) as error:
            raise self._ended(error, limits) from error

    def close(self) -> None:
        """End the process; the next request starts another one."""
        if self._decoder is not None:
            if self._answers is not None:
                with suppress(OSError):
                    self._answers.close()
            self._decoder.close()
        self._decoder = self._answers = None

    def _ask(
        self, descriptor: int, request: RawRequest, limits: RawLimits, *, only_schema: bool
    ) -> tuple[pa.RecordBatchReader, int | None]:
        if self._decoder is None:
            self._decoder = FORK_CLIENT.fork()
            self._answers = self._decoder.connection.makefile("rb")
            self.num_started += 1
        connection = self._decoder.connection
        connection.settimeout(limits.seconds)
        with self._answered():
            try:
                line = request_line(request, limits, only_schema=only_schema)
                sent = socket.send_fds(connection, [line], [descriptor])
                connection.sendall(line[sent:])  # a wide schema does not fit into the socket's buffer
                num_rows = self._check_answer(limits).get("num_rows")
                stream = pa.ipc.open_stream(pa.PythonFile(self._answers, "r"))
                return stream, num_rows if isinstance(num_rows, int) else None
            except (OSError, pa.ArrowException) as error:
                raise self._ended(error, limits) from error

    def _check_answer(self, limits: RawLimits) -> dict[str, Any]:
        assert self._answers is not None
        try:
            line = self._answers.readline()
        except OSError as error:
            raise self._ended(error, limits) from error
        if not line.endswith(b"\n"):
            raise self._ended(EOFError("it said nothing"), limits)
        answer: dict[str, Any] = json.loads(line)
        if "reason" in answer:
            raise DecodingRefused(answer["reason"], answer["limit"])
        return answer

    def _ended(self, error: BaseException, limits: RawLimits) -> DecodingRefused:
        """Return why there is no answer. The process is ended in any case."""
        late = DecodingRefused(f"nothing was decoded for {limits.seconds:g} seconds", "seconds")
        status: int | None = None
        if self._decoder is not None and not isinstance(error, TimeoutError):
            try:
                status = self._decoder.wait(10)
            except TimeoutError:
                pass
            except LostForkServer as lost:  # its decoders are killed with it
                self.close()
                return _Killed(str(lost), MACHINE)
        self.close()
        if lacks_resources(error):
            return DecodingRefused(str(error), MACHINE)
        if isinstance(error, TimeoutError) or status == -signal.SIGXCPU:
            return late
        if status in (OUT_OF_MEMORY, -signal.SIGABRT):  # C++ aborts where it cannot raise
            return DecodingRefused("decoding it took more memory than is allowed", "memory_bytes")
        if status == -signal.SIGKILL:
            return _Killed("the system killed the process that decodes it")
        if status == -signal.SIGTERM:
            return DecodingRefused("the system ended the process that decodes it by SIGTERM", MACHINE)
        if status is not None and status < 0:
            return DecodingRefused(
                f"decoding it ended its process by {signal.Signals(-status).name}; repair or remove the file"
            )
        return DecodingRefused(f"the process that decodes it ended early ({error!r}); repair or remove the file")


class _Killed(DecodingRefused):
    """The system killed the process, as it does if no memory is left. No limit that we set kills a process."""


def _retried_if_killed(read: Callable[[], Generator[_Item, None, None]]) -> Iterator[_Item]:
    """Yield what `read` yields. If its process is killed, read once more in another one, and yield the rest.

    Another process may have taken the memory. But a file whose process is killed twice is refused, because it would
    stop all other files for good.
    """
    num_yielded = 0
    for is_last in (False, True):
        try:
            with closing(read()) as items:
                for item in islice(items, num_yielded, None):
                    num_yielded += 1
                    yield item
            return
        except _Killed as killed:
            if is_last and killed.limit == MACHINE:
                raise
            if is_last:
                raise DecodingRefused(f"{killed.reason} twice, as if no memory is left: {_LESS_MEMORY}") from killed
