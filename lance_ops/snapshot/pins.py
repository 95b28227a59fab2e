"""Pins: versions that work under way depends on, for as long as it takes.

    _lance_ops/pins/{version}-{uuid}

Who pins writes the pin first and then looks whether the version is there; clean-up removes the version first and then
looks for pins and tags, and puts back what has one. So one of the two notices the other.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from lance_ops.core.errors import VersionNotFound
from lance_ops.snapshot.commit import delete_paths, removing_unless_committed
from lance_ops.snapshot.snapshot import Snapshot

__all__ = ["PINS_DIR", "pinned", "pinned_version"]

PINS_DIR = "_lance_ops/pins"


@contextmanager
def pinned(snapshot: Snapshot) -> Iterator[None]:
    """Keep clean-up from the snapshot's version; raise `VersionNotFound` if it is gone already.

    After `CommitStateUnknown` or an interrupt the pin stays, since the commit may still land; clean-up removes it when
    it is old.
    """
    path = f"{PINS_DIR}/{snapshot.version}-{uuid.uuid4().hex}"
    with removing_unless_committed(snapshot.store, [path]):
        snapshot.store.put(path, b"")
        if not snapshot.committer.exists(snapshot.version):
            raise VersionNotFound(f"{snapshot.uri}: version {snapshot.version} was cleaned up")
        yield
    delete_paths(snapshot.store, [path])


def pinned_version(path: str) -> int | None:
    """Return the version that a pin is of, by its path; None for a file that is no pin."""
    version = path.rpartition("/")[2].partition("-")[0]
    return int(version) if version.isdecimal() else None
