"""Read raw files of a landing folder as Arrow batches, and find the schema that holds all their columns.

A raw file's URI is one that fsspec opens; `storage_options` here are fsspec's options.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.dataset as pads
from fsspec.core import url_to_fs

from lance_ops.core.errors import InvalidInput, SchemaMismatch

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
    """Yield a raw file's rows; raise `InvalidInput` with the file's URI if it cannot be read in its ending's format."""
    try:
        yield from _open(file, storage_options).to_batches(batch_readahead=_BATCHES_AHEAD, fragment_readahead=1)
    except (pa.ArrowException, OSError) as error:
        raise InvalidInput(f"raw file {file.uri}: {error}; repair or remove the file") from error


def unified_raw_schema(files: Sequence[RawFile], storage_options: Mapping[str, str]) -> pa.Schema:
    """Return a schema with the columns of all files; raise `SchemaMismatch` for the first file that disagrees."""
    unified: pa.Schema | None = None
    for file in files:
        try:
            schema = _open(file, storage_options).schema.remove_metadata()
        except (pa.ArrowException, OSError) as error:
            raise InvalidInput(f"raw file {file.uri}: {error}; repair or remove the file") from error
        try:
            unified = schema if unified is None else pa.unify_schemas([unified, schema], promote_options="permissive")
        except pa.ArrowException as error:
            raise SchemaMismatch(f"raw file {file.uri} disagrees with the files before it: {error}") from error
    if unified is None:
        raise InvalidInput("no raw files to take a schema from")
    return unified


def raw_format(uri: str) -> str:
    """Return the Arrow name of a raw file's format by its ending; raise `InvalidInput` for an unknown ending."""
    for ending, name in _FORMATS.items():
        if uri.endswith(ending):
            return name
    raise InvalidInput(f"raw file {uri}: its ending must be one of {', '.join(_FORMATS)}")


def _open(file: RawFile, storage_options: Mapping[str, str]) -> pads.Dataset:
    filesystem, path = url_to_fs(file.uri, **storage_options)
    return pads.dataset(path, format=raw_format(file.uri), filesystem=filesystem)
