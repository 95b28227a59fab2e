"""Build scalar indices, extend them to rows that they do not cover, and drop them.

`create_scalar_index` trains on all live rows and replaces an index of that name; `optimize_indices` merges each
index's segments with the rows that none covers. Each writes one new segment and commits one `CreateIndex`; after a
conflict with another writer it is planned again.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Sequence
from itertools import groupby

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap, FrozenBitMap

from lance_ops.core.errors import IndexNotFound, InvalidInput, UnsupportedFeature
from lance_ops.core.file_names import INDICES_DIR, check_index_name
from lance_ops.core.schema import Field, Schema
from lance_ops.indices import (
    INDEX_ROW,
    INDEX_VALUE,
    IndexConfig,
    IndexQuery,
    IndexType,
    RowKey,
    index_type_for,
    index_type_of,
)
from lance_ops.maintenance.indexing.segment_commit import commit_segment
from lance_ops.reading import ScanRequest, awaits_remap, open_index, row_key_of, scan_whole
from lance_ops.snapshot import FREE_SORTED_BYTES, FREE_SORTED_ROWS, Snapshot, check_rows_are_stored, limit_held_bytes
from lance_ops.table import IndexFile, IndexMetadata
from lance_ops.transactions import CreateIndex
from lance_ops.writing import commit_operation, retry_conflicts

__all__ = ["create_scalar_index", "drop_index", "indexed_values", "optimize_indices"]

_CONFLICT_RETRIES = 10


def create_scalar_index(
    snapshot: Snapshot, column: str, index_type: str | IndexConfig, name: str | None = None, *, replace: bool = True
) -> Snapshot:
    """Train an index on a column over all fragments and commit it; the default name is `<column>_idx`.

    Raises `InvalidInput` for an unknown type or column, or a name in use with `replace` false; `UnsupportedFeature`
    for a column that such an index cannot hold.
    """
    kind = index_type_for(index_type)
    kind.check(snapshot.schema.field(column))
    index_name = check_index_name(f"{column}_idx" if name is None else name)

    def attempt(current: Snapshot) -> Snapshot:
        same_name = tuple(index for index in current.manifest.indices if index.name == index_name)
        if same_name and not replace:
            raise InvalidInput(f"{current.uri} has an index {index_name!r} already: pass replace=True or another name")
        field = current.schema.field(column)
        new = _train(current, kind, field, index_name)
        return commit_segment(current, new, same_name)

    return retry_conflicts(snapshot, attempt, _CONFLICT_RETRIES)


def optimize_indices(snapshot: Snapshot, index_names: Sequence[str] | None = None) -> Snapshot:
    """Cover every fragment by every scalar index (or the named ones), each as one segment.

    Indices of other types stay as they are; if one is named, `UnsupportedFeature` is raised. Raises `IndexNotFound`,
    which names the existing indices.
    """
    names = _names(snapshot) if index_names is None else list(index_names)
    for name in names:
        if name not in _names(snapshot):
            raise _not_found(snapshot, name)

        def attempt(current: Snapshot, name: str = name) -> Snapshot:
            return _optimize(current, name, skip_unsupported=index_names is None)

        snapshot = retry_conflicts(snapshot, attempt, _CONFLICT_RETRIES)
    return snapshot


def drop_index(snapshot: Snapshot, name: str) -> Snapshot:
    """Remove an index; clean-up removes its files with the versions that name them."""

    def attempt(current: Snapshot) -> Snapshot:
        segments = tuple(index for index in current.manifest.indices if index.name == name)
        if not segments:
            raise _not_found(current, name)
        return commit_operation(current, CreateIndex((), segments))

    return retry_conflicts(snapshot, attempt, _CONFLICT_RETRIES)


def indexed_values(column: pa.ChunkedArray, schema: Schema, field: Field) -> pa.ChunkedArray:
    """Return a field's values out of the structs around it; a value is null if one of the structs is."""
    node = schema.fields[0]
    while node.id != field.id:
        node = node.children[0]
        column = pa.chunked_array([pc.struct_field(chunk, node.name) for chunk in column.chunks], node.arrow_type)
    return column


