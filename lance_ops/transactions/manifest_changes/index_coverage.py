"""Keep the coverage of index segments correct after a change of the fragments.

Queries scan a fragment that no segment covers. If a segment covers a fragment whose values it does not hold, queries
lose rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from uuid import UUID

from pyroaring import BitMap, FrozenBitMap

from lance_ops.core.schema import Schema
from lance_ops.table import FRAGMENT_REUSE_INDEX, Fragment, FragmentList, IndexMetadata
from lance_ops.transactions.manifest_changes.changed_values import FieldFiles

__all__ = ["drop_orphaned_indices", "holds_row_addresses", "keeps_entries_of_deleted_rows", "remove_changed_coverage"]

_FIRST_VERSION_WITH_ADDRESSES: Mapping[str, int] = {
    "BTreeIndexDetails": 1,
    "ZoneMapIndexDetails": 0,
    "BloomFilterIndexDetails": 0,
    "RTreeIndexDetails": 0,
}
"""Index types that hold row addresses even in a table of stable row ids, and the index version that began with it."""

_HOLDS_ROW_IDS = frozenset(
    {"BTreeIndexDetails", "BitmapIndexDetails", "LabelListIndexDetails", "NGramIndexDetails", "InvertedIndexDetails"}
    | {"VectorIndexDetails"}
)
"""Index types that hold stable row ids in such a table, in the versions before.

A type that this library builds says the same in `IndexType.row_key`, which this room cannot import: a test compares
them. If this room took addresses for ids, an index would keep entries of rows that moved, and queries would lose rows.
"""


_KEEPS_ENTRIES_OF_DELETED_ROWS = frozenset({"InvertedIndexDetails", "VectorIndexDetails"})
"""Index types in which a remap keeps the entries of deleted rows; a test compares them with `RemapOnlyType`."""


def keeps_entries_of_deleted_rows(index: IndexMetadata) -> bool:
    """Return whether a remapped segment still has entries of deleted rows, under the addresses that they had.

    Readers skip an entry whose fragment is in the segment's bitmap, but not in the table. If the bitmap lacked the
    fragment, a reader might try to take a row that does not exist.
    """
    return index.details is not None and index.details.type_name in _KEEPS_ENTRIES_OF_DELETED_ROWS


def holds_row_addresses(index: IndexMetadata) -> bool:
    """Return whether the segment's entries become invalid when rows move, in a table of stable row ids.

    True also for an unknown index type: queries then scan its rows, and lose none.
    """
    kind = index.details.type_name if index.details else ""
    first_version = _FIRST_VERSION_WITH_ADDRESSES.get(kind)
    if first_version is not None and (index.index_version or 0) >= first_version:
        return True
    return kind not in _HOLDS_ROW_IDS


def remove_changed_coverage(
    indices: Iterable[IndexMetadata], before: Mapping[int, Fragment], after: Iterable[Fragment], schema: Schema
) -> tuple[IndexMetadata, ...]:
    """Remove from each segment the fragments in which values of its fields are in other files than before.

    `before` has each of the fragments `after`, by id, as it was before the change.
    """
    indices = tuple(indices)
    indexed = {field_id for index in indices for field_id in index.fields}
    if not indexed:
        return indices
    files = FieldFiles(schema, indexed)
    changed = {field_id: BitMap() for field_id in indexed}
    for fragment in after:
        if fragment.files == before[fragment.id].files:
            continue
        old, new = files.of(before[fragment.id]), files.of(fragment)
        for field_id in indexed:
            if old[field_id] != new[field_id]:
                changed[field_id].add(fragment.id)
    return tuple(_without(index, [changed[field_id] for field_id in index.fields]) for index in indices)


def drop_orphaned_indices(
    indices: Iterable[IndexMetadata], schema: Schema, fragments: FragmentList
) -> tuple[IndexMetadata, ...]:
    """Drop indices of fields that do not exist, and segments that cover no fragment.

    If no segment of an index covers a fragment, the oldest one stays: the index is still declared, and the next
    maintenance fills it again. A segment whose metadata does not say what it covers stays.
    """
    kept = [index for index in indices if index.is_system or all(map(schema.by_id, index.fields))]
    live = BitMap(fragments.ids if kept else ())
    segments: dict[str, list[IndexMetadata]] = {}
    for index in kept:
        segments.setdefault(index.name, []).append(index)
    doomed: set[UUID] = set()
    for name, siblings in segments.items():
        measured = [index for index in siblings if index.fragment_bitmap is not None]
        if name == FRAGMENT_REUSE_INDEX or len(measured) < 2:
            continue
        empty = [index for index in measured if not index.covers(live)]
        spared = min(empty, key=lambda index: index.dataset_version) if len(empty) == len(measured) else None
        doomed.update(index.uuid for index in empty if index is not spared)
    return tuple(index for index in kept if index.uuid not in doomed)


def _without(index: IndexMetadata, fragments: Iterable[BitMap]) -> IndexMetadata:
    covered = index.fragment_bitmap
    if covered is None:
        return index
    for removed in fragments:
        covered = covered - removed
    return replace(index, fragment_bitmap=FrozenBitMap(covered))
