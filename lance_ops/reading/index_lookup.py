"""Search indices for the rows that may match a predicate.

A predicate is a conjunction. If an index on a conjunct's only column can answer the conjunct, it is searched on the
fragments that its segments cover. If several indices can, those that know single rows come first, and the others are
searched on the fragments that are left. An index that describes rows together may answer all conjuncts on its column at
once, but not in the place of one that knows single rows and answers some of them. The results are intersected. The
other conjuncts remain to be tested on the rows found. If one index finds rows that only may match, or does not cover a
fragment that another one covers, the whole predicate remains. Fragments that no searched index covers are scanned with
the whole predicate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
from pyroaring import BitMap

from lance_ops import indices
from lance_ops.core import predicate as predicates
from lance_ops.core.addresses import TOMBSTONE_ROW
from lance_ops.core.errors import CorruptFile, UnsafePath, UnsupportedFeature
from lance_ops.core.records import dataclass
from lance_ops.core.threads import map_ordered
from lance_ops.indices import RowAddressSet
from lance_ops.reading.scan_trace import current_trace
from lance_ops.snapshot import Snapshot
from lance_ops.table import FRAGMENT_REUSE_INDEX, IndexMetadata

if TYPE_CHECKING:
    from lance_ops.core.predicate import Predicate
    from lance_ops.indices import IndexQuery, IndexType, LoadedIndex

__all__ = [
    "IndexLookup",
    "awaits_remap",
    "has_index_files",
    "is_searchable",
    "look_up",
    "open_index",
    "row_key_of",
    "serving_index",
]


@dataclass(frozen=True)
class IndexLookup:
    """Rows that indices found in the fragments in `covered`, deleted rows included.

    `remainder` is the predicate that must still be tested on them.
    """

    rows: RowAddressSet
    covered: BitMap
    remainder: Predicate | None
    index_names: tuple[str, ...]
    index_types: tuple[str, ...]
    conjuncts: tuple[Predicate, ...]

    def describe(self) -> str:
        """Return each conjunct with the index that answered it."""
        queries = (conjunct.to_sql() for conjunct in self.conjuncts)
        parts = zip(queries, self.index_names, self.index_types, strict=True)
        return " AND ".join(f"[{query}]@{name}({kind})" for query, name, kind in parts)


@dataclass(frozen=True)
class _Candidate:
    """The segments of an index, and the query that answers a conjunct."""

    segments: tuple[IndexMetadata, ...]
    index_type: IndexType[IndexQuery]
    query: IndexQuery


@dataclass(frozen=True)
class _IndexSearch:
    """A conjunct, and the indices that can answer it, in the order in which they are searched."""

    conjunct: Predicate
    candidates: tuple[_Candidate, ...]


@dataclass(frozen=True)
class _Answer:
    """The rows that the indices found for one conjunct in the fragments in `covered`."""

    conjunct: Predicate
    rows: RowAddressSet
    covered: BitMap
    used: tuple[_Candidate, ...]


def look_up(snapshot: Snapshot, predicate: Predicate, fragment_ids: Iterable[int] | None = None) -> IndexLookup | None:
    """Search the indices that can answer conjuncts of the predicate; None if there are none.

    Only segments that cover one of the requested fragments are searched; None requests all. Raises `CorruptFile` for a
    row that its fragment does not have.
    """
    usable = _usable_indices(snapshot)
    if not usable:
        return None

    def index_search(conjunct: Predicate) -> _IndexSearch | None:
        found = []
        for path, segments, index_type in usable:
            query = index_type.serves(conjunct) if conjunct.columns() == (path,) else None
            if query is not None:
                found.append(_Candidate(segments, index_type, query))
        return _IndexSearch(conjunct, tuple(found)) if found else None

    def row_search(conjunct: Predicate) -> _IndexSearch | None:
        search = index_search(conjunct)
        return search if search is not None and search.candidates[0].index_type.names_rows else None

    searches, remainder = predicates.split_servable(predicate, row_search, index_search)
    if not searches:
        return None
    known = snapshot.fragments_by_id.keys()
    requested = BitMap(known if fragment_ids is None else known & {*fragment_ids})
    answers = [_search(snapshot, search, requested) for search in searches]
    rows, covered = _intersected(answers)
    _check_rows_exist(snapshot, rows, answers)
    used = [(answer.conjunct, candidate) for answer in answers for candidate in answer.used]
    return IndexLookup(
        rows=rows,
        covered=covered,
        remainder=remainder if rows.exact else predicate,
        index_names=tuple(candidate.segments[0].name for _, candidate in used),
        index_types=tuple(candidate.index_type.name for _, candidate in used),
        conjuncts=tuple(conjunct for conjunct, _ in used),
    )


def row_key_of(snapshot: Snapshot, segment: IndexMetadata) -> indices.RowKey:
    """Return whether a segment's entries name rows by address or by stable row id.

    Raises `UnsupportedFeature` for an index type or version that is not read here, and for a base that is not a
    dataset's root; `UnsafePath` for a base that may not be followed.
    """
    kind, version = indices.index_type_of(segment), segment.index_version or 0
    if version > kind.newest_index_version:
        raise UnsupportedFeature("an index of this version", f"index {segment.name!r}")
    snapshot.file_locations.dataset_root(segment.base_id, "an index")
    return kind.row_key(version, stable_row_ids=snapshot.manifest.uses_stable_row_ids)


def awaits_remap(snapshot: Snapshot, segment: IndexMetadata) -> bool:
    """Return whether a segment may hold row addresses from before a compaction that deferred its remap.

    The reference then records the rows' new addresses in the fragment-reuse index, and its later commits count the new
    fragments as covered. A segment that was built after the last commit of that index has the present addresses.
    """
    reuse = (index.dataset_version for index in snapshot.manifest.indices if index.name == FRAGMENT_REUSE_INDEX)
    return any(segment.dataset_version <= version for version in reuse)


def has_index_files(snapshot: Snapshot, segment: IndexMetadata) -> bool:
    """Return whether the files of a segment are beneath a root of the table, as far as its base path tells.

    The dataset at the base path may have replaced the index and cleaned up: a shallow clone does not notice. Or the
    base is no dataset, or may not be followed. Nothing is looked up for a segment without a base path.
    """
    try:
        return snapshot.find_index_root(segment) is not None
    except (UnsafePath, UnsupportedFeature):
        return False


def is_searchable(
    snapshot: Snapshot,
    segments: Iterable[IndexMetadata],
    has_files: Callable[[Snapshot, IndexMetadata], bool] = has_index_files,
) -> bool:
    """Return whether each segment of an index records its coverage, has the present row addresses, and has its files.

    Otherwise a scan answers in the place of the whole index. Whether its kind is read here is another question.
    """
    return all(
        segment.fragment_bitmap is not None and not awaits_remap(snapshot, segment) and has_files(snapshot, segment)
        for segment in segments
    )


def serving_index(snapshot: Snapshot, condition: Predicate) -> str | None:
    """Return the name of an index that can answer a condition on one column; None if there is none."""
    for path, segments, index_type in _usable_indices(snapshot):
        if condition.columns() == (path,) and index_type.serves(condition) is not None:
            return segments[0].name
    return None


def open_index(snapshot: Snapshot, metadata: IndexMetadata) -> LoadedIndex[IndexQuery]:
    """Open an index segment; the snapshot caches it with its lookup table for further queries.

    Raises `UnsupportedFeature` and `UnsafePath` as `row_key_of` does.
    """
    trace = current_trace()
    is_cached = True

    def load() -> LoadedIndex[IndexQuery]:
        nonlocal is_cached
        is_cached = False
        by_id = row_key_of(snapshot, metadata) is indices.RowKey.STABLE_ID
        # ids do not name fragments, so coverage by fragment must not drop entries
        segment = replace(metadata, fragment_bitmap=None) if by_id else metadata
        return indices.load_index(snapshot.index_root(metadata), segment)

    index = snapshot.session.index(snapshot.uri, metadata, load)
    if trace is not None:
        trace.indices_cached += is_cached
        trace.indices_loaded += not is_cached
    return index


def _usable_indices(snapshot: Snapshot) -> list[tuple[str, tuple[IndexMetadata, ...], IndexType[IndexQuery]]]:
    """Return (column path, segments, type) of the indices that this library finds and reads and that record their
    coverage; those that know single rows come first.
    """
    by_name: dict[str, list[IndexMetadata]] = {}
    for index in snapshot.manifest.indices:
        by_name.setdefault(index.name, []).append(index)
    return sorted(_usable(snapshot, by_name), key=lambda usable: not usable[2].names_rows)


def _usable(
    snapshot: Snapshot, by_name: dict[str, list[IndexMetadata]]
) -> Iterator[tuple[str, tuple[IndexMetadata, ...], IndexType[IndexQuery]]]:
    for segments in by_name.values():
        first = segments[0]
        if first.is_system or len(first.fields) != 1:
            continue
        try:
            for segment in segments:
                row_key_of(snapshot, segment)
        except (UnsafePath, UnsupportedFeature):
            continue  # a scan answers instead
        if is_searchable(snapshot, segments):
            yield snapshot.schema.path_of(first.fields[0]), tuple(segments), indices.index_type_of(first)


def _search(snapshot: Snapshot, search: _IndexSearch, requested: BitMap) -> _Answer:
    """Search the candidates in order, each on the requested fragments that no earlier one covers."""
    parts: list[RowAddressSet] = []
    used: list[_Candidate] = []
    covered = BitMap()
    for candidate in search.candidates:
        claims = [(segment, BitMap(segment.covers(requested - covered))) for segment in candidate.segments]
        claimed = BitMap()
        for fragments, found in _search_segments(snapshot, [claim for claim in claims if claim[1]], candidate.query):
            parts.append(found.restrict(fragments))
            claimed |= fragments
        if claimed:
            used.append(candidate)
            covered |= claimed
    rows = parts[0] if len(parts) == 1 else RowAddressSet.union(parts)
    return _Answer(search.conjunct, rows, covered, tuple(used or search.candidates[:1]))


def _search_segments(
    snapshot: Snapshot, claims: Sequence[tuple[IndexMetadata, BitMap]], query: IndexQuery
) -> Iterator[tuple[BitMap, RowAddressSet]]:
    """Yield the fragments and the found rows of each segment that can be read.

    Segments of a remote store are searched at the same time. A local search needs the interpreter, so threads do not
    make it faster.
    """
    at_once = 1 if snapshot.store.reads_in_place else min(snapshot.calls_at_once, len(claims))
    answers = map_ordered(lambda claim: _search_segment(snapshot, claim[0], query), claims, at_once, at_once)
    for (segment, fragments), found in zip(claims, answers, strict=True):
        if found is not None:
            is_by_id = row_key_of(snapshot, segment) is indices.RowKey.STABLE_ID
            yield fragments, _addresses_of_ids(snapshot, found) if is_by_id else found


def _search_segment(snapshot: Snapshot, segment: IndexMetadata, query: IndexQuery) -> RowAddressSet | None:
    """Return the rows that a segment finds, by address or by id.

    None if this library does not read the segment, so that a scan answers instead.
    """
    try:
        index = open_index(snapshot, segment)
    except UnsupportedFeature:
        return None
    return index.search(query)


def _intersected(answers: list[_Answer]) -> tuple[RowAddressSet, BitMap]:
    """Return the rows that all answers have in the fragments they cover, and the fragments that any answer covers."""
    covered = BitMap.union(*(answer.covered for answer in answers))
    if all(answer.covered == covered for answer in answers):
        return reduce(RowAddressSet.__and__, (answer.rows for answer in answers)), covered
    bitmaps = {}
    for fragment_id in {key for answer in answers for key in answer.rows.bitmaps}:
        found = (answer.rows.offsets(fragment_id) for answer in answers if fragment_id in answer.covered)
        bitmaps[fragment_id] = reduce(BitMap.__and__, found)
    return RowAddressSet.from_bitmaps(bitmaps, exact=False), covered


def _check_rows_exist(snapshot: Snapshot, rows: RowAddressSet, answers: list[_Answer]) -> None:
    """Raise `CorruptFile` for a row beyond its fragment, which names a segment that covers the fragment.

    Zones may end behind the last row, so rows that only may match are not checked.
    """
    if not all(candidate.index_type.names_rows for answer in answers for candidate in answer.used):
        return
    for fragment_id, offsets in rows.bitmaps.items():
        num_rows = snapshot.fragments_by_id[fragment_id].physical_rows
        if offsets.max() < num_rows:
            continue
        segments = (segment for answer in answers for candidate in answer.used for segment in candidate.segments)
        segment = next(segment for segment in segments if segment.covers([fragment_id]))
        path = snapshot.index_root(segment).uri_of(segment.directory)
        reason = f"row {offsets.max()} of fragment {fragment_id}, which has {num_rows} rows"
        raise CorruptFile(path, f"index {segment.name!r}", f"{reason}; rebuild the index")


def _addresses_of_ids(snapshot: Snapshot, row_ids: RowAddressSet) -> RowAddressSet:
    """Return the addresses of the live rows with these ids. An updated row is in a fragment outside the segment."""
    found = snapshot.row_id_index.find(row_ids.addresses())
    return RowAddressSet.from_addresses(found[found != np.uint64(TOMBSTONE_ROW)], exact=row_ids.exact)
