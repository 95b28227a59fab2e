"""Plan a clustering: which fragments are sorted together, and which rows each task reads.

Fragments that different indices cover are never mixed, so that an index covers a new fragment wholly or not at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TypeAlias

from lance_ops.core import predicate
from lance_ops.core.errors import UnsupportedFeature
from lance_ops.core.records import dataclass
from lance_ops.core.versions import FileVersion
from lance_ops.file import row_bytes
from lance_ops.maintenance.compaction.clustering.cluster_keys import cluster_columns
from lance_ops.maintenance.compaction.compaction_plan import CompactionOptions, SourceSize, coverage
from lance_ops.maintenance.compaction.index_remap import needs_remap
from lance_ops.reading import ROW_COLUMNS
from lance_ops.runners import Job
from lance_ops.snapshot import Snapshot, SnapshotReference, check_rows_are_stored
from lance_ops.store import Store
from lance_ops.table import Fragment
from lance_ops.transactions import remove_files_of_job
from lance_ops.writing import MAX_BYTES_PER_FILE

__all__ = ["ClusterGroup", "ClusterPlan", "Piece", "RowRange", "plan_clustering"]

PIECE_BYTES = 128 << 20
"""About how many bytes a task sorts at once: what it reads in the first stage and what it writes in the second."""

RowRange: TypeAlias = tuple[int, int, int]
"""A fragment's id, and its first physical row and the one after its last."""


@dataclass(frozen=True)
class Piece:
    """Rows that a task reads, of the fragments of one group."""

    group: int
    row_ranges: tuple[RowRange, ...]
    size_bytes: int


@dataclass(frozen=True)
class ClusterGroup:
    """Fragments whose rows are sorted together into `num_ranges` new fragments."""

    fragments: tuple[Fragment, ...]
    num_rows: int
    size_bytes: int
    num_ranges: int


@dataclass(frozen=True)
class ClusterPlan:
    """What a clustering of `read_version` does; `needs_addresses` says that an index must learn where rows went."""

    uri: str
    read_version: int
    snapshot: SnapshotReference
    columns: tuple[predicate.Column, ...]
    z_order: bool
    file_version: FileVersion
    max_bytes_per_file: int
    needs_addresses: bool
    groups: tuple[ClusterGroup, ...]
    pieces: tuple[Piece, ...]

    def job(self, verb: str, weights: Sequence[int], store: Store) -> Job:
        """What the tasks of one stage do together in the dataset's store."""
        remove = partial(remove_files_of_job, store)
        return Job.on(f"cluster, {verb}", self.uri, self.read_version, tuple(weights), remove, unit="bytes")


def plan_clustering(snapshot: Snapshot, options: CompactionOptions) -> ClusterPlan:
    """Take all fragments that are not excluded, in their order, as far as they fit into the `max_source_*` limits.

    Raises `InvalidInput` and `UnsupportedFeature` as `cluster_columns`
    and `plan_compaction` do, and `UnsupportedFeature` for blobs, files of version 0.1 and columns named as row columns.
    """
    columns = cluster_columns(snapshot.schema, options.cluster_by)
    version = FileVersion.parse(options.data_storage_version) if options.data_storage_version else snapshot.file_version
    _check_schema(snapshot, version)
    taken = _within_limits(snapshot, options)
    check_rows_are_stored(snapshot, sum(fragment.physical_rows for fragment in taken), taken)
    moving = [fragment.id for fragment in taken]
    touched = [index for index in snapshot.manifest.indices if not index.is_system and index.covers(moving)]
    to_remap = [index for index in touched if needs_remap(snapshot, index, keeps_order=False)]  # each is checked
    by_coverage: dict[object, list[Fragment]] = {}
    for fragment in taken:
        by_coverage.setdefault(coverage(snapshot, fragment), []).append(fragment)
    min_row_bytes = sum(row_bytes(field.arrow_type) for field in snapshot.schema.fields)
    groups = [_group(snapshot, part, options, min_row_bytes) for part in by_coverage.values()]
    return ClusterPlan(
        snapshot.uri,
        snapshot.version,
        SnapshotReference.of(snapshot),
        columns,
        options.cluster_order == "z_order",
        version,
        options.max_bytes_per_file or MAX_BYTES_PER_FILE,
        bool(to_remap),
        tuple(groups),
        tuple(
            piece for number, group in enumerate(groups) for piece in _pieces(number, group.fragments, min_row_bytes)
        ),
    )


def _check_schema(snapshot: Snapshot, version: FileVersion) -> None:
    if snapshot.schema.holds_blobs_v2:
        raise UnsupportedFeature("clustering a table with blobs", snapshot.uri)
    if FileVersion.V0_1 in (version, snapshot.file_version):
        raise UnsupportedFeature("clustering files of version 0.1", snapshot.uri)
    taken = sorted(set(ROW_COLUMNS) & set(snapshot.schema.names))
    if taken:
        raise UnsupportedFeature(f"clustering a table with a column named {taken[0]!r}", snapshot.uri)


def _within_limits(snapshot: Snapshot, options: CompactionOptions) -> list[Fragment]:
    taken: list[Fragment] = []
    total = SourceSize()
    for fragment in snapshot.fragments:
        if options.leaves_alone(fragment):
            continue
        larger = total + SourceSize.of(snapshot, [fragment])
        if larger.fits(options):
            taken.append(fragment)
            total = larger
    return taken


def _group(
    snapshot: Snapshot, fragments: Sequence[Fragment], options: CompactionOptions, min_row_bytes: int
) -> ClusterGroup:
    num_rows = sum(snapshot.num_live_rows(fragment) for fragment in fragments)
    size_bytes = sum(_size_bytes(fragment, min_row_bytes) for fragment in fragments)
    by_rows, by_bytes = -(-num_rows // options.target_rows_per_fragment), -(-size_bytes // PIECE_BYTES)
    return ClusterGroup(tuple(fragments), num_rows, size_bytes, max(by_rows, by_bytes, 1))


def _pieces(number: int, fragments: Sequence[Fragment], min_row_bytes: int) -> Iterator[Piece]:
    """Yield small fragments together, and large ones in parts."""
    ranges: list[RowRange] = []
    total = 0
    for fragment in fragments:
        size = _size_bytes(fragment, min_row_bytes)
        num_parts = max(1, min(-(-size // PIECE_BYTES), fragment.physical_rows))
        for part in range(num_parts):
            first, stop = (fragment.physical_rows * at // num_parts for at in (part, part + 1))
            if ranges and total + size // num_parts > PIECE_BYTES:
                yield Piece(number, tuple(ranges), total)
                ranges, total = [], 0
            ranges.append((fragment.id, first, stop))
            total += size // num_parts
            if part < num_parts - 1:  # a piece has one range of a fragment
                yield Piece(number, tuple(ranges), total)
                ranges, total = [], 0
    if ranges:
        yield Piece(number, tuple(ranges), total)


def _size_bytes(fragment: Fragment, min_row_bytes: int) -> int:
    """Return the bytes of a fragment's files, or of its decoded numbers if those are more."""
    return max(sum(file.file_size_bytes for file in fragment.files), fragment.physical_rows * min_row_bytes)
