"""`python -m tests.bench.scale.many_fragments STEP COUNT URI`: measure one step on a manifest of many fragments.

Each step runs in a process of its own, so that its peak of memory is its own. It prints one JSON object. Only the first
data files exist: a plan looks at one of them.
"""

from __future__ import annotations

import json
import pickle
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
from pyroaring import BitMap

import lance_ops
from lance_ops.changing.deletion import FoundOffsets, plan_deletion
from lance_ops.core.file_names import new_deletion_file_id
from lance_ops.maintenance.compaction import CompactionOptions, plan_compaction
from lance_ops.reading import ScanRequest, bind_filter, plan_scan
from lance_ops.runners import Job
from lance_ops.snapshot import Snapshot
from lance_ops.table import DeletionFile, DeletionFileType, Fragment, decode_manifest, encode_manifest
from lance_ops.table.rows import join_bitmaps
from lance_ops.transactions import Append, Delete
from lance_ops.writing import commit_operation, write_deletion_files

__all__ = ["ALL_STEPS", "Step", "peak_bytes"]

T = TypeVar("T")
R = TypeVar("R")

_ROWS_OF_FRAGMENT = 100
_FRAGMENTS_OF_COMPACTION = 10

Timed = dict[str, float]
Step = Callable[[str, int], Timed]


def _commit(uri: str, count: int) -> Timed:
    """Receive as many fragments from tasks as one job writes, and commit them."""
    made = lance_ops.write_dataset(pa.table({"id": range(_ROWS_OF_FRAGMENT), "value": [0.5] * _ROWS_OF_FRAGMENT}), uri)
    outcomes = [pickle.dumps(fragment) for fragment in _fragments(made.snapshot, range(count))]
    begin = time.process_time()
    fragments = tuple(pickle.loads(outcome) for outcome in outcomes)
    received = time.process_time()
    commit_operation(made.snapshot, Append(fragments))
    ended = time.process_time()
    data = Path(uri, "data")
    shutil.copy(data / made.snapshot.manifest.fragments[0].files[0].path, data / _name(0))
    return {
        "outcome_bytes": sum(map(len, outcomes)) / count,
        "receive_s": received - begin,
        "commit_s": ended - received,
    }


def _fragments(snapshot: Snapshot, numbers: range) -> list[Fragment]:
    """Return fragments as tasks report them, each with a file of its own name."""
    first = snapshot.manifest.fragments[0]
    return [replace(first, files=(replace(first.files[0], path=_name(number)),)) for number in numbers]


def _name(number: int) -> str:
    return f"{number:024b}{number:026x}.lance"


def _bytes(uri: str, count: int) -> Timed:
    """Decode the manifest with every fragment, and encode it again."""
    snapshot = lance_ops.dataset(uri).snapshot
    data = max((Path(uri) / "_versions").iterdir(), key=lambda path: path.stat().st_size).read_bytes()
    begin = time.process_time()
    decoded = decode_manifest(data, "manifest")
    fragments = list(decoded.fragments)
    ended = time.process_time()
    assert len(fragments) == count + 1
    encode_manifest(replace(snapshot.manifest, fragments=type(decoded.fragments).of(fragments)), b"")
    return {"manifest_bytes": len(data), "decode_s": ended - begin, "encode_s": time.process_time() - ended}


def _open(uri: str, count: int) -> Timed:
    begin = time.process_time()
    dataset = lance_ops.dataset(uri)
    opened = time.process_time()
    assert dataset.count_rows() == (1 + count) * _ROWS_OF_FRAGMENT
    return {"open_s": opened - begin, "count_s": time.process_time() - opened}


def _append(uri: str, count: int) -> Timed:
    snapshot = lance_ops.dataset(uri).snapshot
    fragments = tuple(_fragments(snapshot, range(count, count + 1)))
    begin = time.process_time()
    commit_operation(snapshot, Append(fragments))
    return {"append_s": time.process_time() - begin}


