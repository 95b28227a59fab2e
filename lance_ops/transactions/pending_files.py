"""Files written for a commit that no version names yet: what the commit must sync, and what to delete if it fails."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import groupby
from typing import Self

from lance_ops.core.errors import CommitStateUnknown, LanceOpsError
from lance_ops.core.file_names import DATA_DIR, DELETIONS_DIR, is_file_of_job
from lance_ops.core.records import dataclass
from lance_ops.store import Store
from lance_ops.table import Fragment
from lance_ops.table.manifest import FileLocations, ObjectLocation

__all__ = ["Abandonable", "PendingFiles", "PendingFilesBuilder", "remove_files_of_job"]


class Abandonable(ABC):
    """Files that are deleted again when it is certain that no version names them."""

    @abstractmethod
    def abandon(self) -> None:
        """Delete the files. What cannot be deleted now is left to clean-up."""

    @contextmanager
    def abandoned_on_failure(self) -> Iterator[None]:
        """Abandon the files when the block raises: for work before any commit was tried."""
        try:
            yield
        except BaseException:
            self.abandon()
            raise

    @contextmanager
    def abandoned_unless_committed(self, *, kept_after: tuple[type[Exception], ...] = ()) -> Iterator[None]:
        """Abandon the files when the block, which commits them, has failed for certain.

        They stay after `CommitStateUnknown` and after an interrupt, because the version may exist. They also stay after
        errors of the types `kept_after`.
        """
        kept: tuple[type[Exception], ...] = (CommitStateUnknown, *kept_after)
        try:
            yield
        except kept:
            raise
        except Exception:  # any other error says that there is no version
            self.abandon()
            raise


@dataclass(frozen=True)
class PendingFiles(Abandonable):
    """Files that a verb has written and that no version names yet.

    `files` are what `abandon` deletes. `unsynced` are paths beneath the dataset's root that are not durable yet: the
    commit syncs them before the version appears, and nothing else decides that. `fragments` are the new fragments that
    the files hold, where the verb wrote whole fragments.
    """

    files: tuple[ObjectLocation, ...] = ()
    unsynced: tuple[str, ...] = ()
    fragments: tuple[Fragment, ...] = ()

    @classmethod
    def at(cls, store: Store, paths: Iterable[str], *, durable: bool = True) -> Self:
        """Return files beneath a dataset's root; `durable` says whether they were written with `durable=True`."""
        paths = tuple(paths)
        return cls(tuple(ObjectLocation(store, path) for path in paths), () if durable else paths)

    @classmethod
    def of_fragments(cls, locations: FileLocations, fragments: Iterable[Fragment], *, durable: bool = True) -> Self:
        """Return the data files of new fragments. Files under a base path are always written durable."""
        fragments = tuple(fragments)
        files = tuple(locations.data_file(file.base_id, file.path) for part in fragments for file in part.files)
        at_root = () if durable else tuple(path for part in fragments for path in part.data_paths())
        return cls(files, at_root, fragments)

    def __add__(self, other: PendingFiles) -> PendingFiles:
        return PendingFiles(self.files + other.files, self.unsynced + other.unsynced, self.fragments + other.fragments)

    def kept_on_failure(self) -> PendingFiles:
        """Return the same files for one of several attempts: its commit syncs them, and does not delete them."""
        return replace(self, files=())

    def make_durable(self, store: Store) -> None:
        """Sync the files beneath the root, for a caller who commits them later; delete all files if that fails."""
        with self.abandoned_on_failure():
            store.make_durable(*self.unsynced)

    def abandon(self) -> None:
        """Delete the files, and the blob sidecars of data files. What cannot be deleted now is left to clean-up."""
        for _, located in groupby(self.files, key=lambda file: id(file.store)):
            files = list(located)
            store, paths = files[0].store, [file.path for file in files]
            _delete(store, paths)
            for path in paths:
                if path.endswith(".lance"):
                    with suppress(LanceOpsError):
                        _delete(store, [info.path for info in store.list(path.removesuffix(".lance"))])


def _delete(store: Store, paths: Sequence[str]) -> None:
    """Delete as many files in a request as the store takes. What cannot be deleted is left."""
    for start in range(0, len(paths), store.deleted_at_once):
        with suppress(LanceOpsError):
            store.delete_several(paths[start : start + store.deleted_at_once])


def remove_files_of_job(store: Store, token: str) -> None:
    """Delete the data files and deletion files beneath a dataset's root that tasks of a job wrote.

    The job must never be committed. It lists all such files. What cannot be deleted now is left to clean-up.
    """
    for directory in (DATA_DIR, DELETIONS_DIR):
        with suppress(LanceOpsError):
            paths = [info.path for info in store.list(directory) if is_file_of_job(info.path, token)]
            _delete(store, paths)


class PendingFilesBuilder(Abandonable):
    """Collects the paths beneath a dataset's root that tasks are writing to, from any thread."""

    def __init__(self, store: Store, *, durable: bool = True) -> None:
        self._store = store
        self._durable = durable
        self._paths: list[str] = []

    def add(self, path: str) -> None:
        """Collect a path. Call it before the write, because a write that fails may leave the file there."""
        self._paths.append(path)

    def abandon(self) -> None:
        """Delete the files collected so far."""
        self.build().abandon()

    def build(self) -> PendingFiles:
        """Return the files collected so far."""
        return PendingFiles.at(self._store, self._paths, durable=self._durable)
