"""Restore an old version: commit its content as the newest version."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from lance_ops.refs import check_restores_no_erased_rows, pinned
from lance_ops.snapshot import Snapshot
from lance_ops.transactions import Restore
from lance_ops.writing import commit_operation

__all__ = ["restore"]


def restore(snapshot: Snapshot, properties: Mapping[str, str] | None = None) -> Snapshot:
    """Commit this snapshot's content as a new version; `properties` go into its transaction.

    Raises `VersionNotFound` if clean-up removed the snapshot's version, and `InvalidInput` if an erasure is on record
    whose rows the version may hold.
    """
    store = snapshot.store
    newest = store.begin_call(snapshot.latest)
    check_erasures = store.begin_call(partial(check_restores_no_erased_rows, snapshot))
    with pinned(snapshot, looks_for_version=False):  # the commit reads the version after it has listed all of them
        check_erasures()
        return commit_operation(newest(), Restore(snapshot.version), properties=properties)
