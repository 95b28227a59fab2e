"""The interface of a committer: it makes each version of a dataset exist exactly once.

A committer knows version numbers and opaque manifest bytes. The bytes identify a commit: they hold its transaction's
fresh UUID, so if version N has our bytes, it is our commit, whatever the store answered when we wrote them. A lost race
and an unknown outcome are values. A commit that raises has written nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from typing import TypeAlias

import pyarrow as pa

from lance_ops.core.errors import StoreError, VersionNotFound
from lance_ops.core.records import dataclass

__all__ = ["Abandoned", "CommitOutcome", "Committed", "Committer", "Conflict", "Unknown"]


@dataclass(frozen=True, slots=True)
class Committed:
    """The version has our bytes, durably. `recognised` means that they were found by reading them back.

    `newest` is the newest version that was found afterwards, None if it was not looked for.
    """

    version: int
    location: str
    recognised: bool = False
    newest: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Conflict:
    """The version has another writer's bytes; ours are not and will never be that version."""

    version: int
    theirs: pa.Buffer


@dataclass(frozen=True, slots=True)
class Unknown:
    """The version may have our bytes, now or later, and the store could not be asked. Remove no file."""

    version: int
    reason: str


@dataclass(frozen=True, slots=True)
class Abandoned:
    """The caller has abandoned this commit; our bytes are not and will never be that version."""

    version: int


CommitOutcome: TypeAlias = Committed | Conflict | Unknown | Abandoned


class Committer(ABC):
    """The versions of one dataset. Picklable and fork-safe, as its store is.

    Every answer may be stale when it arrives, except that a version keeps its bytes until it is removed.
    """

    remembers_removed = False
    """Whether a version that was removed can never be made again."""

    relies_on_conditional_create = False
    """Whether `commit` relies on the conditional create of the dataset's store alone, which must be proven before."""

    takes_detached = False
    """Whether `commit` and `read` also take detached versions, which `latest` and `versions` leave out."""

    @abstractmethod
    def latest(self, known: int | None = None) -> int | None:
        """Return the newest version, None if there is no dataset.

        If `known` was this committer's last answer and nothing has changed since, it returns `known` without a look.
        A `known` of 0 is for the commit of a first version. Then a look of the last five seconds, by any committer of
        this process, is enough to answer None.
        """

    @abstractmethod
    def versions(self) -> list[int]:
        """Return every version there is, ascending."""

    @abstractmethod
    def exists(self, version: int) -> bool:
        """Return whether that version is there."""

    @abstractmethod
    def location(self, version: int) -> str:
        """Return the path, in the dataset's store, of that version's manifest (where it would be, if absent)."""

    @abstractmethod
    def read(self, version: int) -> pa.Buffer:
        """Return the manifest's bytes. Raises `VersionNotFound`."""

    def read_several(self, versions: Iterable[int]) -> Iterator[tuple[int, pa.Buffer]]:
        """Yield each version that exists, with its manifest's bytes; some versions may be read ahead of the caller."""
        for version in versions:
            try:
                data = self.read(version)
            except VersionNotFound:
                continue
            yield version, data

    def as_listed(self, version: int) -> pa.Buffer | None:
        """Return the manifest's bytes at the time of the last call of `latest` or `versions`; None if not known.

        It makes no request. Another writer may have removed the version since.
        """
        return None

    def finds_nothing(self) -> bool:
        """Return True if a listing of the first page shows that no object is where the dataset would be.

        It is for callers who expect this. A True answer also serves the commit of a first version for five seconds.
        After False, which may mean that no request could show it, call `latest`.
        """
        return False

    def staged_manifest(self) -> str | None:
        """Return the path of a manifest that is a version already but lacks its final name; None if there is none.

        Only the newest version can be one: its writer stopped, or nobody may write the final name.
        """
        return None

    @abstractmethod
    def commit(
        self, version: int, data: bytes, *, after: Iterable[str] = (), prepare: Callable[[], bool] = lambda: True
    ) -> CommitOutcome:
        """Give the version these bytes unless it exists, once the objects in `after` are durable.

        `prepare` is called before the version can be seen, perhaps while those objects are being synced. If it returns
        False, the outcome is `Abandoned`.

        Raises `WriteRefused`, `UnsafeStore`, or `RetryableConflict` (of a lock of the caller) when nothing was written
        and nothing will appear later. If that is not known, the outcome is `Unknown`.
        """

    @abstractmethod
    def remove(self, version: int) -> None:
        """Remove a version; clean-up does this last. Never the newest: a stale writer could then commit it again."""

    def remove_several(self, versions: Sequence[int]) -> set[int]:
        """Remove versions as `remove` does; return those that the store failed to remove, which may still exist."""
        failed = set()
        for version in versions:
            try:
                self.remove(version)
            except StoreError:
                failed.add(version)
        return failed

    def withdraw(self, version: int) -> None:
        """Undo a commit of ours, so that the version can be made again; only before anyone can have built on it."""
        self.remove(version)

    def forget(self) -> None:  # noqa: B027 # most keep no record
        """Drop the record of removed versions, when the whole dataset is removed."""
