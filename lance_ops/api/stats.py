"""Statistics of fragments, fields and indices, in the shapes that the reference returns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from lance_ops import reading
from lance_ops.api.argument_checks import check_public_methods
from lance_ops.api.scanning import Filter
from lance_ops.core.errors import IndexNotFound
from lance_ops.core.records import dataclass
from lance_ops.maintenance import health
from lance_ops.runners import Runner
from lance_ops.snapshot import Snapshot, field_sizes
from lance_ops.table import IndexMetadata

__all__ = ["DataStatistics", "FieldStatistics", "IndexDescription", "LanceStats", "describe_indices", "list_indices"]


@dataclass(frozen=True)
class FieldStatistics:
    """The bytes of a field's pages."""

    id: int
    bytes_on_disk: int


@dataclass(frozen=True)
class DataStatistics:
    """The bytes of each field of the schema, parents before their children."""

    fields: list[FieldStatistics]


@dataclass(frozen=True)
class IndexDescription:
    """An index with all of its segments."""

    name: str
    type_url: str
    index_type: str
    num_rows_indexed: int
    fields: tuple[int, ...]
    field_names: tuple[str, ...]
    num_segments: int
    total_size_bytes: int


@check_public_methods
class LanceStats:
    """`LanceDataset.stats`."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def dataset_stats(self, max_rows_per_group: int = 1024) -> dict[str, int]:
        """Count deleted rows, fragments, and fragments with fewer physical rows than `max_rows_per_group`."""
        fragments = self._snapshot.fragments
        live = sum(self._snapshot.num_live_rows(fragment) for fragment in fragments)
        return {
            "num_deleted_rows": sum(fragment.physical_rows for fragment in fragments) - live,
            "num_fragments": len(fragments),
            "num_small_files": sum(fragment.physical_rows < max_rows_per_group for fragment in fragments),
        }

    def data_stats(self) -> DataStatistics:
        """Return the bytes of each field; zero for a field without its own column, and for files of version 0.1."""
        sizes = field_sizes(self._snapshot).items()
        return DataStatistics([FieldStatistics(field_id, num_bytes) for field_id, num_bytes in sizes])

    def column_stats(
        self,
        columns: Sequence[str] | None = None,
        filter: Filter = None,
        *,
        runner: Runner | None = None,
    ) -> dict[str, health.ColumnStatistics]:
        """Count the nulls of columns, find their least and greatest values, and estimate how many are distinct.

        By default it measures all top-level columns whose values have an order. The rows are read by tasks of the
        runner, which return a few numbers. Raises `UnsupportedFeature` for a column of other values.
        """
        predicate = None if filter is None else reading.bind_filter(self._snapshot, filter)
        return health.column_statistics(self._snapshot, columns, predicate, runner)

    def index_stats(self, index_name: str) -> dict[str, Any]:
        """Return an index's coverage and its segments' own numbers."""
        name, coverage = index_name, _find(self._snapshot, index_name)
        segments = index_segments(self._snapshot, name)
        details = [dict(reading.open_index(self._snapshot, segment).statistics()) for segment in segments]
        created = [segment.created_at_ms for segment in segments if segment.created_at_ms is not None]
        return {
            "index_type": coverage.type_name,
            "name": name,
            "num_indices": len(segments),
            "num_segments": len(segments),
            "indices": details,
            "segments": details,
            "num_indexed_fragments": coverage.num_indexed_fragments,
            "num_indexed_rows": coverage.num_indexed_rows,
            "num_unindexed_fragments": coverage.num_unindexed_fragments,
            "num_unindexed_rows": coverage.num_unindexed_rows,
            "updated_at_timestamp_ms": max(created, default=None),
        }


def index_segments(snapshot: Snapshot, name: str) -> list[IndexMetadata]:
    """Return the segments of an index; raise `IndexNotFound` listing the existing ones."""
    _find(snapshot, name)
    return [index for index in snapshot.manifest.indices if index.name == name]


def list_indices(snapshot: Snapshot) -> list[dict[str, Any]]:
    """Return one dictionary for each segment of each index."""
    return [
        {
            "name": index.name,
            "type": index.details.type_name.removesuffix("IndexDetails") if index.details else "Unknown",
            "uuid": str(index.uuid),
            "fields": [snapshot.schema.path_of(field_id) for field_id in index.fields],
            "version": index.dataset_version,
            "fragment_ids": set(index.fragment_bitmap or ()),
            "base_id": index.base_id,
        }
        for index in snapshot.manifest.indices
    ]


def describe_indices(snapshot: Snapshot) -> Iterator[IndexDescription]:
    """Yield a description of each index."""
    for coverage in health.index_coverage(snapshot):
        segment = next(index for index in snapshot.manifest.indices if index.name == coverage.name)
        yield IndexDescription(
            name=coverage.name,
            type_url=segment.details.type_url if segment.details else "",
            index_type=coverage.type_name,
            num_rows_indexed=coverage.num_indexed_rows,
            fields=segment.fields,
            field_names=coverage.fields,
            num_segments=coverage.num_segments,
            total_size_bytes=coverage.size_bytes,
        )


def _find(snapshot: Snapshot, name: str) -> health.IndexCoverage:
    found = {coverage.name: coverage for coverage in health.index_coverage(snapshot)}
    if name not in found:
        raise IndexNotFound(f"{snapshot.uri} has no index {name!r}: it has {', '.join(found) or 'none'}")
    return found[name]
