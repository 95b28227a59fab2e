"""Pin a version while an operation depends on it, so that clean-up keeps it.

    _lance_ops/pins/{version}-{uuid}            an empty file; it keeps the version
    _lance_ops/pins/{version}-later-{uuid}      it keeps the version and all later ones

The operation writes the pin first and then checks that no clean-up removes the version; see `announced_removals`.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from lance_ops.refs.announced_removals import check_no_announced_removal, check_version_is_kept
from lance_ops.snapshot import Snapshot
from lance_ops.transactions import PendingFiles

__all__ = ["PINS_DIR", "keeps_later_versions", "pinned", "pinned_version", "pinned_with_later"]

PINS_DIR = "_lance_ops/pins"
_LATER = "later-"


@contextmanager
def pinned(snapshot: Snapshot, *, looks_for_version: bool = True) -> Iterator[None]:
    """Keep clean-up from removing the snapshot's version during the block.

    Raises `VersionNotFound` if the version is removed already, or announced to be. With
    `looks_for_version=False`, the version may be gone already: the block must check that it exists.

    After `CommitStateUnknown` or an interrupt the pin stays, since the commit may still succeed; clean-up removes the
    pin when it is old.
    """
    path = f"{PINS_DIR}/{snapshot.version}-{uuid.uuid4().hex}"
    pin = PendingFiles.at(snapshot.store, [path])
    with pin.abandoned_unless_committed():
        snapshot.store.put(path, b"")
        if looks_for_version:
            check_version_is_kept(snapshot)
        else:
            check_no_announced_removal(snapshot)
        yield
    pin.abandon()


@contextmanager
def pinned_with_later(snapshot: Snapshot) -> Iterator[None]:
    """Keep clean-up from removing the snapshot's version and all later ones during the block.

    A commit that was planned on the version can then be compared with each of them. Raises `VersionNotFound` as
    `pinned` does. The pin never stays after the block, since a commit that may still succeed does not need it.
    """
    path = f"{PINS_DIR}/{snapshot.version}-{_LATER}{uuid.uuid4().hex}"
    pin = PendingFiles.at(snapshot.store, [path])
    try:
        snapshot.store.put(path, b"")
        check_version_is_kept(snapshot)
        yield
    finally:
        pin.abandon()


def keeps_later_versions(path: str) -> bool:
    """Return whether the pin at a path also keeps all versions after the one that it names."""
    return path.rpartition("/")[2].partition("-")[2].startswith(_LATER)


def pinned_version(path: str) -> int | None:
    """Return the version that a pin's path names; None for a file that is not a pin."""
    version = path.rpartition("/")[2].partition("-")[0]
    return int(version) if version.isdecimal() else None
