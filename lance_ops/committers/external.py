"""Commit through an external manifest store, for object stores without a conditional create.

The manifest is staged under a fresh name, and whoever inserts the version's row, naming the staged manifest, has made
the version. Then the manifest is copied to its final name, the row is made to name that, and the staged one is deleted.
A writer that stops on the way leaves a version that counts: whoever meets a row with a staged name does the rest, and
doing it twice does no harm. Source: the external manifest store of the public table specification.

An insert that landed can look like a failure. The staged name is ours alone, and the bytes are the identity of a
commit: a row with either is our commit. No row: the same insert is sent again, so that a delayed first one can only
collide with itself.
"""

from __future__ import annotations

import random
import time
import uuid
from contextlib import suppress

import pyarrow as pa

from lance_ops.committers.contract import CommitOutcome, Committed, Committer, Conflict, Unknown
from lance_ops.committers.manifest_stores.contract import ManifestRow, ManifestStore
from lance_ops.committers.put_if_absent import check_version
from lance_ops.committers.versions_directory import list_newest, list_versions, manifest_path
from lance_ops.core.errors import CorruptFile, ObjectNotFound, StoreError, VersionNotFound, WriteRefused
from lance_ops.core.names import VERSIONS_DIR, ManifestNaming, parse_manifest_name
from lance_ops.store.contract import Store

__all__ = ["ExternalManifestCommitter"]

_UUID_LENGTH = len(f"-{uuid.uuid4()}")


class ExternalManifestCommitter(Committer):
    """Versions as files in `_versions`, each made by a row in a manifest store.

    A dataset that was there before its manifest store keeps its versions. A commit of doubtful outcome is tried
    `attempts` times, `pause_seconds` apart at first and twice as long each time.
    """

    def __init__(
        self, store: Store, manifest_store: ManifestStore, *, attempts: int = 5, pause_seconds: float = 0.1
    ) -> None:
        self._store = store
        self._rows = manifest_store
        self._attempts = attempts
        self._pause_seconds = pause_seconds
        self._naming: ManifestNaming | None = None  # of the manifests last seen

    def __repr__(self) -> str:
        return f"ExternalManifestCommitter({self._store!r}, {self._rows!r})"

    def latest(self) -> int | None:
        row = self._rows.newest()
        if row is None:
            return max(list_newest(self._store).versions, default=None)
        self._finish(row)
        return row.version

    def versions(self) -> list[int]:
        newest = self._rows.newest()
        if newest is not None:  # of older ones, each was finished by whoever made the next
            self._finish(newest)
        return list(list_versions(self._store).versions)

    def exists(self, version: int) -> bool:
        if self._store.exists(self.location(version)):
            return True
        row = self._rows.get(version)
        return row is not None and self._finish(row)

    def location(self, version: int) -> str:
        check_version(version)
        if self._naming is None:
            self._naming = list_newest(self._store).naming
        return manifest_path(version, self._naming or ManifestNaming.V2)

    def read(self, version: int) -> pa.Buffer:
        path = self.location(version)
        try:
            return self._store.get(path)
        except ObjectNotFound:
            row = self._rows.get(version)
            if row is not None and self._finish(row):
                return self._store.get(path)
            self._naming = None  # all manifests may have been renamed since they were last seen
            raise VersionNotFound(f"{self._store.uri} has no version {version}") from None

    def commit(self, version: int, data: bytes) -> CommitOutcome:
        path = self.location(version)
        if self._rows.get(version) is None and self._store.exists(path):  # made without the manifest store
            found = self._store.get(path)
            return Committed(version, path, recognised=True) if _same(found, data) else Conflict(version, found)
        staged = ManifestRow(version, f"{path}-{uuid.uuid4()}", len(data))
        try:
            self._store.put(staged.path, data)
        except StoreError as error:
            self._forget(staged.path)
            raise WriteRefused(f"{self._store.uri}: the manifest cannot be staged: {error}") from error
        try:
            outcome = self._insert(staged, path, data)
        except VersionNotFound as error:
            self._forget(staged.path)
            raise WriteRefused(f"version {version} was there, and clean-up removed it: {error}") from error
        if isinstance(outcome, Conflict):
            self._forget(staged.path)
        elif isinstance(outcome, Committed):
            with suppress(StoreError):  # the version stands; the next who looks finishes it
                self._finish(staged)
        return outcome

    def remove(self, version: int) -> None:
        self._store.delete(self.location(version))

    def _insert(self, staged: ManifestRow, path: str, data: bytes) -> CommitOutcome:
        version = staged.version
        doubt: str | None = None
        for attempt in range(self._attempts):
            if attempt:
                time.sleep(self._pause_seconds * 2 ** (attempt - 1) * random.uniform(0.5, 1.0))
            refusal: WriteRefused | None = None
            try:
                if self._rows.insert(staged):
                    return Committed(version, path)
                answer = "the manifest store said that the version exists, and then that it does not"
            except WriteRefused as error:
                refusal = error if doubt is None else None
                answer = str(error)
            except StoreError as error:
                answer = str(error)
            try:
                row = self._rows.get(version)
                if row is not None:
                    return self._whose(row, staged, path, data)
            except StoreError as error:
                answer = str(error)
            if refusal is not None:
                self._forget(staged.path)
                raise refusal
            doubt = answer
        return Unknown(version, doubt or "no attempt was made")

    def _whose(self, row: ManifestRow, staged: ManifestRow, path: str, data: bytes) -> CommitOutcome:
        """Say who made a version that has a row. Raises `VersionNotFound` if it was removed since."""
        if row.path == staged.path:
            return Committed(row.version, path, recognised=True)
        theirs = self.read(row.version)
        return Committed(row.version, path, recognised=True) if _same(theirs, data) else Conflict(row.version, theirs)

    def _finish(self, row: ManifestRow) -> bool:
        """Give a staged manifest its final name; return whether it is there: clean-up may have removed it."""
        final = self._final_path(row)
        if row.path == final:
            return self._store.exists(final)
        try:
            self._store.copy(row.path, final)
        except ObjectNotFound:  # another finished it since the row was read
            return self._store.exists(final)
        self._rows.replace(ManifestRow(row.version, final, row.size_bytes))
        self._forget(row.path)
        return True

    def _final_path(self, row: ManifestRow) -> str:
        """Return where a row's manifest is or will be. Raises `CorruptFile` for a row of another version's."""
        path = row.path[:-_UUID_LENGTH] if _is_staged(row) else row.path
        directory, _, name = path.rpartition("/")
        named = parse_manifest_name(name)
        if directory != VERSIONS_DIR or named is None or named[0] != row.version:
            raise CorruptFile(
                self._store.uri, f"row of version {row.version} in the manifest store", f"it names {path!r}"
            )
        return path

    def _forget(self, path: str) -> None:
        with suppress(StoreError):  # clean-up finds what stays
            self._store.delete(path)


def _is_staged(row: ManifestRow) -> bool:
    return not row.path.endswith(".manifest")


def _same(found: pa.Buffer, data: bytes) -> bool:
    return bool(found == pa.py_buffer(data))
