"""Decode a raw file to Arrow batches within limits.

The bytes are hostile until they are decoded. Arrow's readers take any number of rows, columns and levels, and some
inputs end the process. So what can be learned cheaply is checked first, batches are small, and all that comes out is
counted. A file may still crash the reader or ask for too much memory, so another process runs `answer_requests`.
"""

from __future__ import annotations

import json
import os
import resource
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.orc
import pyarrow.parquet

from lance_ops.maintenance.ingest.decoding.csv_files import decode_csv
from lance_ops.maintenance.ingest.decoding.json_bytes import JsonSource
from lance_ops.maintenance.ingest.decoding.json_files import decode_json
from lance_ops.maintenance.ingest.decoding.orc_moments import check_moments
from lance_ops.maintenance.ingest.decoding.requests import (
    BLOCK_BYTES,
    MACHINE,
    START_BYTES,
    DecodingRefused,
    RawLimits,
    RawRequest,
    RawSource,
    check_count,
    check_schema,
    lacks_resources,
)
from lance_ops.maintenance.ingest.decoding.unshared_bytes import unshared_bytes

__all__ = ["OUT_OF_MEMORY", "Decoded", "answer_requests", "decode", "request_line"]

OUT_OF_MEMORY = 71
"""The exit status of a process that ran out of memory where it could not say so."""

_BATCH_BYTES = 32 * 1024**2
_MAX_BATCH_ROWS = 128 * 1024
_MAX_THREADS = 4
_HEADER_BYTES = 1024
"""Some old writers of Parquet leave the header of a dictionary's page out of the size of its column."""


class Decoded(NamedTuple):
    """A file's schema, its batches, and the number of rows that its footer states; None for formats without it."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]
    num_rows: int | None = None


def decode(descriptor: int, request: RawRequest, limits: RawLimits) -> Decoded:
    """Return what a file holds, from an open descriptor.

    Raises `DecodingRefused`, also while the batches are read.
    """
    with _refusals():
        size_bytes = os.fstat(descriptor).st_size
        if size_bytes > limits.file_bytes:
            raise DecodingRefused(f"it has {size_bytes:,} bytes", "file_bytes")
        allowed_bytes = limits.decoded_bytes(size_bytes)
        text = request.text
        source = RawSource(
            f"/dev/fd/{descriptor}",
            request.compression,
            text.encoding,
            allowed_bytes,
            request.is_cut,
            limits.row_bytes,
            quote=text.quote if request.kind in ("csv", "csv_rows") else "",
            skip_lines=text.skip_lines,
        )
        found = _DECODERS[request.kind](source, request, limits)
        check_schema(found.schema, limits)
    return found._replace(batches=_counted(found.batches, allowed_bytes, limits))


def _counted(batches: Iterable[pa.RecordBatch], allowed_bytes: int, limits: RawLimits) -> Iterator[pa.RecordBatch]:
    num_rows = size_bytes = 0
    with _refusals():
        for batch in batches:
            batch.validate(full=True)
            num_rows += batch.num_rows
            if num_rows > limits.rows:
                raise DecodingRefused(f"it has more than {limits.rows:,} rows", "rows")
            for part in _parts(batch):
                size_bytes += unshared_bytes(part)
                if size_bytes > allowed_bytes:
                    raise DecodingRefused(f"its rows have more than {allowed_bytes:,} bytes when decoded", "expansion")
                yield part


def _parts(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Cut a batch so that a part stays small when the table's types ask for plain values."""
    pending = [batch]
    while pending:
        part = pending.pop()
        if part.num_rows > 1 and unshared_bytes(part) > 2 * _BATCH_BYTES:
            half = part.num_rows // 2
            pending += [part.slice(half), part.slice(0, half)]
        else:
            yield part


