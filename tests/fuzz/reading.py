"""Read hostile bytes: the outcome must be rows, or a typed error that names the file, in little time and memory."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

from lance_ops.core.errors import CorruptFile, InvalidInput, UnsafePath, UnsupportedFeature
from lance_ops.file.reader import FileReader
from lance_ops.store.memory import MemoryStore
from lance_ops.table import (
    DeletionFile,
    DeletionFileType,
    check_readable,
    decode_deletion_vector,
    decode_manifest,
    encode_manifest,
    inline_transaction,
    violations,
)
from lance_ops.table.rows.row_sequences import decode_row_ids, decode_versions
from tests.file.streaming import StreamedStore

__all__ = ["MAX_BYTES", "MAX_SECONDS", "Misread", "bounded", "read_deletions", "read_file", "read_manifest"]

MAX_SECONDS = 2.0
"""The limit of processor time for one file, in the fastest of `_ATTEMPTS` reads.

A busy machine slows some reads down. A file that is costly by itself is costly in every read.
"""
MAX_BYTES = 512 << 20
"""The limit of memory for one file, beyond what the process had before."""

T = TypeVar("T")

_NAME = "file.lance"
_ATTEMPTS = 4
_BATCHES = 12
_NUMBER_OUT_OF_RANGE = (
    "Decimal value",
    "does not represent a whole number of days",
    "is not within the acceptable range",
)
_MISSING_CHECK = ("index is out of bounds", "malloc of size", "realloc of size", "Unable to allocate")


class Misread(AssertionError):
    """Hostile bytes gave invalid rows, an untyped error, or took too much time or memory."""


def read_file(data: bytes) -> str:
    """Read a data file in several ways; return the outcomes, "rows" or names of errors, joined by "+"."""
    store = MemoryStore()
    store.put(_NAME, data)

    def scan() -> None:
        reader = _open(store)
        for batch in islice(reader.iter_batches(batch_rows=4096), _BATCHES):
            _validate(batch)
        reader.describe()
        if reader.version.value == "0.1":
            for field in reader.schema.walk():
                reader.batch_statistics(field.id)

    def whole() -> None:
        _validate(_open(store).read())

    def scattered() -> None:
        reader = _open(StreamedStore(store))
        last = reader.num_rows - 1
        offsets = [offset for offset in (last, 0, last // 2, 1, last // 3, last) if 0 <= offset <= last]
        _validate(reader.take(None, offsets))
        _validate(reader.read(None, max(last - 700, 0), last + 1))

    return _survey([scan, whole, scattered])


def read_manifest(data: bytes) -> str:
    """Read a manifest file and all sequences in it; return outcomes as `read_file` does."""

    def read() -> None:
        manifest = decode_manifest(data, _NAME)
        check_readable(manifest, _NAME)
        inline_transaction(data, _NAME)
        with suppress(UnsupportedFeature):  # names the data file
            violations(manifest)
        for fragment in manifest.fragments[:50]:
            rows = min(fragment.physical_rows, 1 << 20)
            if isinstance(fragment.row_ids, bytes):
                decode_row_ids(fragment.row_ids, rows, _NAME)
            if isinstance(fragment.created_at_versions, bytes):
                decode_versions(fragment.created_at_versions, rows, _NAME)
        if not any(node.dictionary or node.is_dictionary for node in manifest.schema.walk()):
            assert decode_manifest(encode_manifest(manifest, b""), _NAME) == manifest

    return _survey([read])


def read_deletions(data: bytes) -> str:
    """Read a deletion file as either kind; return outcomes as `read_file` does."""

    def read(kind: DeletionFileType) -> Callable[[], None]:
        def decode() -> None:
            vector = decode_deletion_vector(DeletionFile(1, 1, kind, 0), data, 0, _NAME)
            assert len(vector) == vector.get_statistics()["cardinality"]

        return decode

    return _survey([read(kind) for kind in DeletionFileType])


def _open(store: MemoryStore) -> FileReader:
    try:
        return FileReader(store, _NAME)
    except InvalidInput as error:
        if "does not hold its schema" not in str(error):
            raise
        raise UnsupportedFeature("a file without schema", _NAME) from error


def bounded(read: Callable[[], T], seconds: float = MAX_SECONDS, size_bytes: int = MAX_BYTES) -> T:
    """Call `read` and return its result. Raise `Misread` if it takes more processor time, or more memory at its peak.

    It is called again while it takes more time than allowed, up to `_ATTEMPTS` times.
    """
    taken = []
    for _ in range(_ATTEMPTS):
        Path("/proc/self/clear_refs").write_text("5")  # resets the recorded peak
        before, started = _resident("VmRSS"), time.process_time()
        result = read()
        taken.append(time.process_time() - started)
        grown = _resident("VmHWM") - before
        if grown > size_bytes:
            raise Misread(f"{grown >> 20} MiB")
        if taken[-1] <= seconds:
            return result
    raise Misread(", ".join(f"{each:.1f} s" for each in taken))


def _survey(ways: list[Callable[[], None]]) -> str:
    def read() -> set[str]:
        outcomes = set()
        for way in ways:
            try:
                way()
                outcomes.add("rows")
            except (CorruptFile, UnsupportedFeature, UnsafePath) as error:
                _check_error(error)
                outcomes.add(type(error).__name__)
        return outcomes

    return "+".join(sorted(bounded(read)))


def _validate(rows: pa.Table | pa.RecordBatch) -> None:
    """Raise `Misread` for rows that Arrow finds invalid; numbers outside their type's range are allowed."""
    try:
        rows.validate(full=True)
    except pa.ArrowInvalid as error:
        if not any(sign in str(error) for sign in _NUMBER_OUT_OF_RANGE):
            raise Misread(f"invalid rows: {error}") from error


def _check_error(error: CorruptFile | UnsupportedFeature | UnsafePath) -> None:
    if _NAME not in str(error) and not isinstance(error, UnsafePath):
        raise Misread(f"an error that names no file: {error}") from error
    if any(sign in str(error) for sign in _MISSING_CHECK):
        raise Misread(f"a check is missing: {error}") from error


def _resident(key: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key):
            return int(line.split()[1]) << 10
    raise OSError(f"/proc/self/status has no {key}")


pa.set_memory_pool(
    pa.system_memory_pool()
)  # it frees memory at once, so that one file's memory is not counted for the next
