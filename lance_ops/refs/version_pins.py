"""Pins: versions that work under way depends on, for as long as it takes.

    _lance_ops/pins/{version}-{uuid}

Who pins writes the pin first and then looks whether the version stays; see `removals`.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from lance_ops.refs.announced_removals import check_version_is_kept
from lance_ops.snapshot import Snapshot
from lance_ops.transactions import PendingFiles

__all__ = ["PINS_DIR", "pinned", "pinned_version"]

PINS_DIR = "_lance_ops/pins"


@contextmanager
def pinned(snapshot: Snapshot) -> Iterator[None]:
    """Keep clean-up from the snapshot's version; raise `VersionNotFound` if it is gone already, or about to go.

    After `CommitStateUnknown` or an interrupt the pin stays, since the commit may still land; clean-up removes it when
    it is old.
    """
    path = f"{PINS_DIR}/{snapshot.version}-{uuid.uuid4().hex}"
    pin = PendingFiles.at(snapshot.store, [path])
    with pin.abandoned_unless_committed():
        snapshot.store.put(path, b"")
        check_version_is_kept(snapshot)
        yield
    pin.abandon()


def pinned_version(path: str) -> int | None:
    """Return the version that a pin is of, by its path; None for a file that is no pin."""
    version = path.rpartition("/")[2].partition("-")[0]
    return int(version) if version.isdecimal() else None
