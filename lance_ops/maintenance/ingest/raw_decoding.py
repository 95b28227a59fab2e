"""Decode a raw file to Arrow batches within limits.

The bytes are hostile until they are decoded. Arrow's readers take any number of rows, columns and levels, and some
inputs end the process. So what can be learned cheaply is checked first, batches are small, and all that comes out is
counted. A file may still crash the reader or ask for too much memory, so `raw_process.py` runs it in another process.

That process runs this module's text and nothing else. The module therefore imports nothing but the standard library
and pyarrow, and knows neither the file's name nor the options of its store.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import resource
import socket
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.ipc
import pyarrow.json
import pyarrow.parquet

__all__ = ["OUT_OF_MEMORY", "DecodingRefused", "RawLimits", "decode", "main", "request_line"]

OUT_OF_MEMORY = 71
"""The exit status of a process that ran out of memory where it could not say so."""

_BLOCK_BYTES = 1024**2  # Arrow's own: a row of CSV or JSON must fit into it
_BATCH_BYTES = 32 * 1024**2
_MAX_BATCH_ROWS = 128 * 1024
_FREE_BYTES = 256 * 1024**2
_MAX_BLOCK_CELLS = 16 * 1024**2  # Arrow makes a cell for each column that a row of JSON lacks
_MAX_THREADS = 4


@dataclass(frozen=True)
class RawLimits:
    """What one raw file may hold and cost. A file beyond a limit is refused, with the limit's name.

    `expansion` bounds the decoded bytes by so many times the file's size; 256 MiB are always allowed. `memory_bytes` is
    what decoding may take at once, and `seconds` how long until the next batch, both in a process of its own.
    """

    file_bytes: int = 16 * 1024**3
    rows: int = 1_000_000_000
    columns: int = 10_000
    depth: int = 60
    expansion: int = 1000
    memory_bytes: int = 2 * 1024**3
    seconds: float = 300


class DecodingRefused(Exception):
    """Why a file is not read; `limit` names the limit of `RawLimits` that it exceeds, if it does."""

    def __init__(self, reason: str, limit: str | None = None) -> None:
        self.reason = reason
        self.limit = limit
        super().__init__(reason)


def decode(descriptor: int, kind: str, limits: RawLimits) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Return a file's schema and its batches, from an open descriptor. `kind` is parquet, ipc, csv or json.

    Raises `DecodingRefused`, also while the batches are read.
    """
    with _refusals():
        size_bytes = os.fstat(descriptor).st_size
        if size_bytes > limits.file_bytes:
            raise DecodingRefused(f"it has {size_bytes:,} bytes", "file_bytes")
        schema, batches = _DECODERS[kind](f"/dev/fd/{descriptor}", limits)
        _check_schema(schema, limits)
    return schema, _counted(batches, max(_FREE_BYTES, limits.expansion * size_bytes), limits)


def _counted(batches: Iterable[pa.RecordBatch], allowed_bytes: int, limits: RawLimits) -> Iterator[pa.RecordBatch]:
    num_rows = size_bytes = 0
    with _refusals():
        for batch in batches:
            batch.validate(full=True)
            num_rows += batch.num_rows
            if num_rows > limits.rows:
                raise DecodingRefused(f"it has more than {limits.rows:,} rows", "rows")
            for part in _parts(batch):
                size_bytes += _plain_bytes(part)
                if size_bytes > allowed_bytes:
                    raise DecodingRefused(f"its rows have more than {allowed_bytes:,} bytes when decoded", "expansion")
                yield part


def _parts(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Cut a batch so that a part stays small when the table's types ask for plain values."""
    pending = [batch]
    while pending:
        part = pending.pop()
        if part.num_rows > 1 and _plain_bytes(part) > 2 * _BATCH_BYTES:
            half = part.num_rows // 2
            pending += [part.slice(half), part.slice(0, half)]
        else:
            yield part


def _plain_bytes(batch: pa.RecordBatch) -> int:
    return sum(map(_plain_bytes_of, batch.columns))


def _plain_bytes_of(array: pa.Array) -> int:
    """Return about how many bytes an array's values take if no two share the items of a dictionary, a view or a run."""
    kind = array.type
    if not _shares(kind):
        return int(array.nbytes)
    if isinstance(kind, pa.BaseExtensionType):
        return _plain_bytes_of(array.storage)
    if pa.types.is_dictionary(kind):
        return int(array.nbytes) + _repeated(array.dictionary, len(array))
    if pa.types.is_run_end_encoded(kind):
        return _repeated(array.values, len(array))
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        # A view has 16 bytes, and its length is the first four of them.
        views = np.frombuffer(array.buffers()[1], np.int32)[::4]
        return int(views[array.offset : array.offset + len(array)].sum(dtype=np.int64))
    if pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind):
        return int(array.nbytes) + _repeated(array.values, pc.sum(pc.list_value_length(array)).as_py() or 0)
    if pa.types.is_map(kind):
        entries = pa.StructArray.from_arrays([array.keys, array.items], ["key", "value"])
        return _plain_bytes_of(pa.ListArray.from_arrays(array.offsets, entries))
    if pa.types.is_struct(kind):
        return sum(map(_plain_bytes_of, array.flatten()))
    return _plain_bytes_of(array.flatten()) if hasattr(array, "flatten") else int(array.nbytes)


