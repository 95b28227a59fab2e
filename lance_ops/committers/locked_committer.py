"""Commit while holding a lock that the caller provides.

The lock is a function of the version that returns a context manager. With it, writers can share a store that has no
conditional create: under the lock the committer checks whether the version exists, and then writes it. On any other
store the conditional create still decides, so a lock that fails to exclude a writer does no harm there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TypeAlias

import pyarrow as pa

from lance_ops.committers.contract import CommitOutcome, Committer, Unknown
from lance_ops.committers.opening import DatasetRoot
from lance_ops.committers.put_if_absent import PutIfAbsentCommitter
from lance_ops.core.errors import CommitStateUnknown, RetryableConflict, UnsafeStore, WriteRefused

__all__ = ["CommitLock", "LockedCommitter", "with_commit_lock"]

CommitLock: TypeAlias = Callable[[int], AbstractContextManager[object]]
"""Returns the lock to hold while a version is committed.

The lock's `__exit__` gets the error if the commit raises, and a `CommitStateUnknown` if its outcome is not known: the
manifest may still appear, so a lock of a store without a conditional create should not let the next writer in yet.
"""


class LockedCommitter(Committer):
    """Wraps another committer, and holds the caller's lock while that one commits. Reads take no lock.

    If the lock cannot be acquired, `commit` raises `RetryableConflict` when the lock's error is retryable, else
    `WriteRefused`. If the lock cannot be released, the outcome is `Unknown`.
    """

    # Where the server ignores the condition, a transaction's file that makes the proof would be overwritten.
    relies_on_conditional_create = False

    def __init__(self, unlocked: Committer, lock: CommitLock) -> None:
        self.unlocked: Committer = unlocked.unlocked if isinstance(unlocked, LockedCommitter) else unlocked
        self.lock = lock
        self.remembers_removed = unlocked.remembers_removed
        self.takes_detached = unlocked.takes_detached

    def __repr__(self) -> str:
        return f"LockedCommitter({self.unlocked!r}, {self.lock!r})"

    def latest(self, known: int | None = None) -> int | None:
        return self.unlocked.latest(known)

    def versions(self) -> list[int]:
        return self.unlocked.versions()

    def exists(self, version: int) -> bool:
        return self.unlocked.exists(version)

    def location(self, version: int) -> str:
        return self.unlocked.location(version)

    def read(self, version: int) -> pa.Buffer:
        return self.unlocked.read(version)

    def read_several(self, versions: Iterable[int]) -> Iterator[tuple[int, pa.Buffer]]:
        return self.unlocked.read_several(versions)

    def as_listed(self, version: int) -> pa.Buffer | None:
        return self.unlocked.as_listed(version)

    def finds_nothing(self) -> bool:
        return self.unlocked.finds_nothing()

    def staged_manifest(self) -> str | None:
        return self.unlocked.staged_manifest()

    def commit(
        self, version: int, data: bytes, *, after: Iterable[str] = (), prepare: Callable[[], bool] = lambda: True
    ) -> CommitOutcome:
        needed = tuple(after)
        held = self._acquire(version)
        try:
            outcome = self._commit_alone(version, data, needed, prepare)
        except BaseException as error:
            held.__exit__(type(error), error, error.__traceback__)
            raise
        try:
            if isinstance(outcome, Unknown):
                unknown = CommitStateUnknown("(not known to the lock)", version, outcome.reason)
                held.__exit__(type(unknown), unknown, None)
            else:
                held.__exit__(None, None, None)
        except Exception as error:  # noqa: BLE001 - the caller's lock may raise anything, and the outcome stands
            return Unknown(version, f"commit_lock was not released: {error!r}; the commit ended with {outcome!r}")
        return outcome

    def remove(self, version: int) -> None:
        self.unlocked.remove(version)

    def remove_several(self, versions: Sequence[int]) -> set[int]:
        return self.unlocked.remove_several(versions)

    def withdraw(self, version: int) -> None:
        self.unlocked.withdraw(version)

    def forget(self) -> None:
        self.unlocked.forget()

    def _acquire(self, version: int) -> AbstractContextManager[object]:
        try:
            held = self.lock(version)
            held.__enter__()
        except Exception as error:
            if isinstance(error, OSError) and getattr(error, "retryable", False):
                raise RetryableConflict(
                    f"another writer holds commit_lock for version {version}: {error}; try again"
                ) from error
            raise WriteRefused(f"commit_lock for version {version} cannot be acquired: {error!r}") from error
        return held

    def _commit_alone(
        self, version: int, data: bytes, after: tuple[str, ...], prepare: Callable[[], bool]
    ) -> CommitOutcome:
        try:
            return self.unlocked.commit(version, data, after=after, prepare=prepare)
        except UnsafeStore:
            if not isinstance(self.unlocked, PutIfAbsentCommitter):
                raise
            return self.unlocked.commit_exclusively(version, data, after=after, prepare=prepare)


def with_commit_lock(root: DatasetRoot, lock: CommitLock | None) -> DatasetRoot:
    """Return the dataset's root with its committer wrapped in a `LockedCommitter`; without a lock, the root itself."""
    return root if lock is None else replace(root, committer=LockedCommitter(root.committer, lock))