def _parquet(source: RawSource, request: RawRequest, limits: RawLimits) -> Decoded:
    # In nanoseconds, INT96 before 1677 or after 2262 would wrap around. Spark reads microseconds, too.
    file = pa.parquet.ParquetFile(pa.OSFile(source.path), pre_buffer=False, coerce_int96_timestamp_unit="us")
    metadata = file.metadata
    check_count(metadata.num_columns, "columns", limits.columns)
    groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
    num_rows = sum(max(group.num_rows, 0) for group in groups)
    check_count(max(num_rows, metadata.num_rows), "rows", limits.rows)
    stated = max((group.total_byte_size // max(group.num_rows, 1) for group in groups), default=0)
    chosen = _chosen(request, metadata.num_row_groups)
    batches = file.iter_batches(_batch_rows(file.schema_arrow, stated), chosen, use_threads=True)
    return Decoded(file.schema_arrow, batches, num_rows)


def _parquet_groups(source: RawSource, request: RawRequest, _: RawLimits) -> Decoded:
    metadata = pa.parquet.ParquetFile(pa.OSFile(source.path)).metadata
    sizes = [max(metadata.row_group(index).total_byte_size, 0) for index in range(metadata.num_row_groups)]
    return _group_ranges(sizes, request.num_ranges)


def _parquet_range(source: RawSource, request: RawRequest, limits: RawLimits) -> Decoded:
    """Return where the pages of the row groups begin and end; the end may be too late by some bytes."""
    metadata = pa.parquet.ParquetFile(pa.OSFile(source.path)).metadata
    check_count(metadata.num_columns, "columns", limits.columns)
    groups = map(metadata.row_group, _chosen(request, metadata.num_row_groups))
    chunks = [group.column(index) for group in groups for index in range(metadata.num_columns)]
    starts = [min(chunk.dictionary_page_offset or chunk.data_page_offset, chunk.data_page_offset) for chunk in chunks]
    ends = [start + chunk.total_compressed_size for start, chunk in zip(starts, chunks, strict=True)]
    return _numbers(start=[min(starts, default=0)], stop=[max(ends, default=0) + _HEADER_BYTES])


def _group_ranges(weights: Sequence[int], num_ranges: int) -> Decoded:
    """Join adjacent row groups to about `num_ranges` ranges; return before which group each ends, and what it weighs.

    Two adjacent ranges together weigh more than a `num_ranges`th of the file. So there are at most about twice as many
    ranges, however many row groups the file has. Only a row group that stands alone may weigh more than that.
    """
    most = -(-sum(weights) // num_ranges)
    stops: list[int] = []
    sums: list[int] = []
    weight = 0
    for number, added in enumerate(weights):
        if weight and weight + added > most:
            stops.append(number)
            sums.append(weight)
            weight = 0
        weight += added
    return _numbers(stop=[*stops, len(weights)], weight=[*sums, weight])


def _numbers(**columns: Sequence[int]) -> Decoded:
    batch = pa.record_batch({name: pa.array(np.array(numbers, np.int64)) for name, numbers in columns.items()})
    return Decoded(batch.schema, iter([batch]))


def _chosen(request: RawRequest, count: int) -> range:
    """Return which of the `count` row groups to read; refuse a file that had another number of them."""
    if request.groups is None:
        return range(count)
    if request.groups.total != count:
        raise DecodingRefused(f"it has {count:,} row groups, and had {request.groups.total:,} when it was looked at")
    return range(request.groups.start, request.groups.stop)


def _ipc(source: RawSource, request: RawRequest, limits: RawLimits) -> Decoded:
    reader = pa.ipc.open_file(pa.OSFile(source.path))
    return Decoded(reader.schema, map(reader.get_batch, _chosen(request, reader.num_record_batches)))


def _ipc_groups(source: RawSource, request: RawRequest, _: RawLimits) -> Decoded:
    return _group_ranges([1] * pa.ipc.open_file(pa.OSFile(source.path)).num_record_batches, request.num_ranges)


def _orc_groups(source: RawSource, request: RawRequest, _: RawLimits) -> Decoded:
    return _group_ranges([1] * pa.orc.ORCFile(pa.OSFile(source.path)).nstripes, request.num_ranges)


def _orc(source: RawSource, request: RawRequest, limits: RawLimits) -> Decoded:
    file = pa.orc.ORCFile(pa.OSFile(source.path))
    check_count(file.nrows, "rows", limits.rows)
    check_moments(source, file)
    return Decoded(file.schema, map(file.read_stripe, _chosen(request, file.nstripes)), file.nrows)


def _csv(source: RawSource, request: RawRequest, limits: RawLimits) -> Decoded:
    return Decoded(*decode_csv(source, request, limits))


def _csv_rows(source: RawSource, *_: Any) -> Decoded:
    return _numbers(is_enough=[source.has_first_rows()])


def _json_rows(source: RawSource, *_: Any) -> Decoded:
    return _numbers(is_enough=[JsonSource(**vars(source)).has_first_rows()])


def _json(source: RawSource, request: RawRequest, limits: RawLimits) -> Decoded:
    return Decoded(*decode_json(source, request, limits))


def _start(source: RawSource, _: RawRequest, limits: RawLimits) -> Decoded:
    """Decompress the first bytes, in one cell."""
    with source.open() as stream:
        batch = pa.record_batch({"start": pa.array([stream.read(START_BYTES)], pa.binary())})
    return Decoded(batch.schema, iter([batch]))


_DECODERS: dict[str, Callable[[RawSource, RawRequest, RawLimits], Decoded]] = {
    "parquet": _parquet,
    "parquet_groups": _parquet_groups,
    "parquet_range": _parquet_range,
    "ipc": _ipc,
    "ipc_groups": _ipc_groups,
    "orc": _orc,
    "orc_groups": _orc_groups,
    "csv": _csv,
    "csv_rows": _csv_rows,
    "json": _json,
    "json_rows": _json_rows,
    "start": _start,
}


def _batch_rows(schema: pa.Schema, stated_row_bytes: int) -> int:
    """Return how many rows to decode at once; `stated_row_bytes` is what the file says, and may be a lie."""
    row_bytes = max(stated_row_bytes, sum(_width(field.type) for field in schema), 1)
    return max(1, min(_MAX_BATCH_ROWS, _BATCH_BYTES // row_bytes))


def _width(kind: pa.DataType) -> int:
    if pa.types.is_fixed_size_list(kind):
        return int(kind.list_size) * _width(kind.value_type)
    if kind.num_fields:
        return sum(_width(kind.field(index).type) for index in range(kind.num_fields))
    try:
        return int(kind.bit_width) // 8
    except ValueError:
        return 1


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except (MemoryError, pa.ArrowMemoryError) as error:
        raise DecodingRefused("decoding it takes more memory than is allowed", "memory_bytes") from error
    except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError) as error:
        if lacks_resources(error):
            raise DecodingRefused(str(error), MACHINE) from error
        raise DecodingRefused(f"{error}; repair or remove the file") from error


# The process. Both ends speak over one socket:
#
#   parent: a line of JSON, with the file's descriptor   {"request": {…}, "limits": {…}, "only_schema": …}
#   child:  a line of JSON                               {"num_rows": …} or {"reason": …, "limit": …}
#           no reason: an Arrow IPC stream, then a line  {} or {"reason": …, "limit": …}


def request_line(request: RawRequest, limits: RawLimits, *, only_schema: bool) -> bytes:
    """Return the line of JSON by which the parent asks for a file's batches, or for its schema alone."""
    asked = {"request": request.to_json(), "limits": asdict(limits), "only_schema": only_schema}
    return json.dumps(asked).encode() + b"\n"


def answer_requests(connection: socket.socket) -> None:
    """Answer requests until the other end closes the connection. Limits the process, which must do nothing else."""
    pa.set_cpu_count(min(_MAX_THREADS, os.cpu_count() or 1))
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, 0)  # it writes to its socket alone
    idle_bytes = _address_space()
    with connection, connection.makefile("wb", BLOCK_BYTES) as answers:
        while True:
            line, descriptors, _, _ = socket.recv_fds(connection, 65536, 1)
            if not line:
                return
            while not line.endswith(b"\n"):
                if not (more := connection.recv(65536)):
                    return
                line += more
            asked = json.loads(line)
            limits = RawLimits(**asked["limits"])
            _limit(resource.RLIMIT_AS, idle_bytes + limits.memory_bytes)
            try:
                request = RawRequest.from_json(asked["request"])
                _answer(answers, descriptors[0], request, limits, only_schema=asked["only_schema"])
            except (MemoryError, pa.ArrowMemoryError):
                os._exit(OUT_OF_MEMORY)
            os.close(descriptors[0])


def _answer(answers: Any, descriptor: int, request: RawRequest, limits: RawLimits, *, only_schema: bool) -> None:
    try:
        _allow_seconds(limits)
        found = decode(descriptor, request, limits)
        answers.write(json.dumps({"num_rows": found.num_rows}).encode() + b"\n")
        with pa.ipc.new_stream(pa.PythonFile(answers, "w"), found.schema) as stream:
            refusal = None if only_schema else _send(stream, answers, found.batches, limits)
    except DecodingRefused as error:
        refusal = error
    answers.write(json.dumps({"reason": refusal.reason, "limit": refusal.limit} if refusal else {}).encode() + b"\n")
    answers.flush()


def _send(stream: Any, answers: Any, batches: Iterator[pa.RecordBatch], limits: RawLimits) -> DecodingRefused | None:
    try:
        for batch in batches:
            stream.write_batch(batch)
            answers.flush()  # the parent counts the seconds since it last received something
            _allow_seconds(limits)
    except DecodingRefused as error:
        return error
    return None


def _allow_seconds(limits: RawLimits) -> None:
    """Bound this process's processor time, so that it ends even without a parent. The parent counts clock seconds."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    allowed = used.ru_utime + used.ru_stime + limits.seconds * _MAX_THREADS + 1
    _limit(resource.RLIMIT_CPU, int(allowed))


def _limit(kind: int, most: int) -> None:
    """Limit this process, within the limit that it inherited and may not raise."""
    _, inherited = resource.getrlimit(kind)
    resource.setrlimit(kind, (most if inherited == resource.RLIM_INFINITY else min(most, inherited), inherited))


def _address_space() -> int:
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[0]) * resource.getpagesize()
