"""Stream, for users, which files a dataset has and which its versions name; clean-up makes its own listing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import pyarrow as pa

from lance_ops.core.errors import VersionNotFound
from lance_ops.core.file_names import TRANSACTIONS_DIR
from lance_ops.snapshot.index_location import find_index_root
from lance_ops.snapshot.snapshot import Snapshot
from lance_ops.table import Fragment, Manifest
from lance_ops.table.manifest import FileLocations, ObjectLocation
from lance_ops.transactions import read_manifest

__all__ = ["ALL_FILES", "TRACKED_FILES", "Progress", "all_files", "tracked_files"]

Progress: TypeAlias = Callable[[int, int | None], object]
"""A callback that takes the number of versions read so far and the number of all versions."""

_REPEATED_TEXT = pa.dictionary(pa.int32(), pa.string())

ALL_FILES = pa.schema(
    [
        pa.field("base_uri", _REPEATED_TEXT, nullable=False),
        pa.field("path", pa.string(), nullable=False),
        pa.field("size_bytes", pa.int64(), nullable=False),
        pa.field("last_modified", pa.timestamp("us", "UTC"), nullable=False),
    ]
)

TRACKED_FILES = pa.schema(
    [
        pa.field("version", pa.int64(), nullable=False),
        pa.field("base_uri", _REPEATED_TEXT, nullable=False),
        pa.field("path", pa.string(), nullable=False),
        pa.field("type", pa.dictionary(pa.int8(), pa.string()), nullable=False),
    ]
)

_BATCH_ROWS = 8192


def all_files(snapshot: Snapshot) -> pa.RecordBatchReader:
    """Stream every file beneath the root, whoever wrote it, as rows of `ALL_FILES`."""
    return pa.RecordBatchReader.from_batches(ALL_FILES, _all_batches(snapshot))


def tracked_files(
    snapshot: Snapshot, min_version: int | None = None, progress: Progress | None = None
) -> pa.RecordBatchReader:
    """Stream the files that each retained version names, from `min_version` on, as rows of `TRACKED_FILES`.

    A file has one row for each version that names it. Blob sidecars have none: they belong to their data file.
    """
    return pa.RecordBatchReader.from_batches(TRACKED_FILES, _tracked_batches(snapshot, min_version or 0, progress))


def _all_batches(snapshot: Snapshot) -> Iterator[pa.RecordBatch]:
    rows: list[tuple[object, ...]] = []
    for info in snapshot.store.list():
        rows.append((snapshot.uri, info.path, info.size_bytes, info.modified))
        if len(rows) == _BATCH_ROWS:
            yield _batch(rows, ALL_FILES)
            rows = []
    if rows:
        yield _batch(rows, ALL_FILES)


def _tracked_batches(snapshot: Snapshot, min_version: int, progress: Progress | None) -> Iterator[pa.RecordBatch]:
    versions = [version for version in snapshot.committer.versions() if version >= min_version]
    for done, version in enumerate(versions, 1):
        try:
            manifest = read_manifest(snapshot.store, snapshot.committer, version)
        except VersionNotFound:  # a concurrent clean-up removed it
            continue
        yield _batch([(version, *file) for file in _files_of_version(snapshot, manifest)], TRACKED_FILES)
        if progress is not None:
            progress(done, len(versions))


def _files_of_version(snapshot: Snapshot, manifest: Manifest) -> Iterator[tuple[str, str, str]]:
    """Yield the base URI, path and type of each file that a version names, its manifest first."""
    root = snapshot.store.uri
    locations = FileLocations(snapshot.store, manifest.base_paths, snapshot.storage_options)
    yield root, snapshot.committer.location(manifest.version), "manifest"
    if manifest.transaction_file:
        yield root, f"{TRANSACTIONS_DIR}/{manifest.transaction_file}", "transaction file"
    for fragment in manifest.fragments:
        for kind, location in _files_of_fragment(locations, fragment):
            yield location.store.uri, location.path, kind
    for index in manifest.indices:
        store = find_index_root(locations, index) or locations.dataset_root(index.base_id, "an index")
        for path in index.paths() or [info.path for info in store.list(f"{index.directory}/")]:
            yield store.uri, path, "index file"


def _files_of_fragment(locations: FileLocations, fragment: Fragment) -> Iterator[tuple[str, ObjectLocation]]:
    for file in fragment.files:
        yield "data file", locations.data_file(file.base_id, file.path)
    for path in fragment.sequence_paths():  # the rows' ids and versions, in files of their own
        yield "data file", ObjectLocation(locations.dataset_root(None, "a sequence"), path)
    if fragment.deletion_file is not None:
        yield "deletion file", locations.deletion_file(fragment)


def _batch(rows: list[tuple[object, ...]], schema: pa.Schema) -> pa.RecordBatch:
    columns = [pa.array(values, field.type) for values, field in zip(zip(*rows, strict=True), schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
