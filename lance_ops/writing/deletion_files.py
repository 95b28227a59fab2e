"""Write deletion files that mark more rows of some fragments as deleted, here or in tasks.

The rows to delete are bitmaps in the calling process. A task gets the bitmaps of its fragments, reads their deletion
vectors so far, and writes their files. It answers with the metadata of these files, about 100 bytes a fragment.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from functools import partial

from pyroaring import BitMap

from lance_ops.core.file_names import new_deletion_file_id
from lance_ops.core.records import dataclass
from lance_ops.core.threads import map_ordered
from lance_ops.runners import InThreads, Job, Runner
from lance_ops.snapshot import Snapshot, SnapshotReference
from lance_ops.table import DeletionFile, Fragment, encode_deletion_vector, with_deletion_file
from lance_ops.transactions import PendingFiles, PendingFilesBuilder, remove_files_of_job

__all__ = ["WrittenDeletions", "write_deletion_files"]

_WRITTEN_AHEAD = 16

_TIMED_FILES = 8
_SLOW_SECONDS = 0.002
_SLOW_WRITERS = 16
"""Threads that write if the first files of a local root take this long each, because a server stores them."""

_FEWEST_FOR_TASKS = 512
"""This process writes fewer files to an object store in a few seconds, so tasks would not be worth their start."""
_FRAGMENTS_PER_TASK = 128
_BYTES_PER_TASK = 8 << 20
"""Of the bitmaps that a task gets, unless one fragment has a larger one."""


@dataclass(frozen=True)
class WrittenDeletions:
    """Fragments with a larger deletion vector, the ids of fragments without a live row, and the deletion files."""

    updated_fragments: tuple[Fragment, ...]
    removed_fragment_ids: tuple[int, ...]
    pending: PendingFiles

    @classmethod
    def of(cls, snapshot: Snapshot, files: Mapping[int, DeletionFile | None]) -> WrittenDeletions:
        """Return what was written: the deletion file of each fragment, or None if the fragment has no live row."""
        fragments = snapshot.fragments_by_id
        updated = tuple(with_deletion_file(fragments[key], file) for key, file in files.items() if file is not None)
        return cls(
            updated_fragments=updated,
            removed_fragment_ids=tuple(key for key, file in files.items() if file is None),
            pending=_pending(snapshot, files),
        )


@dataclass(frozen=True)
class DeletionFilesTask:
    """Fragments of one version, each with a serialized bitmap of the physical offsets to delete."""

    snapshot: SnapshotReference
    offsets: Mapping[int, bytes]


def write_deletion_files(
    snapshot: Snapshot, offsets: Mapping[int, BitMap], runner: Runner | None = None
) -> WrittenDeletions:
    """Write a deletion file for each fragment: its deleted rows so far, and the rows at the physical `offsets`.

    The files are not durable yet. When one cannot be written, all are deleted.

    The tasks of a `runner` write them if it has workers elsewhere and there are many fragments. Without a runner, this
    process does. Beneath a local root this thread then writes all of them unless the first ones are slow: threads would
    wait for each other far longer than writing a file takes.
    """
    if runner is None or isinstance(runner, InThreads) or len(offsets) < _FEWEST_FOR_TASKS:
        return WrittenDeletions.of(snapshot, _write(snapshot, offsets))
    reference = SnapshotReference.of(snapshot)
    tasks = [DeletionFilesTask(reference, part) for part in _parts(offsets)]
    job = Job.on(
        "write deletion files of",
        snapshot.uri,
        snapshot.version,
        tuple(len(task.offsets) for task in tasks),
        partial(remove_files_of_job, snapshot.store),
    )
    outcomes = runner.map(
        write_deletion_files_in_task, tasks, job, lambda outcome: _pending(snapshot, outcome).abandon()
    )
    return WrittenDeletions.of(snapshot, {key: file for outcome in outcomes for key, file in outcome.items()})


def write_deletion_files_in_task(task: DeletionFilesTask) -> dict[int, DeletionFile | None]:
    """Write the deletion files of the task's fragments; None stands for a fragment without a live row."""
    return _write(task.snapshot.open(), {key: BitMap.deserialize(data) for key, data in task.offsets.items()})


def _write(snapshot: Snapshot, offsets: Mapping[int, BitMap]) -> dict[int, DeletionFile | None]:
    files = PendingFilesBuilder(snapshot.store, durable=False)

    def write_one(fragment_id: int) -> DeletionFile | None:
        fragment = snapshot.fragments_by_id[fragment_id]
        vector = snapshot.deletion_vector(fragment) | offsets[fragment_id]
        if len(vector) == fragment.physical_rows:
            return None
        deletion_file, data = encode_deletion_vector(vector, snapshot.version, new_deletion_file_id())
        path = deletion_file.path(fragment_id)
        files.add(path)
        snapshot.store.put(path, data, durable=False)
        return deletion_file

    ids = sorted(offsets)
    with files.abandoned_on_failure():
        written: list[DeletionFile | None] = []
        workers = min(snapshot.calls_at_once, len(ids))
        if snapshot.store.reads_in_place:
            begun = time.perf_counter()
            written += map(write_one, ids[:_TIMED_FILES])
            is_slow = time.perf_counter() - begun > _SLOW_SECONDS * len(written)
            workers = _SLOW_WRITERS if is_slow else 1
        written += map_ordered(write_one, ids[len(written) :], workers, _WRITTEN_AHEAD)
    return dict(zip(ids, written, strict=True))


def _pending(snapshot: Snapshot, files: Mapping[int, DeletionFile | None]) -> PendingFiles:
    paths = (file.path(fragment_id) for fragment_id, file in files.items() if file is not None)
    return PendingFiles.at(snapshot.store, paths, durable=False)


def _parts(offsets: Mapping[int, BitMap]) -> Iterator[dict[int, bytes]]:
    """Yield the bitmaps of each task, ascending by fragment, limited in number and in bytes."""
    part: dict[int, bytes] = {}
    num_bytes = 0
    for fragment_id in sorted(offsets):
        data = offsets[fragment_id].serialize()
        if part and (len(part) == _FRAGMENTS_PER_TASK or num_bytes + len(data) > _BYTES_PER_TASK):
            yield part
            part, num_bytes = {}, 0
        part[fragment_id] = data
        num_bytes += len(data)
    if part:
        yield part
