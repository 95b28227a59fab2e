"""Measure how many of a table's fragments and rows each index covers."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from pyroaring import BitMap

from lance_ops.core.errors import StoreError
from lance_ops.core.records import dataclass
from lance_ops.reading import has_index_files, is_searchable
from lance_ops.snapshot import Snapshot
from lance_ops.table import IndexMetadata

__all__ = ["IndexCoverage", "index_coverage", "indexed_ratio"]


@dataclass(frozen=True)
class IndexCoverage:
    """The coverage of an index by all its segments together. Rows are live rows.

    An index covers nothing while a look-up scans in its place, because files of it are lost or its remap was deferred.
    If the store of its base path fails, its files count as there.
    """

    name: str
    type_name: str
    fields: tuple[str, ...]
    num_segments: int
    num_indexed_fragments: int
    num_unindexed_fragments: int
    num_indexed_rows: int
    num_unindexed_rows: int
    size_bytes: int

    @property
    def indexed_ratio(self) -> float:
        """The share of the rows that the index covers; 1.0 for an empty table."""
        total = self.num_indexed_rows + self.num_unindexed_rows
        return self.num_indexed_rows / total if total else 1.0


def index_coverage(snapshot: Snapshot) -> tuple[IndexCoverage, ...]:
    """Return the coverage of every index on a column, by name."""
    on_columns = sorted((i for i in snapshot.manifest.indices if not i.is_system), key=lambda index: index.name)
    return tuple(_coverage(snapshot, name, list(group)) for name, group in groupby(on_columns, lambda i: i.name))


def indexed_ratio(coverage: Iterable[IndexCoverage]) -> float | None:
    """Return the lowest coverage of the indices; None if there are none."""
    return min((index.indexed_ratio for index in coverage), default=None)


def _coverage(snapshot: Snapshot, name: str, segments: list[IndexMetadata]) -> IndexCoverage:
    present = snapshot.fragments_by_id
    covered = BitMap()
    if is_searchable(snapshot, segments, _has_files):
        covered.update(*(segment.covers(present) for segment in segments))
    rows = {fragment_id: snapshot.num_live_rows(fragment) for fragment_id, fragment in present.items()}
    indexed = sum(count for fragment_id, count in rows.items() if fragment_id in covered)
    details = segments[0].details
    return IndexCoverage(
        name=name,
        type_name=details.type_name.removesuffix("IndexDetails") if details else "Unknown",
        fields=tuple(snapshot.schema.path_of(field_id) for field_id in segments[0].fields),
        num_segments=len(segments),
        num_indexed_fragments=len(covered),
        num_unindexed_fragments=len(present) - len(covered),
        num_indexed_rows=indexed,
        num_unindexed_rows=sum(rows.values()) - indexed,
        size_bytes=sum(file.size_bytes for segment in segments for file in segment.files),
    )


def _has_files(snapshot: Snapshot, segment: IndexMetadata) -> bool:
    """Return whether a segment has its files, as far as its store tells; versions of one list share the answer."""
    known, key = snapshot.read_cache.has_index_files, (segment.base_id, segment.uuid)
    if key not in known:
        try:
            known[key] = has_index_files(snapshot, segment)
        except StoreError:
            known[key] = True
    return known[key]