def _optimize(snapshot: Snapshot, name: str, *, skip_unsupported: bool) -> Snapshot:
    segments = tuple(index for index in snapshot.manifest.indices if index.name == name)
    if not segments:  # another writer removed it after the names were read
        if skip_unsupported:
            return snapshot
        raise _not_found(snapshot, name)
    covered = BitMap()
    for segment in segments:
        covered |= segment.covers(snapshot.fragments_by_id)
    missing = [fragment_id for fragment_id in snapshot.fragments_by_id if fragment_id not in covered]
    deferred = any(awaits_remap(snapshot, segment) for segment in segments)
    try:
        kind = index_type_of(segments[0])
        field = _indexed_field(snapshot, segments[0])
        lost = any(snapshot.find_index_root(segment) is None for segment in segments)
        if not (missing or deferred or lost) and len(segments) == 1:
            return snapshot
        opened = [] if lost else [open_index(snapshot, segment) for segment in segments]
    except UnsupportedFeature:
        if skip_unsupported:
            return snapshot
        raise
    if deferred or lost or not _can_merge(snapshot, segments):
        return commit_segment(snapshot, _train(snapshot, kind, field, name), segments)
    first, *others = opened
    directory, index_id = _new_directory()
    files = first.merge(
        others,
        _rows(snapshot, field, tuple(missing)),
        snapshot.store.child(directory),
        live_fragments=set(snapshot.fragments_by_id),
    )
    new = _metadata(snapshot, kind, field, name, index_id, files)
    return commit_segment(snapshot, new, segments)


def _can_merge(snapshot: Snapshot, segments: tuple[IndexMetadata, ...]) -> bool:
    """Return whether stale entries can be told apart when the segments are merged.

    They cannot if a segment does not record its coverage, or if segments name rows by id: the id of an updated row is
    in two segments, under the old value and the new one. An address is in one segment only.
    """
    return all(
        segment.fragment_bitmap is not None and row_key_of(snapshot, segment) is RowKey.ADDRESS for segment in segments
    )


def _train(snapshot: Snapshot, kind: IndexType[IndexQuery], field: Field, name: str) -> IndexMetadata:
    directory, index_id = _new_directory()
    stable = snapshot.manifest.uses_stable_row_ids
    row_key = kind.row_key(kind.index_version(stable_row_ids=stable), stable_row_ids=stable)
    files = kind.train(_rows(snapshot, field, None, row_key), field, snapshot.store.child(directory))
    return _metadata(snapshot, kind, field, name, index_id, files)


def _metadata(
    snapshot: Snapshot,
    kind: IndexType[IndexQuery],
    field: Field,
    name: str,
    index_id: uuid.UUID,
    files: tuple[IndexFile, ...],
) -> IndexMetadata:
    return IndexMetadata(
        uuid=index_id,
        name=name,
        fields=(field.id,),
        dataset_version=snapshot.version,
        fragment_bitmap=FrozenBitMap(snapshot.fragments_by_id),
        details=kind.details,
        index_version=kind.index_version(stable_row_ids=snapshot.manifest.uses_stable_row_ids),
        created_at_ms=time.time_ns() // 1_000_000,
        files=files,
    )


def _rows(
    snapshot: Snapshot, field: Field, fragment_ids: tuple[int, ...] | None, row_key: RowKey = RowKey.ADDRESS
) -> Iterator[pa.RecordBatch]:
    """Yield the column's live values with the rows' addresses or ids.

    Raises `ReadTooLarge` if the files are too small for so many rows.
    """
    wanted_ids = snapshot.fragments_by_id if fragment_ids is None else fragment_ids
    fragments = [snapshot.fragments_by_id[each] for each in wanted_ids]
    check_rows_are_stored(snapshot, sum(each.physical_rows for each in fragments), fragments, FREE_SORTED_ROWS)
    schema = snapshot.schema.project([snapshot.schema.path_of(field.id)])
    by_id = row_key is RowKey.STABLE_ID
    request = ScanRequest(schema, with_row_id=by_id, with_row_address=not by_id, fragment_ids=fragment_ids)
    wanted = pa.schema([pa.field(INDEX_VALUE, field.arrow_type), pa.field(INDEX_ROW, pa.uint64())])
    found = (table for _, table in scan_whole(snapshot.verifying(), request))
    for table in limit_held_bytes(snapshot, found, fragments, FREE_SORTED_BYTES):
        values = indexed_values(table.column(0), schema, field)
        yield from pa.Table.from_arrays([values, table.columns[-1]], schema=wanted).to_batches()


def _indexed_field(snapshot: Snapshot, index: IndexMetadata) -> Field:
    field = snapshot.schema.by_id(index.fields[0]) if len(index.fields) == 1 else None
    if field is None:
        raise UnsupportedFeature(f"an index on fields {list(index.fields)}", f"index {index.name!r}")
    return field


def _new_directory() -> tuple[str, uuid.UUID]:
    index_id = uuid.uuid4()
    return f"{INDICES_DIR}/{index_id}", index_id


def _names(snapshot: Snapshot) -> list[str]:
    named = sorted((index for index in snapshot.manifest.indices if not index.is_system), key=lambda index: index.name)
    return [name for name, _ in groupby(named, key=lambda index: index.name)]


def _not_found(snapshot: Snapshot, name: str) -> IndexNotFound:
    return IndexNotFound(f"{snapshot.uri} has no index {name!r}: it has {', '.join(_names(snapshot)) or 'none'}")
