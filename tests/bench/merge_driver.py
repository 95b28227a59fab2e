"""`python -m tests.bench.merge_driver [FRAGMENTS] [MILLIONS]`: the memory of a driver that merges by tasks.

MILLIONS of source keys each update a row of a table of as many rows in FRAGMENTS fragments. The plan, the merge of the
outcomes and the commit are the real ones. The tasks are not run: a stand-in sends each task through a pickle, and gives
the outcome back that such a task reports, of the same type and size. It prints the messages and the peak of memory.
"""

from __future__ import annotations

import argparse
import pickle
import tempfile
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from lance_ops.changing.merge_insert import MergeRequest, WhenMatched
from lance_ops.changing.merge_insert.by_tasks import (
    DistributedMerge,
    SegmentFile,
    SourceRows,
    TaskSizes,
    plan_distributed_merge,
    prepare_distributed_merge,
)
from lance_ops.changing.merge_insert.by_tasks.key_join import JoinedKeys, JoinTask
from lance_ops.changing.merge_insert.by_tasks.key_shuffle import ShuffleTask
from lance_ops.changing.merge_insert.by_tasks.row_changes import DeletionTask, RowTask, WrittenChanges
from lance_ops.core.file_names import data_file_name
from lance_ops.runners import Job
from lance_ops.snapshot import Snapshot
from lance_ops.table import DeletionFile, DeletionFileType, Fragment
from lance_ops.writing import commit_operation
from tests.bench.linked_table import linked_table
from tests.bench.scale.many_fragments import peak_bytes

__all__ = ["MergeStandin", "drive"]

T = TypeVar("T")
R = TypeVar("R")

_SOURCE_ROWS = 1 << 20  # of a fragment
_REQUEST = MergeRequest(("id",), WhenMatched.UPDATE)


def main() -> None:
    """Merge, and print what it took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("fragments", nargs="?", type=int, default=100_000)
    parser.add_argument("millions", nargs="?", type=int, default=100)
    arguments = parser.parse_args()
    num_rows = arguments.millions * 1_000_000
    with tempfile.TemporaryDirectory(prefix="lance-ops-merge-") as folder:
        for line in drive(folder, arguments.fragments, num_rows, _SOURCE_ROWS):
            print(line)


def drive(
    folder: str, num_fragments: int, num_rows: int, source_rows: int, sizes: TaskSizes | None = None
) -> Iterator[str]:
    """Yield a line for the tables, for each step of tasks, and for the commit."""
    target = _table(f"{folder}/merged.lance", num_fragments, num_rows // num_fragments)
    source = _table(f"{folder}/given.lance", -(-num_rows // source_rows), source_rows)
    yield f"before: {_peak_mb()} MB"
    plan = plan_distributed_merge(target, _REQUEST, SourceRows.of(source), sizes)
    assert sum(part.num_rows for part in plan.target_parts) == sum(each.physical_rows for each in target.fragments)
    runner = MergeStandin(plan)
    prepared = prepare_distributed_merge(plan, runner)
    yield from runner.lines
    committed = commit_operation(target, prepared.operation)
    assert committed.version == target.version + 1
    assert all(fragment.deletion_file is not None for fragment in committed.fragments[: len(target.fragments)])
    yield f"commit: {len(committed.fragments):,} fragments; after: {_peak_mb()} MB"


def _table(uri: str, num_fragments: int, rows_of_fragment: int) -> Snapshot:
    rows = pa.table({"id": range(rows_of_fragment), "value": [0.5] * rows_of_fragment})
    return linked_table(uri, rows, num_fragments)


class MergeStandin:
    """Reports for each task what a task that was run would report."""

    def __init__(self, plan: DistributedMerge) -> None:
        self.lines: list[str] = []
        self._plan = plan
        self._parts = iter(plan.target_parts)

    def map(
        self,
        function: Callable[[T], R],
        tasks: Sequence[T],
        job: Job | None = None,
        discard: Callable[[R], None] | None = None,
    ) -> list[R]:
        """Hold all tasks as pickles and then all outcomes as pickles, as a driver of Spark does."""
        sent = [pickle.dumps(task) for task in tasks]
        num_sent, largest = sum(map(len, sent)), max(map(len, sent))
        del sent
        came = [pickle.dumps(self._outcome(task)) for task in tasks]
        outcomes = [pickle.loads(each) for each in came]
        self.lines.append(
            f"{function.__name__}: {len(tasks):,} tasks, {num_sent:,} B sent, at most {largest:,} B in one, "
            f"{sum(map(len, came)):,} B back; after: {_peak_mb()} MB"
        )
        return outcomes

    def _outcome(self, task: Any) -> object:
        match task:
            case ShuffleTask():
                return (_segments(task.folder, task.num_buckets),)
            case JoinTask():
                num_parts = len(task.target_parts) + len(task.source_parts)
                return JoinedKeys(_segments(task.folder, num_parts), 1 << 20, 0)
            case DeletionTask():
                part = next(self._parts)
                changed = tuple(map(self._with_deletions, part.fragment_ids))
                return WrittenChanges(
                    updated_fragments=changed, deletion_paths=tuple(str(each.deletion_path) for each in changed)
                )
            case RowTask():
                fragment = self._plan.source.version.open().fragments_by_id[task.part.fragment_ids[0]]
                file = replace(fragment.files[0], path=data_file_name())
                return WrittenChanges((replace(fragment, id=0, files=(file,)),))
        raise AssertionError(f"a {type(task).__name__}")

    def _with_deletions(self, fragment_id: int) -> Fragment:
        fragment = self._plan.snapshot.fragments_by_id[fragment_id]
        deletions = DeletionFile(
            self._plan.snapshot.version,
            uuid.uuid4().int >> 64,
            DeletionFileType.ARROW_ARRAY,
            fragment.physical_rows // 2,
        )
        return replace(fragment, deletion_file=deletions)


def _segments(folder: str, count: int) -> SegmentFile:
    return SegmentFile(f"{folder}/{uuid.uuid4().hex}.segments", np.arange(1, count + 1, dtype=np.int64) << 20)


def _peak_mb() -> int:
    return peak_bytes() >> 20


if __name__ == "__main__":
    main()
