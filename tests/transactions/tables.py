"""Small tables on a memory store that have manifests and deletion files, but no data files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from pyroaring import BitMap

from lance_ops.committers import Committer, PutIfAbsentCommitter
from lance_ops.core.file_names import DELETIONS_DIR, new_deletion_file_id
from lance_ops.store import MemoryStore, Store
from lance_ops.table import Manifest, decode_deletion_vector, encode_deletion_vector
from lance_ops.transactions import CommitResult, Delete, Operation, Overwrite, Transaction, commit, read_manifest
from tests.table.samples import SCHEMA
from tests.transactions.samples import new_fragment


class Table:
    """A dataset's store and committer."""

    def __init__(self, store: Store | None = None, committer: Committer | None = None, fragments: int = 2) -> None:
        self.store = store or MemoryStore()
        self.committer = committer or PutIfAbsentCommitter(self.store)
        if self.committer.latest() is None and fragments:
            first = Overwrite(tuple(new_fragment(f"first{number}") for number in range(fragments)), SCHEMA)
            commit(self.committer, self.store, Transaction(0, first))

    @property
    def newest(self) -> Manifest:
        version = self.committer.latest()
        assert version is not None
        return self.read(version)

    def read(self, version: int) -> Manifest:
        return read_manifest(self.store, self.committer, version)

    def commit(
        self, operation: Operation, read_version: int | None = None, properties: Mapping[str, str] | None = None
    ) -> CommitResult:
        """Commit an operation planned on `read_version`, by default the newest."""
        planned = self.newest.version if read_version is None else read_version
        return commit(
            self.committer, self.store, Transaction(planned, operation, transaction_properties=dict(properties or {}))
        )

    def delete(self, rows: dict[int, Iterable[int]], read_version: int | None = None) -> Delete:
        """Write deletion files for these offsets, by fragment, and return the deletion."""
        planned = self.newest if read_version is None else self.read(read_version)
        updated, emptied = [], []
        for fragment_id, offsets in rows.items():
            fragment = planned.fragment(fragment_id)
            assert fragment is not None
            vector = self.deleted(planned, fragment_id) | BitMap(offsets)
            if len(vector) == fragment.physical_rows:
                emptied.append(fragment_id)
                continue
            deletion_file, data = encode_deletion_vector(vector, planned.version, new_deletion_file_id())
            self.store.put(f"{DELETIONS_DIR}/{deletion_file.name(fragment_id)}", data)
            updated.append(replace(fragment, deletion_file=deletion_file))
        return Delete(tuple(updated), tuple(emptied))

    def deleted(self, manifest: Manifest, fragment_id: int) -> BitMap:
        """Return the deleted offsets of a fragment."""
        fragment = manifest.fragment(fragment_id)
        assert fragment is not None
        if fragment.deletion_file is None:
            return BitMap()
        path = f"{DELETIONS_DIR}/{fragment.deletion_file.name(fragment_id)}"
        return decode_deletion_vector(fragment.deletion_file, self.store.get(path), fragment.physical_rows, path)

    def files(self, directory: str) -> set[str]:
        """Return the paths of all objects in a directory."""
        return {info.path for info in self.store.list(directory)}
