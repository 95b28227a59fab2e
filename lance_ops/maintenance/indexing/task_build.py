"""Build, extend or remap an index by tasks of a runner.

    plan_rows(...), plan_entries(...) -> tasks       ranges of rows of fragments; ranges of entries of a segment
    execute(task) -> PartialIndex                    any process
    kind.plan_merge(partials) -> shares
    execute_merge(task) -> PartialIndex              any process
    kind.assemble(merged) -> files                   the driver: page by page

Tasks write beneath `_indices` into a directory of its own, which no version names. It is removed at the end. Files that
an attempt writes after that, or that a driver which died has left, are found by clean-up.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import field
from functools import partial
from typing import Literal, TypeAlias

from pyroaring import FrozenBitMap

from lance_ops.committers import open_root
from lance_ops.core.errors import LanceOpsError
from lance_ops.core.file_names import INDICES_DIR
from lance_ops.core.records import dataclass
from lance_ops.core.schema import Field
from lance_ops.core.threads import available_cores
from lance_ops.indices import DistributedIndexType, IndexQuery, LoadedIndex, MergeShare, PartialIndex, RowKey
from lance_ops.maintenance.indexing.task_shares import IndexWork, TaskSizes, cut_entries, cut_fragments, entry_bytes
from lance_ops.maintenance.indexing.training_rows import RowRange, training_rows_in_task
from lance_ops.reading import open_index
from lance_ops.runners import Job, Runner, RunnerWithSlots
from lance_ops.snapshot import Snapshot, SnapshotReference
from lance_ops.store import Store
from lance_ops.table import IndexFile, IndexMetadata
from lance_ops.table.rows import RowAddressMap

__all__ = ["Copying", "EntriesTask", "MergeTask", "RowsTask", "TaskBuild", "execute", "execute_merge"]

Kind: TypeAlias = DistributedIndexType[IndexQuery]


@dataclass(frozen=True)
class RowsTask:
    """Rows of fragments to index; `size_bytes` is the weight of the task. `scratch` is a directory beneath the root."""

    snapshot: SnapshotReference
    kind: Kind
    field_id: int
    row_ranges: tuple[RowRange, ...]
    row_key: RowKey
    scratch: str
    size_bytes: int


@dataclass(frozen=True)
class Copying:
    """Which entries of a segment are kept: those of `fragments`, or with `moves` those whose rows live on."""

    fragments: FrozenBitMap | None = None
    moves: RowAddressMap | None = None


@dataclass(frozen=True)
class EntriesTask:
    """Entries of a segment to copy, from `start` up to, but without, `stop`."""

    snapshot: SnapshotReference
    kind: Kind
    segment: IndexMetadata
    start: int
    stop: int
    copying: Copying
    scratch: str
    size_bytes: int


@dataclass(frozen=True)
class MergeTask:
    """A share of the partials in `scratch` to merge."""

    uri: str
    kind: Kind
    column: Field
    share: MergeShare
    scratch: str
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)


def execute(task: RowsTask | EntriesTask) -> PartialIndex:
    """Index the task's rows, or copy its entries."""
    snapshot = task.snapshot.open()
    scratch = snapshot.store.child(task.scratch)
    if isinstance(task, EntriesTask):
        segment = open_index(snapshot, task.segment)
        how = task.copying
        return task.kind.copy_partial(segment, task.start, task.stop, scratch, fragments=how.fragments, moves=how.moves)
    indexed = snapshot.schema.by_id(task.field_id)
    assert indexed is not None  # the task was planned on this version
    rows = training_rows_in_task(snapshot, indexed, task.row_ranges, task.row_key)
    return task.kind.train_partial(rows, indexed, scratch)


def execute_merge(task: MergeTask) -> PartialIndex:
    """Merge the task's share."""
    store = open_root(task.uri, task.storage_options).store
    return task.kind.merge_partials(task.share, task.column, store.child(task.scratch))


@dataclass(frozen=True)
class TaskBuild:
    """The work of tasks on one index of a version; `verb` names the job."""

    snapshot: Snapshot
    kind: Kind
    column: Field
    runner: Runner
    sizes: TaskSizes
    verb: str
    scratch: str = field(default_factory=lambda: f"{INDICES_DIR}/{uuid.uuid4()}")

    def task_bytes(self, total_bytes: int) -> int:
        """Return the bytes of each task for work of a size, as the runner's slots have it."""
        runner = self.runner
        num_slots = runner.num_slots() if isinstance(runner, RunnerWithSlots) else available_cores()
        return self.sizes.each(total_bytes, num_slots)

    def plan_rows(self, work: IndexWork, row_key: RowKey, task_bytes: int) -> Iterator[RowsTask]:
        """Yield the tasks that index rows of fragments, in the fragments' order."""
        reference = SnapshotReference.of(self.snapshot)
        for row_ranges, size in cut_fragments(work, task_bytes):
            yield RowsTask(reference, self.kind, self.column.id, row_ranges, row_key, self.scratch, size)

    def plan_entries(self, index: LoadedIndex[IndexQuery], copying: Copying, task_bytes: int) -> Iterator[EntriesTask]:
        """Yield the tasks that copy the entries of a segment, in order."""
        reference, segment = SnapshotReference.of(self.snapshot), index.metadata
        num_entries = self.kind.num_entries(index)
        size = entry_bytes(segment, num_entries)
        for start, stop in cut_entries(num_entries, size, task_bytes):
            weight = size * (stop - start) // num_entries
            yield EntriesTask(reference, self.kind, segment, start, stop, copying, self.scratch, weight)

    def run(self, tasks: Sequence[RowsTask | EntriesTask], store_out: Store) -> tuple[IndexFile, ...]:
        """Run the tasks, merge what they wrote, and write the index; a failure leaves no file behind."""
        with self._scratch() as scratch:
            discard = partial(_discard, scratch)
            weights = tuple(task.size_bytes for task in tasks)
            partials = self.runner.map(execute, tasks, self._job(self.verb, weights, "bytes"), discard)
            shares = self.kind.plan_merge(partials, self._rows_per_share(partials))
            if shares:
                snapshot = self.snapshot
                merges = [
                    MergeTask(snapshot.uri, self.kind, self.column, share, self.scratch, dict(snapshot.storage_options))
                    for share in shares
                ]
                job = self._job(f"{self.verb}, merge", tuple(share.num_rows for share in shares), "rows")
                partials = self.runner.map(execute_merge, merges, job, discard)
            return self.kind.assemble(partials, self.column, scratch, store_out)

    def _rows_per_share(self, partials: Sequence[PartialIndex]) -> int:
        num_rows, size = sum(each.num_rows for each in partials), sum(each.decoded_bytes for each in partials)
        return max(1, num_rows * self.task_bytes(size) // max(size, 1))

    def _job(self, verb: str, weights: tuple[int, ...], unit: Literal["bytes", "rows"]) -> Job:
        return Job.on(verb, self.snapshot.uri, self.snapshot.version, weights, unit=unit)

    @contextmanager
    def _scratch(self) -> Iterator[Store]:
        scratch = self.snapshot.store.child(self.scratch)
        try:
            yield scratch
        finally:
            scratch.clear_or_leave()


def _discard(scratch: Store, written: PartialIndex) -> None:
    """Delete the file that a task wrote."""
    with suppress(LanceOpsError):
        scratch.delete(written.path)
