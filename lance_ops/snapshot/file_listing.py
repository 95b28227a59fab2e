"""Which files a dataset has, and which of them its versions name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import pyarrow as pa

from lance_ops.core.errors import VersionNotFound
from lance_ops.core.file_names import TRANSACTIONS_DIR
from lance_ops.snapshot.snapshot import Snapshot
from lance_ops.table import Fragment, Manifest
from lance_ops.table.manifest import FileLocations, ObjectLocation
from lance_ops.transactions import read_manifest

__all__ = ["ALL_FILES", "TRACKED_FILES", "Progress", "all_files", "tracked_files"]

Progress: TypeAlias = Callable[[int, int | None], object]
"""Called with how many versions were read, and of how many."""

_PLACE = pa.dictionary(pa.int32(), pa.string())

ALL_FILES = pa.schema(
    [
        pa.field("base_uri", _PLACE, nullable=False),
        pa.field("path", pa.string(), nullable=False),
        pa.field("size_bytes", pa.int64(), nullable=False),
        pa.field("last_modified", pa.timestamp("us", "UTC"), nullable=False),
    ]
)

TRACKED_FILES = pa.schema(
    [
        pa.field("version", pa.int64(), nullable=False),
        pa.field("base_uri", _PLACE, nullable=False),
        pa.field("path", pa.string(), nullable=False),
        pa.field("type", pa.dictionary(pa.int8(), pa.string()), nullable=False),
    ]
)

_ROWS_AT_ONCE = 8192


def all_files(snapshot: Snapshot) -> pa.RecordBatchReader:
    """Stream what is beneath the root, whoever put it there, as rows of `ALL_FILES`."""
    return pa.RecordBatchReader.from_batches(ALL_FILES, _listed(snapshot))


def tracked_files(
    snapshot: Snapshot, min_version: int | None = None, progress: Progress | None = None
) -> pa.RecordBatchReader:
    """Stream the files that each retained version from `min_version` on names, as rows of `TRACKED_FILES`.

    A file comes once for each version that names it. Blobs' sidecars are not named: they go with their data file.
    """
    return pa.RecordBatchReader.from_batches(TRACKED_FILES, _tracked(snapshot, min_version or 0, progress))


def _listed(snapshot: Snapshot) -> Iterator[pa.RecordBatch]:
    rows: list[tuple[object, ...]] = []
    for info in snapshot.store.list():
        rows.append((snapshot.uri, info.path, info.size_bytes, info.modified))
        if len(rows) == _ROWS_AT_ONCE:
            yield _batch(rows, ALL_FILES)
            rows = []
    if rows:
        yield _batch(rows, ALL_FILES)


def _tracked(snapshot: Snapshot, min_version: int, progress: Progress | None) -> Iterator[pa.RecordBatch]:
    versions = [version for version in snapshot.committer.versions() if version >= min_version]
    for done, version in enumerate(versions, 1):
        try:
            manifest = read_manifest(snapshot.store, snapshot.committer, version)
        except VersionNotFound:  # cleaned up meanwhile
            continue
        yield _batch([(version, *named) for named in _named(snapshot, manifest)], TRACKED_FILES)
        if progress is not None:
            progress(done, len(versions))


def _named(snapshot: Snapshot, manifest: Manifest) -> Iterator[tuple[str, str, str]]:
    """Yield base URI, path and type of each file that a version names, its manifest first."""
    root = snapshot.store.uri
    locations = FileLocations(snapshot.store, manifest.base_paths, snapshot.storage_options)
    yield root, snapshot.committer.location(manifest.version), "manifest"
    if manifest.transaction_file:
        yield root, f"{TRANSACTIONS_DIR}/{manifest.transaction_file}", "transaction file"
    for fragment in manifest.fragments:
        for kind, place in _of_fragment(locations, fragment):
            yield place.store.uri, place.path, kind
    for index in manifest.indices:
        store = locations.dataset_root(index.base_id, "an index")
        for path in index.paths() or [info.path for info in store.list(f"{index.directory}/")]:
            yield store.uri, path, "index file"


def _of_fragment(locations: FileLocations, fragment: Fragment) -> Iterator[tuple[str, ObjectLocation]]:
    for file in fragment.files:
        yield "data file", locations.data_file(file.base_id, file.path)
    for path in fragment.sequence_paths():  # rows' ids and versions, beside the rows
        yield "data file", ObjectLocation(locations.dataset_root(None, "a sequence"), path)
    if fragment.deletion_file is not None:
        yield "deletion file", locations.deletion_file(fragment)


def _batch(rows: list[tuple[object, ...]], schema: pa.Schema) -> pa.RecordBatch:
    columns = [pa.array(values, field.type) for values, field in zip(zip(*rows, strict=True), schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
