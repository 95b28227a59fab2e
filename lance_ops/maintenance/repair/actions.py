"""The actions of a repair. Each explains itself, and is applied on its own.

An action that changes the newest version commits a version of its own. The others commit nothing: they write a missing
file, a transaction's file or the hint again, delete a tag, or set a manifest aside that nobody can read.

No action deletes or overwrites a file of a version's rows or indices. A damaged file keeps its name, and older
versions still name it. The newest version names a new file in its place.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, ClassVar

from lance_ops.committers import write_hint
from lance_ops.core.errors import CorruptFile, RetryableConflict
from lance_ops.core.file_names import DATA_DIR, TRANSACTIONS_DIR, data_file_name, new_deletion_file_id
from lance_ops.core.records import dataclass
from lance_ops.indices import IndexConfig
from lance_ops.maintenance.indexing import create_scalar_index, drop_index
from lance_ops.refs import check_restores_no_erased_rows, delete_tag, pinned, reference_store
from lance_ops.snapshot import Snapshot
from lance_ops.store import Store
from lance_ops.table import (
    DataFile,
    DeletionFile,
    decode_deletion_vector,
    encode_deletion_vector,
    inline_transaction,
    with_deletion_file,
)
from lance_ops.table.manifest import ObjectLocation
from lance_ops.transactions import DataReplacement, DataReplacementGroup, Delete, PendingFiles, restore_as_next_version
from lance_ops.writing import commit_operation

__all__ = [
    "DeleteTag",
    "DropFragments",
    "DropIndex",
    "FileCopy",
    "PutFilesBack",
    "RebuildIndex",
    "RepairAction",
    "ReplaceDataFile",
    "ReplaceDeletionFile",
    "RestoreVersion",
    "RewriteHint",
    "RewriteTransactionFile",
]

_BYTES_AT_ONCE = 64 * 1024 * 1024


class RepairAction(ABC):
    """One step of a repair."""

    name: ClassVar[str]

    @property
    @abstractmethod
    def explanation(self) -> str:
        """What the action does, and which rows or changes it loses, if any."""

    @abstractmethod
    def apply(self, snapshot: Snapshot) -> Snapshot:
        """Mend the newest version, `snapshot`; return the newest version afterwards."""

    def to_dict(self) -> dict[str, Any]:
        """Return the action's name and explanation as values for JSON."""
        return {"action": self.name, "explanation": self.explanation}


@dataclass(frozen=True)
class FileCopy:
    """A file of another dataset, and the path beneath this root at which its bytes belong."""

    source: ObjectLocation
    path: str

    def write(self, target: Store, path: str) -> None:
        """Write the bytes to a path of the target, durably."""
        size = self.source.store.size(self.source.path)
        with target.open_writer(path) as writer:
            for start in range(0, size, _BYTES_AT_ONCE):
                stop = min(start + _BYTES_AT_ONCE, size)
                writer.write(self.source.store.get_range(self.source.path, start, stop))


@dataclass(frozen=True)
class PutFilesBack(RepairAction):
    """Write missing files again, under their names, with the bytes of a copy of the dataset."""

    files: tuple[FileCopy, ...]

    name = "put files back"

    @property
    def explanation(self) -> str:
        named = ", ".join(file.path for file in self.files)
        return (
            f"write {named} again with the bytes of {self.files[0].source.uri}; every version that names them is mended"
        )

    def apply(self, snapshot: Snapshot) -> Snapshot:
        for file in self.files:
            if not snapshot.store.exists(file.path):
                file.write(snapshot.store, file.path)
        return snapshot


@dataclass(frozen=True)
class ReplaceDataFile(RepairAction):
    """Commit a copy of a damaged data file, with its blob sidecars, under a new name."""

    fragment_id: int
    file: DataFile
    source: FileCopy
    sidecars: tuple[FileCopy, ...] = ()

    name = "replace data file"

    @property
    def explanation(self) -> str:
        return (
            f"commit the bytes of {self.source.source.uri} as a new file in the place of {self.file.path} in fragment "
            f"{self.fragment_id}; indices on its columns cover the fragment again after optimize_indices"
        )

    def apply(self, snapshot: Snapshot) -> Snapshot:
        fragment = snapshot.fragments_by_id.get(self.fragment_id)
        if fragment is None or self.file not in fragment.files:
            return snapshot  # another writer has replaced it
        new = replace(self.file, path=data_file_name(), base_id=None)
        folder = f"{DATA_DIR}/{new.path.removesuffix('.lance')}"
        copies = {f"{DATA_DIR}/{new.path}": self.source}
        copies |= {f"{folder}/{sidecar.path.rpartition('/')[2]}": sidecar for sidecar in self.sidecars}
        pending = PendingFiles.at(snapshot.store, copies)
        with pending.abandoned_on_failure():
            for path, copy in copies.items():
                copy.write(snapshot.store, path)
        group = DataReplacementGroup(self.fragment_id, new)
        return commit_operation(snapshot, DataReplacement((group,)), pending=pending)


