"""Ask indices for the rows a predicate names.

A predicate is a conjunction; each conjunct that an index of its one column serves is answered by that index, on the
fragments its segments cover. The answers are intersected. What no index serves remains to be tested on the rows found;
fragments that an index in use does not cover are scanned with the whole predicate.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from pyroaring import BitMap

from lance_ops.core.addresses import TOMBSTONE_ROW
from lance_ops.core.errors import UnsupportedFeature
from lance_ops.core.predicate import Predicate, split_servable
from lance_ops.indices import IndexQuery, IndexType, LoadedIndex, RowAddressSet, RowKey, index_type_of, load_index
from lance_ops.snapshot import Snapshot
from lance_ops.table import FRAGMENT_REUSE_INDEX, IndexMetadata

__all__ = ["IndexLookup", "awaits_remap", "look_up", "open_index", "row_key_of", "serving_index"]


@dataclass(frozen=True)
class IndexLookup:
    """Rows that indices found, deleted ones included, for the fragments in `covered`.

    `remainder` is what must still be tested on them.
    """

    rows: RowAddressSet
    covered: BitMap
    remainder: Predicate | None
    index_names: tuple[str, ...]
    index_types: tuple[str, ...]
    conjuncts: tuple[Predicate, ...]

    def describe(self) -> str:
        """Return each query with the index that answered it."""
        queries = (conjunct.to_sql() for conjunct in self.conjuncts)
        parts = zip(queries, self.index_names, self.index_types, strict=True)
        return " AND ".join(f"[{query}]@{name}({kind})" for query, name, kind in parts)


@dataclass(frozen=True)
class _Answer:
    """A conjunct and the segments of the index that will answer it."""

    conjunct: Predicate
    segments: tuple[IndexMetadata, ...]
    index_type: IndexType[IndexQuery]
    query: IndexQuery


def look_up(snapshot: Snapshot, predicate: Predicate) -> IndexLookup | None:
    """Answer what indices can answer; None if they can answer nothing."""
    indices = _usable_indices(snapshot)
    if not indices:
        return None

    def servable(conjunct: Predicate) -> _Answer | None:
        for path, segments, index_type in indices:
            if conjunct.columns() == (path,):
                query = index_type.serves(conjunct)
                if query is not None:
                    return _Answer(conjunct, segments, index_type, query)
        return None

    served, remainder = split_servable(predicate, servable)
    if not served:
        return None
    found: RowAddressSet | None = None
    covered = BitMap(snapshot.fragments_by_id)
    for answer in served:
        rows, fragments = _search(snapshot, answer)
        found = rows if found is None else found & rows
        covered &= fragments
    assert found is not None
    return IndexLookup(
        rows=found,
        covered=covered,
        remainder=remainder if found.exact else predicate,
        index_names=tuple(answer.segments[0].name for answer in served),
        index_types=tuple(answer.index_type.name for answer in served),
        conjuncts=tuple(answer.conjunct for answer in served),
    )


def row_key_of(snapshot: Snapshot, segment: IndexMetadata) -> RowKey:
    """Return what a segment names rows by.

    Raises `UnsupportedFeature` for one of a kind or version that is not read here, or that is in no dataset's root.
    """
    kind, version = index_type_of(segment), segment.index_version or 0
    if version > kind.newest_index_version:
        raise UnsupportedFeature("an index of this version", f"index {segment.name!r}")
    snapshot.file_locations.dataset_root(segment.base_id, "an index")
    return kind.row_key(version, stable_row_ids=snapshot.manifest.uses_stable_row_ids)


def awaits_remap(snapshot: Snapshot, segment: IndexMetadata) -> bool:
    """Return whether a segment may name rows by where they were before a compaction that deferred its remap.

    The reference then keeps in an index of its own, the fragment-reuse index, where the rows went, and later commits of
    it count the new fragments as covered. What was built after that index was last committed has the rows of today.
    """
    reuse = (index.dataset_version for index in snapshot.manifest.indices if index.name == FRAGMENT_REUSE_INDEX)
    return any(segment.dataset_version <= version for version in reuse)


def serving_index(snapshot: Snapshot, condition: Predicate) -> str | None:
    """Return the name of the index that can answer one condition on one column; None if none can."""
    for path, segments, index_type in _usable_indices(snapshot):
        if condition.columns() == (path,) and index_type.serves(condition) is not None:
            return segments[0].name
    return None


def open_index(snapshot: Snapshot, metadata: IndexMetadata) -> LoadedIndex[IndexQuery]:
    """Return one segment, opened; the snapshot caches it, so that further queries find its lookup table in memory.

    Raises `UnsupportedFeature` as `row_key_of` does.
    """

    def load() -> LoadedIndex[IndexQuery]:
        by_id = row_key_of(snapshot, metadata) is RowKey.STABLE_ID
        segment = replace(metadata, fragment_bitmap=None) if by_id else metadata  # fragments say nothing about ids
        return load_index(snapshot.file_locations.dataset_root(metadata.base_id, "an index"), segment)

    return snapshot.read_cache.index(metadata.uuid, load)


def _usable_indices(snapshot: Snapshot) -> list[tuple[str, tuple[IndexMetadata, ...], IndexType[IndexQuery]]]:
    """Return (column path, segments, type) of the indices that are read here and say what they cover."""
    by_name: dict[str, list[IndexMetadata]] = {}
    for index in snapshot.manifest.indices:
        by_name.setdefault(index.name, []).append(index)
    return list(_usable(snapshot, by_name))


def _usable(
    snapshot: Snapshot, by_name: dict[str, list[IndexMetadata]]
) -> Iterator[tuple[str, tuple[IndexMetadata, ...], IndexType[IndexQuery]]]:
    for segments in by_name.values():
        first = segments[0]
        if first.is_system or len(first.fields) != 1:
            continue
        if any(segment.fragment_bitmap is None or awaits_remap(snapshot, segment) for segment in segments):
            continue
        try:
            for segment in segments:
                row_key_of(snapshot, segment)
        except UnsupportedFeature:
            continue  # the rows are scanned
        yield snapshot.schema.path_of(first.fields[0]), tuple(segments), index_type_of(first)


def _search(snapshot: Snapshot, answer: _Answer) -> tuple[RowAddressSet, BitMap]:
    rows, covered = RowAddressSet(), BitMap()
    for segment in answer.segments:
        fragments = segment.covers(snapshot.fragments_by_id)
        if fragments:
            found = open_index(snapshot, segment).search(answer.query)
            if row_key_of(snapshot, segment) is RowKey.STABLE_ID:
                found = _where_they_are(snapshot, found)
            rows |= found.restrict(set(fragments))
            covered |= fragments
    return rows, covered


def _where_they_are(snapshot: Snapshot, row_ids: RowAddressSet) -> RowAddressSet:
    """Return the addresses of live rows by id. A row that was updated is not where the segment covers any more."""
    found = snapshot.row_id_index.find(row_ids.addresses())
    return RowAddressSet.from_addresses(found[found != np.uint64(TOMBSTONE_ROW)], exact=row_ids.exact)
