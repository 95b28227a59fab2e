"""Repair a table whose newest manifest cannot be read: go back to the newest version that can be read.

Every reader opens the newest version first, so one damaged manifest closes a table for all of them. A repair commits
another version after the damaged one, and then every reader, also the reference, can open the table again. Only then
does it move the damaged manifests out of `_versions`, where other verbs would fail on them:

    _lance_ops/unreadable/{version}-{32 hex digits}.manifest
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from uuid import uuid4

from lance_ops.committers import open_root
from lance_ops.core.errors import CorruptFile, DatasetNotFound, LanceOpsError, VersionNotFound
from lance_ops.core.file_names import TRANSACTIONS_DIR
from lance_ops.core.records import dataclass
from lance_ops.maintenance.repair.actions import RepairAction
from lance_ops.maintenance.verification import DamageKind, Finding, FindingSeverity
from lance_ops.snapshot import Snapshot
from lance_ops.transactions import Transaction, commit_past_unreadable

__all__ = ["UNREADABLE_DIR", "GoBack", "UnreadableVersions", "find_unreadable", "open_newest_readable"]

UNREADABLE_DIR = "_lance_ops/unreadable"
_TRANSACTION_NAME = re.compile(rb"\d+-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.txn")


@dataclass(frozen=True)
class UnreadableVersions:
    """The newest versions of a table, newest first, whose manifests cannot be read.

    `readable` is the newest version before them that can be read. `lost` names the operations that made the
    unreadable versions, oldest first.
    """

    findings: tuple[Finding, ...]
    readable: Snapshot | None
    lost: tuple[str, ...]

    @property
    def newest(self) -> int:
        """The newest version."""
        return self.findings[0].version


@dataclass(frozen=True)
class GoBack(RepairAction):
    """Commit the newest readable version again as the newest one; move unreadable manifests to `UNREADABLE_DIR`."""

    version: int
    unreadable: tuple[int, ...]
    lost: tuple[str, ...]

    name = "go back to a readable version"

    @property
    def explanation(self) -> str:
        numbers = ", ".join(map(str, self.unreadable))
        return (
            f"commit the content of version {self.version} as version {self.unreadable[0] + 1}: this takes back "
            f"{', '.join(self.lost)}, because the caller allowed it; the manifests of versions {numbers} are kept in "
            f"{UNREADABLE_DIR}, and the files of their rows stay until clean-up"
        )

    def apply(self, snapshot: Snapshot) -> Snapshot:
        store, committer = snapshot.store, snapshot.committer
        made = commit_past_unreadable(committer, store, snapshot.at(self.version).manifest, self.unreadable[0])
        for version in self.unreadable:
            store.put(f"{UNREADABLE_DIR}/{version}-{uuid4().hex}.manifest", committer.read(version))
            committer.remove(version)
        return snapshot.with_manifest(made)


def find_unreadable(snapshot: Snapshot) -> UnreadableVersions | None:
    """Return the newest versions whose manifests are damaged; None if the newest version can be read.

    Raises `UnsupportedFeature` for a version that needs a newer reader, and `StoreError` as the store does.
    """
    findings: list[Finding] = []
    lost: list[str] = []
    for version in reversed(snapshot.committer.versions()):
        try:
            readable = snapshot.at(version)
        except VersionNotFound:  # a concurrent clean-up removed it
            continue
        except CorruptFile as error:
            path = snapshot.store.uri_of(snapshot.committer.location(version))
            detail = f"{error.place}: {error.reason}"
            findings.append(Finding(DamageKind.MANIFEST, FindingSeverity.DAMAGED, detail, version, path))
            lost.insert(0, f"{_operation_of(snapshot, version)} (version {version})")
        else:
            return UnreadableVersions(tuple(findings), readable, tuple(lost)) if findings else None
    return UnreadableVersions(tuple(findings), None, tuple(lost)) if findings else None


def open_newest_readable(uri: str, storage_options: Mapping[str, str] | None = None) -> Snapshot:
    """Open the newest version whose manifest can be read.

    Raises `DatasetNotFound` if there is no version, and the newest version's error if none can be read.
    """
    root = open_root(uri, storage_options)
    first: CorruptFile | None = None
    for version in reversed(root.committer.versions()):
        try:
            return Snapshot.open(uri, version, storage_options)
        except VersionNotFound:  # as above
            continue
        except CorruptFile as error:
            first = first or error
    raise first or DatasetNotFound(f"no Lance dataset at {root.store.uri}")


def _operation_of(snapshot: Snapshot, version: int) -> str:
    """Return the name of the operation that made a version, if the name of its transaction's file is undamaged."""
    with suppress(LanceOpsError):
        for name in _TRANSACTION_NAME.findall(snapshot.committer.read(version).to_pybytes()):
            path = f"{TRANSACTIONS_DIR}/{name.decode()}"
            return Transaction.decode(snapshot.store.get(path).to_pybytes(), path).operation.name
    return "an unknown change"
