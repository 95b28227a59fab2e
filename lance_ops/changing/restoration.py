"""Bring an old version back, as a new one."""

from __future__ import annotations

from collections.abc import Mapping

from lance_ops.refs import pinned
from lance_ops.snapshot import Snapshot
from lance_ops.transactions import Restore
from lance_ops.writing import commit_operation

__all__ = ["restore"]


def restore(snapshot: Snapshot, properties: Mapping[str, str] | None = None) -> Snapshot:
    """Commit a version with this snapshot's content on top of the newest one; `properties` go into its transaction.

    Raises `VersionNotFound` if clean-up took the version.
    """
    with pinned(snapshot):
        return commit_operation(snapshot.latest(), Restore(snapshot.version), properties=properties)
