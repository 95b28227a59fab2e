"""The tasks of a deep clone: each copies one file of a version, and verifies it on the way.

Tasks name files as the version does, not by store, so that they can be pickled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import Enum
from uuid import UUID

from lance_ops.committers import open_root
from lance_ops.core.errors import CorruptFile
from lance_ops.core.file_names import DELETIONS_DIR
from lance_ops.core.records import dataclass
from lance_ops.file import copy_verified
from lance_ops.snapshot import Snapshot, SnapshotReference
from lance_ops.store import Store
from lance_ops.table import check_deletion_file
from lance_ops.table.manifest import ObjectLocation

__all__ = ["CopiedFile", "CopyTask", "FileKind", "copy_file", "location_of"]


class FileKind(Enum):
    """How a version names a file."""

    DATA = "data"
    DELETIONS = "deletions"
    INDEX = "index"


@dataclass(frozen=True)
class CopiedFile:
    """A file of the source: a data file or its sidecar under a base, a fragment's deletions, or a file of an index.

    `path` is relative to the root that holds the file. `size_bytes` is 0 where the version does not say it.
    """

    kind: FileKind
    path: str
    base_id: int | None = None
    fragment_id: int | None = None
    index_id: UUID | None = None
    size_bytes: int = 0


@dataclass(frozen=True)
class CopyTask:
    """A file to copy to `target_path` beneath the root of the new dataset."""

    source: SnapshotReference
    file: CopiedFile
    target_uri: str
    target_path: str
    target_options: Mapping[str, str] = field(default_factory=dict, repr=False)


def copy_file(task: CopyTask) -> int:
    """Copy the file and return its size in bytes; raise `ChecksumMismatch` if its checksums do not fit.

    Raises `CorruptFile` for a file of another size than the version says, and for a data file that is none: a hostile
    manifest may name any file of this machine.
    """
    snapshot = task.source.open()
    source = location_of(snapshot, task.file)
    size = _copy(source, open_root(task.target_uri, task.target_options).store, task.target_path)
    if task.file.size_bytes not in (0, size):
        raise CorruptFile(source.uri, "size", f"{size} bytes, and the manifest says {task.file.size_bytes}")
    return size


def location_of(snapshot: Snapshot, file: CopiedFile) -> ObjectLocation:
    """Return where a file of the version is."""
    if file.kind is FileKind.DELETIONS:
        assert file.fragment_id is not None
        fragment = next(iter(snapshot.manifest.fragments.having({file.fragment_id})))
        return snapshot.file_locations.deletion_file(fragment)
    if file.kind is FileKind.INDEX:
        index = next(index for index in snapshot.manifest.indices if index.uuid == file.index_id)
        return ObjectLocation(snapshot.index_root(index), file.path)
    return snapshot.file_locations.data_file(file.base_id, file.path)


def _copy(source: ObjectLocation, target: Store, path: str) -> int:
    if path.startswith(f"{DELETIONS_DIR}/"):
        data = source.store.get(source.path)
        check_deletion_file(path, data, source.uri)
        target.put(path, data)
        return len(data)
    return copy_verified(source.store, source.path, target, path, must_be_lance=path.endswith(".lance"))
