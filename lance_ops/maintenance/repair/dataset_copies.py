"""Find, in a copy of a dataset, the files that have the original bytes of damaged or missing ones.

A name of a data file is random and is never used again, so a file of the same path is the same file: a copy of the
folder has those. A deep clone has its own names. Its first version was made by a `Clone`, which names the version that
it was made from. That version's files and the clone's stand in the same order, so they correspond one by one.

A file that cannot be identified in one of these ways is not used, even if it has the same size and columns. Every file
is checked in full before it is used.
"""

from __future__ import annotations

from collections.abc import Mapping

from lance_ops.core.cached_property import cached_property
from lance_ops.core.errors import InvalidInput, LanceOpsError
from lance_ops.core.file_names import DATA_DIR, DELETIONS_DIR
from lance_ops.core.records import dataclass
from lance_ops.core.versions import FileVersion
from lance_ops.file import FileReader, checksum_report
from lance_ops.maintenance.repair.actions import FileCopy
from lance_ops.snapshot import Snapshot
from lance_ops.table import DataFile, Fragment, decode_deletion_vector
from lance_ops.table.manifest import ObjectLocation
from lance_ops.transactions import Clone, read_version

__all__ = ["DatasetCopy"]

_BATCH_ROWS = 1 << 16


@dataclass(frozen=True, eq=False)
class DatasetCopy:
    """A copy of a dataset that the caller gave."""

    original: Snapshot
    copy: Snapshot

    @classmethod
    def open(cls, original: Snapshot, uri: str, storage_options: Mapping[str, str] | None) -> DatasetCopy:
        """Open a copy; raise as `Snapshot.open` does, and `InvalidInput` for the dataset itself."""
        options = original.storage_options if storage_options is None else storage_options
        opened = Snapshot.open(uri, storage_options=options)
        if opened.uri == original.uri:
            raise InvalidInput(f"{uri} is the damaged dataset itself, not a copy of it")
        return cls(original, opened)

    def data_file(self, fragment: Fragment, file: DataFile) -> FileCopy | None:
        """Return the copy of a data file, if there is one and it is whole."""
        located = self._same_path(f"{DATA_DIR}/{file.path}") if file.base_id is None else None
        located = located or self._cloned_data_file(fragment, file)
        if located is None or not _is_whole(located, fragment, file):
            return None
        return FileCopy(located, f"{DATA_DIR}/{file.path}")

    def sidecars(self, file: DataFile, source: FileCopy) -> tuple[FileCopy, ...] | None:
        """Return the blob sidecars of a copied data file, with the paths that the damaged file's sidecars have.

        Returns None if one of them does not have the checksums that it carries.
        """
        folder = source.source.path.removesuffix(".lance")
        target = f"{DATA_DIR}/{file.path.removesuffix('.lance')}"
        store = source.source.store
        paths = [info.path for info in store.list(f"{folder}/")]
        if any(checksum_report(store, path).damaged for path in paths):
            return None
        return tuple(FileCopy(ObjectLocation(store, path), f"{target}/{path.rpartition('/')[2]}") for path in paths)

    def deletion_file(self, fragment: Fragment) -> FileCopy | None:
        """Return the copy of a fragment's deletion file, if there is one and its vector fits the fragment."""
        file = fragment.deletion_file
        assert file is not None
        path = f"{DELETIONS_DIR}/{file.name(fragment.id)}"
        located = self._same_path(path) if file.base_id is None else None
        located = located or self._cloned_deletion_file(fragment)
        if located is None:
            return None
        try:
            decode_deletion_vector(file, located.store.get(located.path), fragment.physical_rows, located.uri)
        except LanceOpsError:
            return None
        return FileCopy(located, path)

    def _same_path(self, path: str) -> ObjectLocation | None:
        return ObjectLocation(self.copy.store, path) if self.copy.store.exists(path) else None

    def _cloned_data_file(self, fragment: Fragment, file: DataFile) -> ObjectLocation | None:
        if self._clone is None or (pair := self._clone.fragments(fragment.id)) is None:
            return None
        ours, theirs = pair
        if file not in ours.files or len(ours.files) != len(theirs.files):
            return None
        twin = theirs.files[ours.files.index(file)]
        same = (twin.fields, twin.column_indices, twin.numbers) == (file.fields, file.column_indices, file.numbers)
        return self._clone.made.file_locations.data_file(twin.base_id, twin.path) if same else None

    def _cloned_deletion_file(self, fragment: Fragment) -> ObjectLocation | None:
        if self._clone is None or (pair := self._clone.fragments(fragment.id)) is None:
            return None
        ours, theirs = pair
        mine, twin = ours.deletion_file, theirs.deletion_file
        if mine is None or twin is None or mine != fragment.deletion_file or mine.file_type is not twin.file_type:
            return None
        return self._clone.made.file_locations.deletion_file(theirs)

    @cached_property
    def _clone(self) -> _DeepClone | None:
        """The version that the copy was made from and the copy's first version; None if it is no deep clone of it."""
        try:
            first = self.copy.committer.versions()[0]
            made = read_version(self.copy.store, self.copy.committer, first).transaction
            operation = None if made is None else made.operation
            if not isinstance(operation, Clone) or operation.is_shallow:
                return None
            is_ours = operation.ref_path.rstrip("/") == self.original.uri
            if not is_ours or operation.ref_name != self.original.manifest.branch:
                return None
            return _DeepClone(self.original.at(operation.ref_version), self.copy.at(first))
        except LanceOpsError:  # for example, the version that the copy was made from is not retained
            return None


@dataclass(frozen=True, eq=False)
class _DeepClone:
    """A version, and the first version of its deep clone: their files stand in the same order."""

    source: Snapshot
    made: Snapshot

    def fragments(self, fragment_id: int) -> tuple[Fragment, Fragment] | None:
        """Return a fragment of the source and its copy."""
        found = [opened.manifest.fragment(fragment_id) for opened in (self.source, self.made)]
        ours, theirs = found
        return None if ours is None or theirs is None else (ours, theirs)


def _is_whole(location: ObjectLocation, fragment: Fragment, file: DataFile) -> bool:
    """Return whether a file has the recorded size and rows, its checksums if it carries any, and pages that decode."""
    try:
        if checksum_report(location.store, location.path).damaged:
            return False
        reader = FileReader(location.store, location.path, file.file_size_bytes)
        if reader.num_rows != fragment.physical_rows:
            return False
        if reader.version is not FileVersion.V0_1:  # the dictionaries of a 0.1 file are in the table's manifest
            for _ in reader.iter_batches(batch_rows=_BATCH_ROWS):
                pass
    except LanceOpsError:
        return False
    return True
