"""Delete files with a limit on deletes per second and on deletes at once, also by tasks that share the limit.

On a slow disk several threads delete.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from lance_ops.core.records import dataclass
from lance_ops.core.threads import map_ordered
from lance_ops.maintenance.cleanup.shared_work import CleanupTasks, cut
from lance_ops.runners import Job
from lance_ops.snapshot import Snapshot, SnapshotReference
from lance_ops.store import ObjectInfo, Store

__all__ = ["DeleteTask", "Pace", "delete_by_tasks", "delete_files", "delete_in_place"]

T = TypeVar("T")
R = TypeVar("R")

_BYTES_AT_ONCE = 256 << 20
"""A file system takes about 20 ms to free as much, far longer than to hand files to another thread."""
_FILES_IN_A_PART = 16
"""Enough to tell a slow disk from a fast one, and little of what threads could have deleted meanwhile."""
_LONG_WAIT_SECONDS = 0.001
"""What a part waits for a slow disk at least: there each file takes milliseconds."""
_LONG_WAITS = 2
"""In a row: a single one may be a wait for a processor or for another thread of this process."""


class Pace:
    """Waits so that at most `per_second` deletions happen in a second; None sets no limit.

    Also notes whether deletions seem to have waited for the disk.
    """

    def __init__(self, per_second: int | None) -> None:
        self.is_set = per_second is not None
        self.has_waited_for_disk = False
        self._interval = 1 / per_second if per_second else 0.0
        self._next = time.monotonic()

    def wait(self) -> None:
        """Return when the next deletion may begin."""
        if self._interval:
            time.sleep(max(self._next - time.monotonic(), 0))
            self._next = max(self._next, time.monotonic()) + self._interval


def delete_in_place(delete: Callable[[Sequence[T]], R], items: Sequence[T], pace: Pace, at_once: int) -> Iterator[R]:
    """Yield what `delete` returns for parts of the items on a local disk, or raise what it raises.

    The caller passes a pace without a limit, and it keeps what is found out here.

    This thread deletes parts until two in a row seem to have waited for the disk; then `at_once` threads delete the
    others. Where the file system hands freed blocks back to the disk at once (mount option `discard`), each file takes
    milliseconds. Elsewhere threads would wait for each other, because the system locks a directory while it removes a
    name.
    """
    parts = iter(cut(items, _FILES_IN_A_PART))
    num_waits = 0
    while not pace.has_waited_for_disk and (part := next(parts, None)) is not None:
        began, began_work = time.perf_counter(), time.thread_time()
        yield delete(part)
        waited = time.perf_counter() - began - (time.thread_time() - began_work)
        num_waits = num_waits + 1 if waited > _LONG_WAIT_SECONDS else 0
        pace.has_waited_for_disk = num_waits == _LONG_WAITS
    yield from map_ordered(delete, parts, min(at_once, len(items) // _FILES_IN_A_PART), at_once)


def delete_files(
    store: Store, infos: Sequence[ObjectInfo], pace: Pace, at_once: int
) -> tuple[list[ObjectInfo], list[ObjectInfo]]:
    """Delete files; return those that are deleted, and those that the store failed to delete.

    With a pace one file is deleted after the other; otherwise many in one request, if the store has such a request.
    """

    def delete(paths: Sequence[str]) -> set[str]:
        pace.wait()
        return store.delete_several(paths)

    requests = _requests(store, infos, 1 if pace.is_set else store.deleted_at_once)
    workers = 1 if pace.is_set else min(at_once, len(requests))
    if store.reads_in_place and not pace.is_set and len(requests) == 1:
        failed = set().union(*delete_in_place(store.delete_several, requests[0], pace, at_once))
    else:
        failed = set().union(*map_ordered(delete, requests, workers, workers))
    if not failed:
        return [*infos], []
    return [info for info in infos if info.path not in failed], [info for info in infos if info.path in failed]


def _requests(store: Store, infos: Sequence[ObjectInfo], most: int) -> list[list[str]]:
    """Return the paths in equal parts of at most `most` files, which in a file system have some `_BYTES_AT_ONCE`."""
    paths = [info.path for info in infos]
    if store.reads_in_place and paths:
        num_bytes = sum(info.size_bytes for info in infos)
        most = max(1, min(most, len(paths) * _BYTES_AT_ONCE // max(num_bytes, 1)))
    return [paths[at : at + most] for at in range(0, len(paths), most)]


@dataclass(frozen=True)
class DeleteTask:
    """Deletes files in a task, at most `per_second` of them in a second; None sets no limit."""

    snapshot: SnapshotReference
    per_second: int | None
    at_once: int

    def __call__(self, infos: Sequence[ObjectInfo]) -> set[str]:
        """Return the paths of files that the store failed to delete."""
        _, failed = delete_files(self.snapshot.open().store, infos, Pace(self.per_second), self.at_once)
        return {info.path for info in failed}


def delete_by_tasks(
    snapshot: Snapshot, infos: Sequence[ObjectInfo], tasks: CleanupTasks, per_second: int | None, at_once: int
) -> tuple[list[ObjectInfo], list[ObjectInfo]]:
    """Delete files by tasks; return what `delete_files` returns.

    Any number of the tasks may run at once, so each of them gets its share of the rate: there are at most as many tasks
    as deletes in a second.
    """
    num_tasks = -(-len(infos) // tasks.deletes_per_task)
    if per_second is not None:
        num_tasks = min(num_tasks, per_second)
    parts = cut(infos, -(-len(infos) // num_tasks))
    share = None if per_second is None else per_second // len(parts)
    task = DeleteTask(SnapshotReference.of(snapshot), share, at_once)
    job = Job.on("delete files of", snapshot.uri, snapshot.version)
    job = job.in_bytes(sum(info.size_bytes for info in part) for part in parts)
    failed = set().union(*tasks.runner.map(task, parts, job))
    return [info for info in infos if info.path not in failed], [info for info in infos if info.path in failed]
