"""Write a segment with its entries where a compaction has moved their rows, by tasks if the segment is large."""

from __future__ import annotations

from lance_ops.indices import DistributedIndexType, index_type_of, remap_only_type_of
from lance_ops.maintenance.indexing.task_build import Copying, TaskBuild
from lance_ops.maintenance.indexing.task_shares import TaskSizes, entry_bytes
from lance_ops.reading import open_index
from lance_ops.runners import Runner
from lance_ops.snapshot import Snapshot
from lance_ops.store import Store
from lance_ops.table import IndexFile, IndexMetadata
from lance_ops.table.rows import RowAddressMap

__all__ = ["remap_segment"]


def remap_segment(
    snapshot: Snapshot,
    segment: IndexMetadata,
    moves: RowAddressMap,
    store_out: Store,
    runner: Runner | None = None,
    sizes: TaskSizes | None = None,
) -> tuple[IndexFile, ...]:
    """Write the remapped segment; its files are not synced.

    Tasks of the runner do the work if it is large. Without a runner, this process does it. It also remaps each index of
    a type that this library does not build.
    """
    remap_only = remap_only_type_of(segment)
    if remap_only is not None:
        return remap_only.remap(snapshot.index_root(segment).child(segment.directory), segment, moves, store_out)
    sizes, index, kind = sizes or TaskSizes(), open_index(snapshot, segment), index_type_of(segment)
    field = snapshot.schema.by_id(segment.fields[0]) if len(segment.fields) == 1 else None
    if runner is not None and field is not None and isinstance(kind, DistributedIndexType):
        size = entry_bytes(segment, kind.num_entries(index))
        if size >= sizes.least_remap_bytes:
            build = TaskBuild(snapshot, kind, field, runner, sizes, "remap index of")
            tasks = [*build.plan_entries(index, Copying(moves=moves), build.task_bytes(size))]
            return build.run(tasks, store_out)
    return index.remap(moves, store_out)
