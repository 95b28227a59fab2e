"""Pin a version while an operation depends on it, so that clean-up keeps it.

    _lance_ops/pins/{version}-{uuid}            an empty file; it keeps the version
    _lance_ops/pins/{version}-later-{uuid}      it keeps the version and all later ones

The operation writes the pin first and then checks that no clean-up removes the version; see `announced_removals`.
No pin needs to survive a power cut: a cut ends the operation, and work that is begun again writes new pins.
Work that can be begun again after a crash has an id, which its pins have before their UUID.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import field
from typing import Self, TypeVar

from lance_ops.core.errors import StoreError, StoreUnreachable
from lance_ops.core.records import dataclass
from lance_ops.refs.announced_removals import check_no_announced_removal, check_version_is_kept
from lance_ops.snapshot import Snapshot
from lance_ops.transactions import PendingFiles

__all__ = [
    "PINS_DIR",
    "PinnedVersions",
    "is_pin_of_work",
    "keeping_version",
    "naming_pins_by_work",
    "pinned",
    "pinned_if_at_risk",
    "pinned_where_writable",
    "pinned_with_later",
]

R = TypeVar("R")

PINS_DIR = "_lance_ops/pins"
_LATER = "later-"
_work_id: ContextVar[str] = ContextVar("work_id", default="")


@dataclass(frozen=True)
class PinnedVersions:
    """The versions that pins keep: each that one of the pins `named` names, and all that are later than `since`.

    `named` has the path of one pin for each version.
    """

    named: Mapping[int, str] = field(default_factory=dict)
    since: int | None = None

    @classmethod
    def by(cls, paths: Iterable[str]) -> Self:
        """Return what the pins at these paths keep; files that are no pins keep nothing."""
        named: dict[int, str] = {}
        with_later: dict[int, str] = {}
        for path in paths:
            version, _, rest = path.rpartition("/")[2].partition("-")
            if version.isdecimal():
                (with_later if rest.startswith(_LATER) else named)[int(version)] = path
        return cls(named | with_later, min(with_later, default=None))

    def __contains__(self, version: object) -> bool:
        return version in self.named or (isinstance(version, int) and self.since is not None and version > self.since)

    def pin_of(self, version: int) -> str:
        """Return the path of a pin that keeps a version; raises `KeyError` for a version that none keeps."""
        if version in self.named or self.since is None or version < self.since:
            return self.named[version]
        return self.named[self.since]


@contextmanager
def naming_pins_by_work(work_id: str) -> Iterator[None]:
    """Put the id of some work, a UUID as hex digits, into the names of pins that this thread writes in the block."""
    before = _work_id.set(work_id)
    try:
        yield
    finally:
        _work_id.reset(before)


def is_pin_of_work(path: str, work_id: str) -> bool:
    """Return whether a pin has the id of some work in its name."""
    return f"-{work_id}-" in path.rpartition("/")[2]


@contextmanager
def pinned(snapshot: Snapshot, *, looks_for_version: bool = True, is_optional: bool = False) -> Iterator[None]:
    """Keep clean-up from removing the snapshot's version during the block.

    Raises `VersionNotFound` if the version is removed already, or announced to be. With
    `looks_for_version=False`, the version may be gone already: the block must check that it exists.
    If the store refuses to write a pin that `is_optional`, the block runs without a pin.

    After `CommitStateUnknown` or an interrupt the pin stays, since the commit may still succeed; clean-up removes the
    pin when it is old.
    """
    path = _new_pin(snapshot.version)
    pin = PendingFiles.at(snapshot.store, [path])
    with pin.abandoned_unless_committed():
        try:
            snapshot.store.put(path, b"", durable=False)
        except StoreError as error:
            if not is_optional or isinstance(error, StoreUnreachable):
                raise
        if looks_for_version:
            check_version_is_kept(snapshot)
        else:
            check_no_announced_removal(snapshot)
        yield
    pin.abandon()


def pinned_where_writable(snapshot: Snapshot) -> AbstractContextManager[None]:
    """Keep clean-up from removing the snapshot's version during the block, as `pinned` does.

    It is for work that only reads the snapshot's dataset, which may be another's: that store may take no pin.
    """
    return pinned(snapshot, is_optional=True)


@contextmanager
def pinned_with_later(snapshot: Snapshot) -> Iterator[None]:
    """Keep clean-up from removing the snapshot's version and all later ones during the block.

    A commit that was planned on the version can then be compared with each of them. Raises `VersionNotFound` as
    `pinned` does. The pin never stays after the block, since a commit that may still succeed does not need it.
    """
    path = _new_pin(snapshot.version, _LATER)
    pin = PendingFiles.at(snapshot.store, [path])
    try:
        snapshot.store.put(path, b"", durable=False)
        check_version_is_kept(snapshot)
        yield
    finally:
        pin.abandon()


def pinned_if_at_risk(current: Snapshot, first: Snapshot) -> AbstractContextManager[None]:
    """Pin the version `current` of an attempt, and all later ones, during the block, if a clean-up is to be expected.

    A commit must be compared with every version after the one that it was planned on, so a clean-up of any of them
    voids the work. A pin costs requests. It is written if commits to the table clean up, and for every attempt after
    the one on the version `first`.
    """
    if current.has_auto_cleanup or current.version != first.version:
        return pinned_with_later(current)
    return nullcontext()


def keeping_version(attempt: Callable[[Snapshot], R], first: Snapshot) -> Callable[[Snapshot], R]:
    """Return an attempt that keeps the version that it is called with, as `pinned_if_at_risk` does.

    It is for long work: for what tasks do, and for what reads or writes a large part of the table.
    """

    def keeping(current: Snapshot) -> R:
        with pinned_if_at_risk(current, first):
            return attempt(current)

    return keeping


def _new_pin(version: int, kind: str = "") -> str:
    work = f"{_work_id.get()}-" if _work_id.get() else ""
    return f"{PINS_DIR}/{version}-{kind}{work}{uuid.uuid4().hex}"
