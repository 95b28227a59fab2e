"""List the files of a table's folders that clean-up may remove: in the calling process, or a folder in each task."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from lance_ops.core.records import dataclass
from lance_ops.maintenance.cleanup.named_files import NamedFiles
from lance_ops.maintenance.cleanup.shared_work import CleanupTasks
from lance_ops.runners import Job
from lance_ops.snapshot import Snapshot, SnapshotReference
from lance_ops.store import ObjectInfo

__all__ = ["ListTask", "begin_listings"]


@dataclass(frozen=True)
class ListTask:
    """Lists the files beneath a folder, without those that the version names."""

    snapshot: SnapshotReference

    def __call__(self, folder: str) -> list[ObjectInfo]:
        """Return the files."""
        snapshot = self.snapshot.open()
        named = NamedFiles(snapshot.uri)
        named.add(snapshot.manifest)
        return [info for info in snapshot.store.list(folder) if info.path not in named]


def begin_listings(
    snapshot: Snapshot,
    folders: Sequence[str],
    is_removable: Callable[[ObjectInfo], bool],
    tasks: CleanupTasks | None = None,
) -> list[Callable[[], tuple[ObjectInfo, ...]]]:
    """Return a function for each folder that waits for its removable files; none of them is one of the snapshot's."""
    if tasks is not None and len(snapshot.manifest.fragments) >= tasks.least_fragments:
        job = Job.on("list folders to clean up", snapshot.uri, snapshot.version)
        found = tasks.runner.map(ListTask(SnapshotReference.of(snapshot)), folders, job)
        return [partial(_removable, infos, is_removable) for infos in found]
    store = snapshot.store
    return [store.begin_call(partial(_listed, snapshot, folder, is_removable)) for folder in folders]


def _listed(snapshot: Snapshot, folder: str, is_removable: Callable[[ObjectInfo], bool]) -> tuple[ObjectInfo, ...]:
    return tuple(filter(is_removable, snapshot.store.list(folder)))


def _removable(infos: Sequence[ObjectInfo], is_removable: Callable[[ObjectInfo], bool]) -> tuple[ObjectInfo, ...]:
    return tuple(filter(is_removable, infos))