@dataclass(frozen=True)
class ReplaceDeletionFile(RepairAction):
    """Commit the deletion vector of a copy in the place of a damaged deletion file."""

    fragment_id: int
    file: DeletionFile
    source: ObjectLocation

    name = "replace deletion file"

    @property
    def explanation(self) -> str:
        return f"commit the deletion vector of {self.source.uri} as fragment {self.fragment_id}'s; no row comes back"

    def apply(self, snapshot: Snapshot) -> Snapshot:
        fragment = snapshot.fragments_by_id.get(self.fragment_id)
        if fragment is None or fragment.deletion_file != self.file:
            return snapshot
        stored = self.source.store.get(self.source.path)
        vector = decode_deletion_vector(self.file, stored, fragment.physical_rows, self.source.uri)
        deletion_file, data = encode_deletion_vector(vector, snapshot.version, new_deletion_file_id())
        updated = with_deletion_file(fragment, deletion_file)
        assert updated.deletion_path is not None
        pending = PendingFiles.at(snapshot.store, [updated.deletion_path], durable=False)
        with pending.abandoned_on_failure():
            snapshot.store.put(updated.deletion_path, data, durable=False)
        return commit_operation(snapshot, Delete((updated,), ()), pending=pending)


@dataclass(frozen=True)
class RestoreVersion(RepairAction):
    """Make an older, whole version the newest one; `undone` are the operations that this takes back."""

    version: int
    newest: int
    undone: tuple[str, ...] = ()

    name = "restore version"

    @property
    def explanation(self) -> str:
        if not self.undone:
            return f"restore version {self.version}: the versions since then moved rows and changed none"
        return f"restore version {self.version}: this takes back {', '.join(self.undone)}"

    def apply(self, snapshot: Snapshot) -> Snapshot:
        if snapshot.version != self.newest:
            raise RetryableConflict(f"{snapshot.uri}: version {snapshot.version} appeared since the repair was planned")
        old = snapshot.at(self.version)
        with pinned(old):  # it is committed after the planned version alone, so that it takes back nothing else
            check_restores_no_erased_rows(old)
            made = restore_as_next_version(snapshot.committer, snapshot.store, old.manifest, snapshot.manifest)
        return snapshot.with_manifest(made)


@dataclass(frozen=True)
class RebuildIndex(RepairAction):
    """Build an index again from the rows, in the place of a damaged one."""

    index_name: str
    column: str
    index_type: str
    parameters: tuple[tuple[str, Any], ...] = ()

    name = "rebuild index"

    @property
    def explanation(self) -> str:
        return f"build the {self.index_type} index {self.index_name!r} on {self.column} again from the rows"

    def apply(self, snapshot: Snapshot) -> Snapshot:
        config = IndexConfig(self.index_type, dict(self.parameters))
        return create_scalar_index(snapshot, self.column, config, self.index_name)


@dataclass(frozen=True)
class DropIndex(RepairAction):
    """Drop a damaged index that cannot be built again here."""

    index_name: str
    reason: str

    name = "drop index"

    @property
    def explanation(self) -> str:
        return f"drop index {self.index_name!r}: {self.reason}; no row is touched, and scans answer instead"

    def apply(self, snapshot: Snapshot) -> Snapshot:
        return drop_index(snapshot, self.index_name)


@dataclass(frozen=True)
class DropFragments(RepairAction):
    """Delete all rows of damaged fragments. Older versions keep those rows, as far as they can be read."""

    fragment_ids: tuple[int, ...]
    num_rows: int

    name = "drop damaged rows"

    @property
    def explanation(self) -> str:
        named = ", ".join(map(str, self.fragment_ids))
        return f"delete the {self.num_rows} rows of fragments {named}, because the caller allowed it"

    def apply(self, snapshot: Snapshot) -> Snapshot:
        there = tuple(number for number in self.fragment_ids if number in snapshot.fragments_by_id)
        return commit_operation(snapshot, Delete((), there, "damaged fragments")) if there else snapshot


@dataclass(frozen=True)
class RewriteHint(RepairAction):
    """Write the hint at the newest version again."""

    name = "rewrite version hint"

    @property
    def explanation(self) -> str:
        return "write the hint at the newest version again; it only speeds up readers"

    def apply(self, snapshot: Snapshot) -> Snapshot:
        write_hint(snapshot.store, snapshot.latest().version, None)
        return snapshot


@dataclass(frozen=True)
class RewriteTransactionFile(RepairAction):
    """Write a transaction's file again from the copy in the manifest."""

    file_name: str
    version: int

    name = "rewrite transaction file"

    @property
    def explanation(self) -> str:
        return (
            f"write {TRANSACTIONS_DIR}/{self.file_name} again: the manifest of version {self.version} holds its bytes"
        )

    def apply(self, snapshot: Snapshot) -> Snapshot:
        owner = snapshot.at(self.version)
        data = inline_transaction(owner.committer.read(self.version), owner.manifest_uri)
        if data is None:
            raise CorruptFile(owner.manifest_uri, "transaction section", "the manifest holds no transaction")
        snapshot.store.put(f"{TRANSACTIONS_DIR}/{self.file_name}", data)
        return snapshot


@dataclass(frozen=True)
class DeleteTag(RepairAction):
    """Delete a tag whose version does not exist."""

    tag: str

    name = "delete tag"

    @property
    def explanation(self) -> str:
        return f"delete tag {self.tag!r}, whose version does not exist: clean-up removes nothing while it is there"

    def apply(self, snapshot: Snapshot) -> Snapshot:
        delete_tag(reference_store(snapshot), self.tag)
        return snapshot