def _plan_scan(uri: str, count: int) -> Timed:
    snapshot = lance_ops.dataset(uri).snapshot
    begin = time.process_time()
    plan = plan_scan(snapshot, ScanRequest(snapshot.schema.project(["value"])))
    assert len(plan.blocks.parts) >= count
    return {"plan_scan_s": time.process_time() - begin}


def _plan_compaction(uri: str, count: int) -> Timed:
    snapshot = lance_ops.dataset(uri).snapshot
    target = _ROWS_OF_FRAGMENT * _FRAGMENTS_OF_COMPACTION
    begin = time.process_time()
    plan = plan_compaction(snapshot, CompactionOptions(target_rows_per_fragment=target))
    planned = time.process_time()
    tasks = [pickle.dumps(task) for task in plan.tasks]
    return {
        "plan_compaction_s": planned - begin,
        "compaction_tasks": len(tasks),
        "task_bytes": sum(map(len, tasks)) / max(len(tasks), 1),
    }


def _delete(uri: str, count: int) -> Timed:
    """Receive the rows that tasks find in every fragment, have tasks write the deletion files, and commit them."""
    snapshot = lance_ops.dataset(uri).snapshot
    begin = time.process_time()
    plan = plan_deletion(snapshot, bind_filter(snapshot, "value < 1"))
    planned = time.process_time()
    came = [pickle.dumps(FoundOffsets({each: _found() for each in task.share.fragment_ids})) for task in plan.tasks]
    found = time.process_time()
    offsets = join_bitmaps(each.offsets for each in [pickle.loads(outcome) for outcome in came])
    assert len(offsets) > count
    runner = DeletionStandin(snapshot)
    written = write_deletion_files(snapshot, offsets, runner)
    commit_operation(snapshot, Delete(written.updated_fragments, (), plan.predicate.to_sql()))
    return {
        "plan_delete_s": planned - begin,
        "delete_s": time.process_time() - found,
        "deletion_tasks": runner.num_tasks,
        "deletion_sent_bytes": runner.sent_bytes,
    }


def _found() -> bytes:
    return BitMap(range(0, _ROWS_OF_FRAGMENT, 10)).serialize()


class DeletionStandin:
    """Reports for each task the deletion files that it would write, and writes none."""

    num_tasks = sent_bytes = 0

    def __init__(self, snapshot: Snapshot) -> None:
        self._version = snapshot.version

    def map(
        self,
        function: Callable[[T], R],
        tasks: Sequence[T],
        job: Job | None = None,
        discard: Callable[[R], None] | None = None,
    ) -> list[R]:
        """Hold all tasks as pickles and then all outcomes as pickles, as a driver of Spark does."""
        sent = [pickle.dumps(task) for task in tasks]
        self.num_tasks, self.sent_bytes = len(sent), sum(map(len, sent))
        came = [pickle.dumps(self._outcome(task)) for task in tasks]
        return [pickle.loads(each) for each in came]

    def _outcome(self, task: Any) -> dict[int, DeletionFile]:
        kind, num_rows = DeletionFileType.ARROW_ARRAY, _ROWS_OF_FRAGMENT // 10
        return {key: DeletionFile(self._version, new_deletion_file_id(), kind, num_rows) for key in task.offsets}


ALL_STEPS: dict[str, Step] = {
    "commit": _commit,
    "bytes": _bytes,
    "open": _open,
    "plan_scan": _plan_scan,
    "plan_compaction": _plan_compaction,
    "append": _append,
    "delete": _delete,
}
"""In this order: the first one makes the table, and the last two change it."""


def main() -> None:
    """Run one step, and print what it took."""
    step, count, uri = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    taken = ALL_STEPS[step](uri, count)
    print(json.dumps({**taken, f"{step}_peak_bytes": peak_bytes()}))


def peak_bytes() -> int:
    """Return the most memory that this process has held; unlike `ru_maxrss`, this forgets the parent's."""
    status = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))


if __name__ == "__main__":
    main()
