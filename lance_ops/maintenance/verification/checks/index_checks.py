"""Check an index segment by itself: its metadata, its files, and the order of its entries.

A segment's entries are compared with the rows of the table in `index_entry_checks`. An index of a type that this
library does not read is checked as far as its files are data files: their pages must decode.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lance_ops.core.errors import UnsupportedFeature
from lance_ops.file import FileReader
from lance_ops.indices import index_type_of, load_index
from lance_ops.maintenance.verification.checks.checksum_checks import agrees_with_checksums
from lance_ops.maintenance.verification.findings import CheckedFile, DamageKind, FindingCollector
from lance_ops.reading import awaits_remap, remap_addresses, row_key_of
from lance_ops.snapshot import Snapshot
from lance_ops.store import Store
from lance_ops.table import FRAGMENT_REUSE_INDEX, IndexMetadata
from lance_ops.table.manifest import ObjectLocation

__all__ = ["check_index", "has_comparable_entries"]

_DATA_FILE_SUFFIX = ".lance"
_BATCH_ROWS = 1 << 16


def check_index(snapshot: Snapshot, index: IndexMetadata, found: FindingCollector, *, decode: bool) -> None:
    """Record every damage of a segment's files; with `decode`, read all of them."""
    found = found.of_index(index)
    with found.errors_as(DamageKind.INDEX_METADATA, snapshot.manifest_uri):
        unknown = [field_id for field_id in index.fields if snapshot.schema.by_id(field_id) is None]
        if unknown and not index.is_system:
            detail = f"it is on fields {unknown}, which the schema lacks"
            found.damaged(DamageKind.INDEX_METADATA, detail, snapshot.manifest_uri)
        root = snapshot.file_locations.dataset_root(index.base_id, "an index")
        files = list(_files(root, index, found))
        damaged = [file for file in files if decode and not agrees_with_checksums(file, found)]
        if index.name == FRAGMENT_REUSE_INDEX:
            remap_addresses(snapshot, np.empty(0, np.uint64))
        if index.is_system:
            return
        if not index.files and not files:
            detail = "the segment has no file"
            found.damaged(DamageKind.MISSING_FILE, detail, root.uri_of(index.directory))
        elif not damaged and len(files) >= len(index.files):
            _check_content(snapshot, index, root, files, found, decode=decode)


def has_comparable_entries(snapshot: Snapshot, index: IndexMetadata) -> bool:
    """Return whether the segment's entries can be read here and compared with the rows of the fragments it covers."""
    if index.is_system or index.fragment_bitmap is None or len(index.fields) != 1 or awaits_remap(snapshot, index):
        return False
    try:
        row_key_of(snapshot, index)
    except UnsupportedFeature:
        return False
    return snapshot.schema.by_id(index.fields[0]) is not None


def _files(root: Store, index: IndexMetadata, found: FindingCollector) -> Iterator[ObjectLocation]:
    """Yield the segment's files that are there with their recorded size; if none is recorded, those in its folder."""
    for file in index.files:
        location = ObjectLocation(root, f"{index.directory}/{file.path}")
        if found.is_there(location, file.size_bytes):
            yield location
    for info in root.list(f"{index.directory}/") if not index.files else ():
        found.files.append(CheckedFile(root.uri_of(info.path), info.size_bytes))
        yield ObjectLocation(root, info.path)


def _check_content(
    snapshot: Snapshot,
    index: IndexMetadata,
    root: Store,
    files: list[ObjectLocation],
    found: FindingCollector,
    *,
    decode: bool,
) -> None:
    with found.errors_as(DamageKind.INDEX_FILE, root.uri_of(index.directory)):
        try:
            kind = index_type_of(index)
        except UnsupportedFeature as error:
            found.unverified(DamageKind.INDEX_ENTRIES, f"{error}: its entries are not compared with the rows")
            for location in files if decode else ():
                _decode_file(location, found)
            return
        loaded = load_index(root, index)
        if not has_comparable_entries(snapshot, index):
            reason = "it awaits a remap" if awaits_remap(snapshot, index) else "it does not record what it covers"
            found.unverified(DamageKind.INDEX_ENTRIES, f"{reason}, so its entries are not compared with the rows")
        for _ in loaded.entries() if decode and kind.names_rows else ():
            pass


def _decode_file(location: ObjectLocation, found: FindingCollector) -> None:
    if not location.path.endswith(_DATA_FILE_SUFFIX):
        return
    with found.errors_as(DamageKind.INDEX_FILE, location.uri):
        for _ in FileReader(location.store, location.path).iter_batches(batch_rows=_BATCH_ROWS):
            pass
