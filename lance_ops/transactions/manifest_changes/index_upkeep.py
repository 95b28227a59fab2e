"""Keep index metadata true to the fragments: what no segment covers is scanned, what one wrongly covers is lost."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from uuid import UUID

from pyroaring import BitMap, FrozenBitMap

from lance_ops.core.schema import Schema
from lance_ops.table import FRAGMENT_REUSE_INDEX, FragmentList, IndexMetadata

__all__ = ["drop_orphans", "holds_row_addresses", "uncover"]

_ADDRESSES_FROM_VERSION: Mapping[str, int] = {
    "BTreeIndexDetails": 1,
    "ZoneMapIndexDetails": 0,
    "BloomFilterIndexDetails": 0,
    "RTreeIndexDetails": 0,
}
"""Kinds of index that hold row addresses even in a table of stable row ids, from which index version on."""

_HOLDS_ROW_IDS = frozenset(
    {"BTreeIndexDetails", "BitmapIndexDetails", "LabelListIndexDetails", "NGramIndexDetails", "InvertedIndexDetails"}
    | {"VectorIndexDetails"}
)


def holds_row_addresses(index: IndexMetadata) -> bool:
    """Return whether the segment's entries are void once rows move, in a table of stable row ids.

    A kind that is not known counts as such: its rows are then scanned, never lost.
    """
    kind = index.details.type_name if index.details else ""
    since = _ADDRESSES_FROM_VERSION.get(kind)
    if since is not None and (index.index_version or 0) >= since:
        return True
    return kind not in _HOLDS_ROW_IDS


def uncover(
    indices: Iterable[IndexMetadata], fragment_ids: Collection[int], fields: Collection[int]
) -> tuple[IndexMetadata, ...]:
    """Take fragments out of the segments that are on one of the fields, whose values changed there."""
    changed = frozenset(fields)
    gone = BitMap(fragment_ids)
    return tuple(
        replace(index, fragment_bitmap=FrozenBitMap(index.fragment_bitmap - gone))
        if index.fragment_bitmap is not None and changed.intersection(index.fields)
        else index
        for index in indices
    )


def drop_orphans(
    indices: Iterable[IndexMetadata], schema: Schema, fragments: FragmentList
) -> tuple[IndexMetadata, ...]:
    """Drop indices of fields that are gone, and segments that cover nothing any more while another of theirs does.

    The last segment of an index stays even when it covers nothing: the index is still declared, and is filled again by
    the next maintenance. Of several empty ones the oldest stays. A segment that does not say what it covers stays.
    """
    kept = [index for index in indices if index.is_system or all(map(schema.by_id, index.fields))]
    live = BitMap(fragments.ids if kept else ())
    segments: dict[str, list[IndexMetadata]] = {}
    for index in kept:
        segments.setdefault(index.name, []).append(index)
    doomed: set[UUID] = set()
    for name, of_one in segments.items():
        measured = [index for index in of_one if index.fragment_bitmap is not None]
        if name == FRAGMENT_REUSE_INDEX or len(measured) < 2:
            continue
        empty = [index for index in measured if not index.covers(live)]
        spared = min(empty, key=lambda index: index.dataset_version) if len(empty) == len(measured) else None
        doomed.update(index.uuid for index in empty if index is not spared)
    return tuple(index for index in kept if index.uuid not in doomed)