def _shares(kind: pa.DataType) -> bool:
    """Whether values of a type may stand for the same bytes many times."""
    if isinstance(kind, pa.BaseExtensionType):
        return _shares(kind.storage_type)
    if any(shares(kind) for shares in _SHARING):
        return True
    return any(_shares(kind.field(index).type) for index in range(kind.num_fields))


_SHARING = (
    pa.types.is_dictionary,
    pa.types.is_run_end_encoded,
    pa.types.is_string_view,
    pa.types.is_binary_view,
    pa.types.is_list_view,
    pa.types.is_large_list_view,
)


def _repeated(items: pa.Array, times: int) -> int:
    """Return the bytes of so many items: of texts as long as the longest one, else of items of the average size."""
    if not len(items):
        return 0
    if pa.types.is_large_binary(items.type) or pa.types.is_large_string(items.type) or _is_text(items.type):
        return times * (pc.max(pc.binary_length(items)).as_py() or 0)
    return times * (_plain_bytes_of(items) // len(items))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_string(kind))


def _parquet(path: str, limits: RawLimits) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    file = pa.parquet.ParquetFile(pa.OSFile(path), pre_buffer=False)
    metadata = file.metadata
    _check_count(metadata.num_columns, "columns", limits.columns)
    groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
    num_rows = sum(max(group.num_rows, 0) for group in groups)
    _check_count(max(num_rows, metadata.num_rows), "rows", limits.rows)
    stated = max((group.total_byte_size // max(group.num_rows, 1) for group in groups), default=0)
    return file.schema_arrow, file.iter_batches(_batch_rows(file.schema_arrow, stated), use_threads=True)


def _ipc(path: str, limits: RawLimits) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    reader = pa.ipc.open_file(pa.OSFile(path))
    return reader.schema, (reader.get_batch(index) for index in range(reader.num_record_batches))


def _csv(path: str, limits: RawLimits) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    with open(path, "rb") as file:
        start = file.read(_BLOCK_BYTES).decode("latin-1")
    csv.field_size_limit(_BLOCK_BYTES)
    try:
        header = next(csv.reader(io.StringIO(start, newline="")), [])
    except csv.Error as error:
        raise DecodingRefused(f"its first line cannot be read: {error}") from error
    _check_count(len(header), "columns", limits.columns)
    reader = pa.csv.open_csv(pa.OSFile(path))
    return reader.schema, reader


def _json(path: str, limits: RawLimits) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    _check_json(path, limits)
    with pa.json.open_json(pa.OSFile(path)) as first:
        schema = first.schema
    _check_schema(schema, limits)
    parsing = pa.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error")
    return schema, _known_fields(path, schema, pa.json.open_json(pa.OSFile(path), parse_options=parsing))


def _known_fields(path: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the batches; refuse a file with a field that no row of the first block has, which has no type yet."""
    try:
        yield from batches
    except pa.ArrowInvalid as error:
        if "unexpected field" not in str(error):
            raise
        where = _unknown_field(path, schema)
        rule = f"a field must occur in the first {_BLOCK_BYTES:,} bytes"
        raise DecodingRefused(f"{where} is in no earlier row, and {rule}: put a row with all fields first") from error


def _unknown_field(path: str, schema: pa.Schema) -> str:
    """Return the line and name of the first field that the schema lacks, as far as each line is one row."""
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            try:
                name = _field_outside(json.loads(line), pa.struct(schema))
            except ValueError:
                break
            if name:
                return f"line {number}: the field {json.dumps(name)}"
    return "a field"


def _field_outside(value: object, kind: pa.DataType) -> str:
    """Return the dotted name of a field that the value has and the type lacks, or an empty text."""
    if isinstance(value, list) and pa.types.is_list(kind):
        return next(filter(None, (_field_outside(item, kind.value_type) for item in value)), "")
    if isinstance(value, dict) and pa.types.is_struct(kind):
        for name, item in value.items():
            if kind.get_field_index(name) < 0:
                return str(name)
            below = _field_outside(item, kind.field(name).type)
            if below:
                return f"{name}.{below}"
    return ""


_DECODERS = {"parquet": _parquet, "ipc": _ipc, "csv": _csv, "json": _json}

_JSON_KEY = re.compile(rb'("[^"\\]*+(?:\\.[^"\\]*+)*+")\s*+:', re.DOTALL)
_STEPS = np.zeros(256, np.int8)
_STEPS[list(b"[{")] = 1
_STEPS[list(b"]}")] = -1


def _check_json(path: str, limits: RawLimits) -> None:
    """Refuse deep values before Arrow sees them: its parser recurses. Its schema follows from the first block alone."""
    depth = num_quotes = 0
    rest = b""
    with open(path, "rb") as file:
        num_keys = len(set(_JSON_KEY.findall(file.read(_BLOCK_BYTES))))
        _check_count(num_keys, "columns", limits.columns)
        file.seek(0)
        while block := file.read(_BLOCK_BYTES):
            # Of a run of backslashes the pairs go first, so a quote after one that is left belongs to the text.
            bare = (rest + block).replace(b"\\\\", b"  ")
            rest = b"\\" if bare.endswith(b"\\") else b""
            codes = np.frombuffer(bare.removesuffix(rest).replace(b'\\"', b"  "), np.uint8)
            quotes = np.flatnonzero(codes == ord('"'))
            steps = _STEPS[codes]
            brackets = np.flatnonzero(steps)
            outside = (np.searchsorted(quotes, brackets) + num_quotes) % 2 == 0
            depths = depth + np.cumsum(steps[brackets[outside]], dtype=np.int64)
            if depths.max(initial=0) > limits.depth:
                raise DecodingRefused(f"its values are nested more than {limits.depth} deep", "depth")
            num_rows = int(np.count_nonzero(depths == 0))
            if num_rows * num_keys > _MAX_BLOCK_CELLS:
                raise DecodingRefused(
                    f"{num_rows:,} of its rows in {_BLOCK_BYTES:,} bytes share {num_keys:,} columns", "columns"
                )
            depth = int(depths[-1]) if len(depths) else depth
            num_quotes += len(quotes)


def _check_schema(schema: pa.Schema, limits: RawLimits) -> None:
    """Count fields at all levels, without recursion."""
    names = schema.names
    if len(set(names)) < len(names):
        raise DecodingRefused("two of its columns have the same name")
    pending = [(field.type, 1) for field in schema]
    num_fields = 0
    while pending:
        kind, depth = pending.pop()
        num_fields += 1
        _check_count(num_fields, "columns", limits.columns)
        if depth > limits.depth:
            raise DecodingRefused(f"its fields are nested more than {limits.depth} deep", "depth")
        pending += [(kind.field(index).type, depth + 1) for index in range(kind.num_fields)]


def _check_count(count: int, limit: str, allowed: int) -> None:
    if count > allowed:
        raise DecodingRefused(f"it has {count:,} {limit}", limit)


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
        raise DecodingRefused(f"{error}; repair or remove the file") from error


# The process. Both ends speak over one socket:
#
#   parent: a line of JSON, with the file's descriptor   {"kind": …, "limits": {…}, "only_schema": …}
#   child:  a line of JSON                               {} or {"reason": …, "limit": …}
#           if {}: an Arrow IPC stream, then a line      {} or {"reason": …, "limit": …}


def request_line(kind: str, limits: RawLimits, *, only_schema: bool) -> bytes:
    """Return the line of JSON by which the parent asks for a file's batches, or for its schema alone."""
    return json.dumps({"kind": kind, "limits": asdict(limits), "only_schema": only_schema}).encode() + b"\n"


def main() -> None:
    """Answer requests on the socket whose descriptor is the last argument, until the other end closes it."""
    pa.set_cpu_count(min(_MAX_THREADS, os.cpu_count() or 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))  # it writes to its socket alone
    idle_bytes = _address_space()
    with socket.socket(fileno=int(sys.argv[-1])) as connection, connection.makefile("wb", _BLOCK_BYTES) as answers:
        while True:
            line, descriptors, _, _ = socket.recv_fds(connection, 65536, 1)
            if not line:
                return
            while not line.endswith(b"\n"):
                line += connection.recv(65536)
            request = json.loads(line)
            limits = RawLimits(**request["limits"])
            resource.setrlimit(resource.RLIMIT_AS, (idle_bytes + limits.memory_bytes, resource.RLIM_INFINITY))
            try:
                _answer(answers, descriptors[0], request["kind"], limits, only_schema=request["only_schema"])
            except (MemoryError, pa.ArrowMemoryError):
                os._exit(OUT_OF_MEMORY)
            os.close(descriptors[0])


def _answer(answers: Any, descriptor: int, kind: str, limits: RawLimits, *, only_schema: bool) -> None:
    try:
        _allow_seconds(limits)
        schema, batches = decode(descriptor, kind, limits)
        answers.write(b"{}\n")
        with pa.ipc.new_stream(pa.PythonFile(answers, "w"), schema) as stream:
            refusal = None if only_schema else _send(stream, batches, limits)
    except DecodingRefused as error:
        refusal = error
    answers.write(json.dumps({"reason": refusal.reason, "limit": refusal.limit} if refusal else {}).encode() + b"\n")
    answers.flush()


def _send(stream: Any, batches: Iterator[pa.RecordBatch], limits: RawLimits) -> DecodingRefused | None:
    try:
        for batch in batches:
            stream.write_batch(batch)
            _allow_seconds(limits)
    except DecodingRefused as error:
        return error
    return None


def _allow_seconds(limits: RawLimits) -> None:
    """Bound this process's processor time, so that it ends even without a parent. The parent counts clock seconds."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    allowed = used.ru_utime + used.ru_stime + limits.seconds * _MAX_THREADS + 1
    resource.setrlimit(resource.RLIMIT_CPU, (int(allowed), resource.RLIM_INFINITY))


def _address_space() -> int:
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[0]) * resource.getpagesize()
