"""Commit through an external manifest store, for object stores without a conditional create.

The writer stages the manifest under a fresh name. It makes the version by inserting a row that names the staged
manifest. Then it copies the manifest to its final name, changes the row to that name, and removes the staged manifest.
If the writer stops on the way, the version is valid: the next reader or writer that finds a row with a staged name
finishes the steps, and doing them twice does no harm. Source: the external manifest store of the public table
specification.

The staged name is unique and the bytes identify a commit: a row with our staged name or our bytes is our commit.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

import pyarrow as pa

from lance_ops.committers.contract import Abandoned, CommitOutcome, Committed, Committer, Conflict, Unknown
from lance_ops.committers.create_retries import CREATE_RETRIES, CreateRetries
from lance_ops.committers.manifest_stores import ManifestRow, ManifestStore
from lance_ops.committers.put_if_absent import check_version
from lance_ops.committers.versions_directory import (
    VersionNames,
    delete_manifests,
    list_newest,
    list_versions,
    manifest_path,
)
from lance_ops.core.errors import CorruptFile, ObjectNotFound, StoreError, VersionNotFound, WriteRefused
from lance_ops.core.file_names import VERSIONS_DIR, ManifestNaming, parse_manifest_name
from lance_ops.store import Store

__all__ = ["ExternalManifestCommitter"]

_UUID_LENGTH = len(f"-{uuid.uuid4()}")


class ExternalManifestCommitter(Committer):
    """Commits versions as files in `_versions`, each by inserting a row in a manifest store.

    Versions that are older than the manifest store stay valid without rows.
    """

    remembers_removed = True

    def __init__(self, store: Store, manifest_store: ManifestStore, *, retries: CreateRetries = CREATE_RETRIES) -> None:
        self._store = store
        self._rows = manifest_store
        self._retries = retries
        self._naming: ManifestNaming | None = None  # of the manifests last listed
        self._unfinished: ManifestRow | None = None  # of the newest version, if its last look could not finish it

    def __repr__(self) -> str:
        return f"ExternalManifestCommitter({self._store!r}, {self._rows!r})"

    def latest(self, known: int | None = None) -> int | None:
        row = self._rows.newest()
        if row is None:
            return max(self._look().versions, default=None)
        if not self._finish_for_reader(row):
            raise CorruptFile(
                self._store.uri,
                f"row of version {row.version} in the manifest store",
                f"it names {row.path!r}, which is gone, and there is no finished manifest: restore the file",
            )
        return row.version

    def versions(self) -> list[int]:
        newest = self._rows.newest()
        if newest is not None:  # the writer of the next version has finished each older one
            self._finish_for_reader(newest)
        found = set(list_versions(self._store).versions)
        if self._unfinished is not None:
            found.add(self._unfinished.version)
        return sorted(found)

    def exists(self, version: int) -> bool:
        if self._store.exists(self.location(version)):
            return True
        row = self._rows.get(version)
        if row is None or not self._finish_for_reader(row):
            return False
        return self._store.exists(self.location(version)) or self._store.exists(row.path)

    def location(self, version: int) -> str:
        check_version(version)
        if self._naming is None:
            self._look()
        return manifest_path(version, self._naming or ManifestNaming.V2)

    def read(self, version: int) -> pa.Buffer:
        path = self.location(version)
        try:
            return self._store.get(path)
        except ObjectNotFound:
            row = self._rows.get(version)
            if row is not None and self._finish_for_reader(row):
                for place in (path, row.path):
                    with suppress(ObjectNotFound):
                        return self._store.get(place)
            self._naming = None  # all manifests may have been renamed since they were last listed
            raise VersionNotFound(f"{self._store.uri} has no version {version}") from None

    def staged_manifest(self) -> str | None:
        row = self._rows.newest()
        return row.path if row is not None and _is_staged(row) else None

    def commit(
        self, version: int, data: bytes, *, after: Iterable[str] = (), prepare: Callable[[], bool] = lambda: True
    ) -> CommitOutcome:
        self._finish_newest()
        path = self.location(version)
        found = self._finished(path)
        if found is not None:
            return Committed(version, path, recognised=True) if _same(found, data) else Conflict(version, found)
        if not prepare():
            return Abandoned(version)
        staged = ManifestRow(version, f"{path}-{uuid.uuid4()}", len(data))
        try:
            self._store.put(staged.path, data, durable=False)
            self._store.make_durable(*after, staged.path)
        except StoreError as error:
            self._forget(staged.path)
            raise WriteRefused(f"{self._store.uri}: the manifest cannot be staged: {error}") from error
        try:
            outcome = self._insert(staged, path, data)
        except VersionNotFound as error:
            self._forget(staged.path)
            raise WriteRefused(f"version {version} was there, and clean-up removed it: {error}") from error
        except StoreError:
            self._forget(staged.path)
            raise
        if isinstance(outcome, Conflict):
            self._forget(staged.path)
        elif isinstance(outcome, Committed):
            is_there = True
            with suppress(StoreError):  # the version is valid; the next reader or writer finishes it
                is_there = self._finish(staged)
            if not is_there:
                with suppress(StoreError):  # no reader could open the dataset
                    self._rows.remove(version)
                return Unknown(version, "its staged manifest was removed before it had its final name")
        return outcome

    def remove(self, version: int) -> None:
        self._store.delete(self.location(version))

    def remove_several(self, versions: Sequence[int]) -> set[int]:
        return delete_manifests(self._store, {self.location(version): version for version in versions})

    def withdraw(self, version: int) -> None:
        self.remove(version)
        self._rows.remove(version)

    def forget(self) -> None:
        while (newest := self._rows.newest()) is not None:
            self._rows.remove(newest.version)

    def _look(self) -> VersionNames:
        names = list_newest(self._store)
        self._naming = names.naming
        return names

    def _finished(self, path: str) -> pa.Buffer | None:
        """Return a version's manifest if it has its final name; it may have been made without the manifest store."""
        try:
            return self._store.get(path)
        except ObjectNotFound:
            return None
        except StoreError as error:
            raise WriteRefused(f"{self._store.uri}: cannot read whether the version exists: {error}") from error

    def _insert(self, staged: ManifestRow, path: str, data: bytes) -> CommitOutcome:
        """Insert the row of a staged manifest. Raises `VersionNotFound` if the version existed and was removed since.

        If we may have inserted the row ourselves and its manifest is removed, the outcome is `Unknown`.
        """
        version, in_doubt = staged.version, False

        def create() -> Committed | None:
            nonlocal in_doubt
            try:
                return Committed(version, path) if self._rows.insert(staged) else None
            except StoreError:
                in_doubt = True
                raise

        def look() -> CommitOutcome | None:
            row = self._rows.get(version)
            if row is None:
                return None
            try:
                theirs = None if row.path == staged.path else self.read(version)
            except VersionNotFound as error:
                if in_doubt:
                    return Unknown(version, f"it may have been made and removed since: {error}")
                raise
            if theirs is None or _same(theirs, data):
                return Committed(version, path, recognised=True)
            return Conflict(version, theirs)

        return self._retries.settle(version, create, look)

    def _finish_newest(self) -> None:
        """Finish the newest version before the next one is made, because only rows of the newest one are looked at."""
        if self._unfinished is not None:
            version = self._unfinished.version
            try:
                is_there = self._finish(self._unfinished)
            except StoreError as error:
                raise WriteRefused(f"{self._store.uri}: cannot finish version {version}: {error}") from error
            if not is_there:
                raise WriteRefused(f"{self._store.uri}: version {version} has lost its manifest: remove its row")
            self._unfinished = None

    def _finish_for_reader(self, row: ManifestRow) -> bool:
        """Do what `_finish` does, and return True if it fails: the reader, who may not write, has the staged file."""
        try:
            is_there = self._finish(row)
        except StoreError:
            if self._unfinished is None or self._unfinished.version < row.version:
                self._unfinished = row
            return True
        if self._unfinished is not None and self._unfinished.version <= row.version:
            self._unfinished = None
        return is_there

    def _finish(self, row: ManifestRow) -> bool:
        """Give a manifest its final name if it is staged; return False if there is neither a staged nor a final one.

        True for a row that was finished before: clean-up may have removed its manifest since.
        """
        final, self._naming = self._final_name(row)
        if row.path == final:
            return True
        try:
            if self._store.replaces_at_once:
                self._store.copy(row.path, final)
            else:  # others may have finished it, and read it now
                self._store.put_if_absent(final, self._store.get(row.path))
        except ObjectNotFound:  # another may have finished it since the row was read, and clean-up removed it
            return self._store.exists(final) or self._rows.get(row.version) != row
        self._rows.replace(ManifestRow(row.version, final, row.size_bytes))
        self._forget(row.path)
        return True

    def _final_name(self, row: ManifestRow) -> tuple[str, ManifestNaming]:
        """Return where a row's manifest is or will be. Raises `CorruptFile` for a row of another version's."""
        path = row.path[:-_UUID_LENGTH] if _is_staged(row) else row.path
        directory, _, name = path.rpartition("/")
        named = parse_manifest_name(name)
        if directory != VERSIONS_DIR or named is None or named[0] != row.version:
            raise CorruptFile(
                self._store.uri, f"row of version {row.version} in the manifest store", f"it names {path!r}"
            )
        return path, named[1]

    def _forget(self, path: str) -> None:
        with suppress(StoreError):  # clean-up finds what stays
            self._store.delete(path)


def _is_staged(row: ManifestRow) -> bool:
    return not row.path.endswith(".manifest")


def _same(found: pa.Buffer, data: bytes) -> bool:
    return bool(found == pa.py_buffer(data))
