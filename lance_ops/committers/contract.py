"""What a committer is: it makes version N of a dataset exist exactly once.

A committer knows versions and opaque manifest bytes, nothing of what they mean. The bytes are the identity of a
commit: they hold its transaction's fresh UUID, so bytes equal to ours at version N *are* our commit, whatever the store
answered when we wrote them. Losing a race is a value, and so is not knowing; what raises wrote nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa

__all__ = ["Abandoned", "CommitOutcome", "Committed", "Committer", "Conflict", "Unknown"]


@dataclass(frozen=True, slots=True)
class Committed:
    """Our bytes are that version, durably. `recognised` says that this was found out by reading them back.

    `newest` is the newest version that was found afterwards, None where nobody looked.
    """

    version: int
    location: str
    recognised: bool = False
    newest: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Conflict:
    """Somebody else's bytes are that version; ours are not and will never be."""

    version: int
    theirs: pa.Buffer


@dataclass(frozen=True, slots=True)
class Unknown:
    """Our bytes may be that version, now or later, and the store could not be asked. Delete nothing."""

    version: int
    reason: str


@dataclass(frozen=True, slots=True)
class Abandoned:
    """Who wanted to commit wants it no more; our bytes are not that version and will never be."""

    version: int


CommitOutcome: TypeAlias = Committed | Conflict | Unknown | Abandoned


class Committer(ABC):
    """The versions of one dataset. Picklable and fork-safe, as its store is.

    All of it may be stale by the time it returns, except that a version once seen keeps its bytes until it is removed.
    """

    remembers_removed = False
    """Whether a version that was removed can never be made again."""

    @abstractmethod
    def latest(self, known: int | None = None) -> int | None:
        """Return the newest version, None if there is no dataset.

        If this committer found `known` the last time and nothing changed since, it need not be looked for again.
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

    @abstractmethod
    def commit(
        self, version: int, data: bytes, *, after: Iterable[str] = (), prepare: Callable[[], bool] = lambda: True
    ) -> CommitOutcome:
        """Make `data` that version unless it exists, once the objects `after` which it comes are durable.

        `prepare` is called before the version can be seen, perhaps while those objects are on their way to the disk. It
        returns whether to go on: if not, the outcome is `Abandoned`.

        Raises `WriteRefused` or `UnsafeStore` when nothing was written and nothing will appear later; every doubt is an
        `Unknown`.
        """

    @abstractmethod
    def remove(self, version: int) -> None:
        """Forget a version, as clean-up does last. Never the newest: a stale writer could then commit it again."""

    def withdraw(self, version: int) -> None:
        """Remove a version as if it had never been made: for who made it, before anybody can have built on it."""
        self.remove(version)

    def forget(self) -> None:  # noqa: B027 # most remember nothing
        """Let go of what is remembered of removed versions, the dataset being removed whole."""
