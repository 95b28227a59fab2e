"""Read raw files of a landing folder as Arrow batches, and find the schema that holds all their columns.

A raw file's URI names a local file, or a file in a file system of fsspec; `storage_options` here are fsspec's options.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import IO, Self

import pyarrow as pa

from lance_ops.core.errors import InvalidInput, LanceOpsError, RawFileRefused, RawFileTooLarge, SchemaMismatch
from lance_ops.core.redaction import public_uri
from lance_ops.maintenance.ingest.raw_decoding import DecodingRefused, RawLimits, decode
from lance_ops.maintenance.ingest.raw_locations import (
    ListedFile,
    failures_of_store,
    local_path,
    open_local,
    remote_file_system,
)
from lance_ops.maintenance.ingest.raw_names import shown_uri
from lance_ops.maintenance.ingest.raw_process import DecodingProcess

__all__ = ["IngestBatch", "RawFile", "RawReader", "RawReading", "raw_format", "unified_raw_schema"]

_FORMATS: dict[str, str] = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "ipc",
    ".feather": "ipc",
    ".ipc": "ipc",
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
}

_COPIED_BYTES = 4 * 1024**2


@dataclass(frozen=True)
class RawFile:
    """A file in a landing folder. `token` changes with its content: an ETag, or size and modification time."""

    uri: str
    size_bytes: int
    token: str
    listed: ListedFile | None = field(default=None, compare=False, repr=False)
    """How a landing folder on a local disk listed the file; the reader then refuses links and replaced files."""

    def __repr__(self) -> str:
        return f"RawFile({public_uri(self.uri)!r}, {self.size_bytes}, {self.token!r})"


@dataclass(frozen=True)
class IngestBatch:
    """Raw files that become rows together, exactly once, under a key."""

    key: str
    files: tuple[RawFile, ...]

    def __post_init__(self) -> None:
        if not self.key:
            raise InvalidInput("an ingestion batch needs a key")
        if not self.files:
            raise InvalidInput(f"ingestion batch {self.key!r} has no files")

    @property
    def token(self) -> str:
        """A digest of the files' names and tokens."""
        digest = hashlib.sha256()
        for file in sorted(self.files, key=lambda file: file.uri):
            name = file.uri.rsplit("/", 1)[-1]
            digest.update(f"{name}\0{file.token}\0".encode())
        return digest.hexdigest()[:32]


@dataclass(frozen=True)
class RawReading:
    """How raw files are read: within which limits, and whether in a process of its own that a file may end."""

    limits: RawLimits = field(default_factory=RawLimits)
    isolated: bool = True


class RawReader:
    """Reads raw files, one after the other, in one thread. Its process, if it has one, starts with the first file.

    Every method raises `RawFileRefused` for a file that cannot be read in its ending's format, and `RawFileTooLarge`
    for one beyond a limit.
    """

    def __init__(self, storage_options: Mapping[str, str], reading: RawReading | None = None) -> None:
        reading = reading or RawReading()
        self._storage_options = storage_options
        self._limits = reading.limits
        self._process = DecodingProcess() if reading.isolated else None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.close()

    def batches(self, file: RawFile) -> Iterator[pa.RecordBatch]:
        """Yield a file's rows."""
        kind = raw_format(file.uri)
        with self._refusals(file), self._opened(file) as descriptor:
            if self._process is not None:
                yield from self._process.batches(descriptor, kind, self._limits)
            else:
                yield from decode(descriptor, kind, self._limits)[1]

    def schema(self, file: RawFile) -> pa.Schema:
        """Return the schema of a file's rows, without metadata."""
        kind = raw_format(file.uri)
        with self._refusals(file), self._opened(file) as descriptor:
            if self._process is not None:
                schema = self._process.schema(descriptor, kind, self._limits)
            else:
                schema = decode(descriptor, kind, self._limits)[0]
        return schema.remove_metadata()

    @contextmanager
    def _refusals(self, file: RawFile) -> Iterator[None]:
        """Name the file in refusals and in errors of the system."""
        name = shown_uri(file.uri)
        try:
            yield
        except DecodingRefused as refusal:
            if refusal.limit is None:
                raise RawFileRefused(name, refusal.reason) from refusal
            allowed = getattr(self._limits, refusal.limit)
            raise RawFileTooLarge(name, refusal.reason, refusal.limit, allowed) from refusal
        except LanceOpsError:
            raise
        except OSError as error:
            raise RawFileRefused(name, f"{error}; repair or remove the file") from error

    @contextmanager
    def _opened(self, file: RawFile) -> Iterator[int]:
        """Open a file for reading, by descriptor. One of a store is first copied to a temporary file without a name."""
        path = local_path(file.uri)
        if path is None:
            with tempfile.TemporaryFile() as copy:
                self._copy(file, copy)
                yield copy.fileno()
            return
        descriptor = open_local(path, file.listed)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _copy(self, file: RawFile, copy: IO[bytes]) -> None:
        with failures_of_store(file.uri, self._storage_options):
            filesystem, path = remote_file_system(file.uri, self._storage_options)
            source = filesystem.open(path, "rb")
        with source:
            size_bytes = 0
            while True:
                with failures_of_store(file.uri, self._storage_options):
                    block = source.read(_COPIED_BYTES)
                size_bytes += len(block)
                if size_bytes > self._limits.file_bytes:
                    raise DecodingRefused(f"it has more than {self._limits.file_bytes:,} bytes", "file_bytes")
                if not block:
                    break
                copy.write(block)
        copy.flush()


def unified_raw_schema(
    files: Sequence[RawFile], storage_options: Mapping[str, str], reading: RawReading | None = None
) -> pa.Schema:
    """Return a schema with the columns of all files; raise `SchemaMismatch` for the first file that disagrees."""
    unified: pa.Schema | None = None
    with RawReader(storage_options, reading) as reader:
        for file in files:
            schema = reader.schema(file)
            try:
                unified = (
                    schema if unified is None else pa.unify_schemas([unified, schema], promote_options="permissive")
                )
            except pa.ArrowException as error:
                raise SchemaMismatch(
                    f"raw file {shown_uri(file.uri)} disagrees with the files before it: {error}"
                ) from error
    if unified is None:
        raise InvalidInput("no raw files to take a schema from")
    return unified


def raw_format(uri: str) -> str:
    """Return the Arrow name of a raw file's format by its ending; raise `RawFileRefused` for an unknown ending."""
    for ending, name in _FORMATS.items():
        if uri.endswith(ending):
            return name
    raise RawFileRefused(shown_uri(uri), f"its ending must be one of {', '.join(_FORMATS)}")
