"""Write new index segments for one version, in this process or by tasks of a runner."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence

from pyroaring import FrozenBitMap

from lance_ops.core.file_names import INDICES_DIR
from lance_ops.core.schema import Field
from lance_ops.indices import DistributedIndexType, IndexQuery, IndexType, LoadedIndex, RowKey, claimed_fragments
from lance_ops.maintenance.indexing.task_build import Copying, TaskBuild
from lance_ops.maintenance.indexing.task_shares import TaskSizes, entry_bytes, measure
from lance_ops.maintenance.indexing.training_rows import training_rows
from lance_ops.runners import Runner
from lance_ops.snapshot import FREE_SORTED_ROWS, Snapshot, check_rows_are_stored
from lance_ops.store import Store
from lance_ops.table import IndexFile, IndexMetadata

__all__ = ["SegmentBuilder"]


class SegmentBuilder:
    """Writes new segments for one version, in this process or by tasks."""

    def __init__(self, snapshot: Snapshot, runner: Runner | None, sizes: TaskSizes) -> None:
        self.snapshot = snapshot
        self._runner = runner
        self._sizes = sizes

    def train(self, kind: IndexType[IndexQuery], field: Field, name: str) -> IndexMetadata:
        """Write a segment of all live rows."""
        snapshot, (store_out, index_id) = self.snapshot, self._new_directory()
        stable = snapshot.manifest.uses_stable_row_ids
        row_key = kind.row_key(kind.index_version(stable_row_ids=stable), stable_row_ids=stable)
        if self._runner is not None and isinstance(kind, DistributedIndexType):
            work = measure(snapshot, field, list(snapshot.fragments_by_id))
            if work.size_bytes >= self._sizes.least_bytes:
                check_rows_are_stored(snapshot, work.num_rows, snapshot.fragments, FREE_SORTED_ROWS)
                build = TaskBuild(snapshot, kind, field, self._runner, self._sizes, "index")
                files = build.run([*build.plan_rows(work, row_key, build.task_bytes(work.size_bytes))], store_out)
                return _metadata(snapshot, kind, field, name, index_id, files)
        files = kind.train(training_rows(snapshot, field, None, row_key), field, store_out)
        return _metadata(snapshot, kind, field, name, index_id, files)

    def merge(
        self,
        kind: IndexType[IndexQuery],
        field: Field,
        name: str,
        segments: Sequence[LoadedIndex[IndexQuery]],
        missing: tuple[int, ...],
    ) -> IndexMetadata:
        """Write one segment of the entries of segments, and of the rows of fragments that none of them covers."""
        snapshot, (store_out, index_id) = self.snapshot, self._new_directory()
        files = self._merge_by_tasks(kind, field, segments, missing, store_out)
        if files is None:
            first, *others = segments
            rows = training_rows(snapshot, field, missing)
            files = first.merge(others, rows, store_out, live_fragments=set(snapshot.fragments_by_id))
        return _metadata(snapshot, kind, field, name, index_id, files)

    def _merge_by_tasks(
        self,
        kind: IndexType[IndexQuery],
        field: Field,
        segments: Sequence[LoadedIndex[IndexQuery]],
        missing: tuple[int, ...],
        store_out: Store,
    ) -> tuple[IndexFile, ...] | None:
        """Do the work of `merge` by tasks; return None if there is no runner, or too little work."""
        if self._runner is None or not isinstance(kind, DistributedIndexType):
            return None
        snapshot, work = self.snapshot, measure(self.snapshot, field, missing)
        total = work.size_bytes + sum(entry_bytes(each.metadata, kind.num_entries(each)) for each in segments)
        if total < self._sizes.least_bytes:
            return None
        build = TaskBuild(snapshot, kind, field, self._runner, self._sizes, "extend index of")
        task_bytes = build.task_bytes(total)
        claims = zip(segments, claimed_fragments(segments, snapshot.fragments_by_id), strict=True)
        copies = [
            task
            for segment, claimed in claims
            for task in build.plan_entries(segment, Copying(FrozenBitMap(claimed)), task_bytes)
        ]
        return build.run([*copies, *build.plan_rows(work, RowKey.ADDRESS, task_bytes)], store_out)

    def _new_directory(self) -> tuple[Store, uuid.UUID]:
        index_id = uuid.uuid4()
        return self.snapshot.store.child(f"{INDICES_DIR}/{index_id}"), index_id


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
