"""Read raw files of a landing folder as Arrow batches, and find the schema that holds all their columns.

A raw file's URI names a local file, or a file in a file system of fsspec; `storage_options` here are fsspec's options.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.dataset as pads

from lance_ops.core.errors import InvalidInput, RawFileRefused, SchemaMismatch
from lance_ops.core.redaction import public_uri
from lance_ops.maintenance.ingest.raw_locations import ListedFile, local_path, open_local, remote_file_system
from lance_ops.maintenance.ingest.raw_names import printable

__all__ = ["IngestBatch", "RawFile", "raw_format", "read_raw_batches", "unified_raw_schema"]

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

_BATCHES_AHEAD = 2  # Arrow's default of 16 takes too much memory with many tasks


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


def read_raw_batches(file: RawFile, storage_options: Mapping[str, str]) -> Iterator[pa.RecordBatch]:
    """Yield a raw file's rows; raise `RawFileRefused` if it cannot be read in its ending's format."""
    with _refusals(file), _open(file, storage_options) as opened:
        yield from opened.to_batches(batch_readahead=_BATCHES_AHEAD, fragment_readahead=1)


def unified_raw_schema(files: Sequence[RawFile], storage_options: Mapping[str, str]) -> pa.Schema:
    """Return a schema with the columns of all files; raise `SchemaMismatch` for the first file that disagrees."""
    unified: pa.Schema | None = None
    for file in files:
        with _refusals(file), _open(file, storage_options) as opened:
            schema = opened.schema.remove_metadata()
        try:
            unified = schema if unified is None else pa.unify_schemas([unified, schema], promote_options="permissive")
        except pa.ArrowException as error:
            raise SchemaMismatch(
                f"raw file {printable(file.uri)} disagrees with the files before it: {error}"
            ) from error
    if unified is None:
        raise InvalidInput("no raw files to take a schema from")
    return unified


def raw_format(uri: str) -> str:
    """Return the Arrow name of a raw file's format by its ending; raise `RawFileRefused` for an unknown ending."""
    for ending, name in _FORMATS.items():
        if uri.endswith(ending):
            return name
    raise RawFileRefused(printable(uri), f"its ending must be one of {', '.join(_FORMATS)}")


@contextmanager
def _refusals(file: RawFile) -> Iterator[None]:
    """Name the file in the errors of Arrow and of the system."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise RawFileRefused(printable(file.uri), f"{error}; repair or remove the file") from error


@contextmanager
def _open(file: RawFile, storage_options: Mapping[str, str]) -> Iterator[pads.Dataset]:
    kind = raw_format(file.uri)
    path = local_path(file.uri)
    if path is None:
        filesystem, path = remote_file_system(file.uri, storage_options)
        yield pads.dataset(path, format=kind, filesystem=filesystem)
        return
    descriptor = open_local(path, file.listed)
    try:
        yield pads.dataset(f"/dev/fd/{descriptor}", format=kind)
    finally:
        os.close(descriptor)
