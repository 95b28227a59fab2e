"""Repair a table with manifests that cannot be read: go back to the newest version that can be, and set them aside.

Every reader opens the newest version first, so one damaged manifest closes a table for all of them. A repair commits
another version after the damaged one, and then every reader, also the reference, can open the table again. Only then
does it move the damaged manifests out of `_versions`, where clean-up and other verbs would fail on them:

    _lance_ops/unreadable/{version}-{32 hex digits}.manifest

Damaged manifests of older versions are moved without a commit. One stays if its version may have recorded a batch or a
token of work that the table still holds: without it, the same work could be done twice.

A version also shows that the table's history produced the version before it. So what that version recorded is written
down before the damaged manifest moves; `older_unreadable` finds it.
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
from lance_ops.maintenance.batch_ledger import BatchEvent, checkpoint_batches
from lance_ops.maintenance.repair.actions import RepairAction
from lance_ops.maintenance.verification import DamageKind, Finding, FindingSeverity
from lance_ops.refs import branch_of, list_branches, list_tags, reference_store
from lance_ops.snapshot import Snapshot
from lance_ops.transactions import (
    Transaction,
    commit_past_unreadable,
    read_version,
    save_token,
)

__all__ = [
    "UNREADABLE_DIR",
    "GoBack",
    "SetAside",
    "UnreadableVersions",
    "find_unreadable",
    "held_versions",
    "manifest_finding",
    "open_newest_readable",
    "read_transaction",
    "transaction_of",
]

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
        SetAside(self.unreadable, token_versions=(self.version,)).apply(snapshot)
        return snapshot.with_manifest(made)


@dataclass(frozen=True)
class SetAside(RepairAction):
    """Move manifests that cannot be read to `UNREADABLE_DIR`; nothing is committed.

    Before that, the action writes down the batch `events` up to the newest of these versions, and the tokens of the
    `token_versions`, which are directly before these versions.
    """

    versions: tuple[int, ...]
    events: tuple[BatchEvent, ...] = ()
    token_versions: tuple[int, ...] = ()

    name = "set unreadable manifests aside"

    @property
    def explanation(self) -> str:
        numbers = ", ".join(map(str, self.versions))
        return (
            f"keep the manifests of versions {numbers}, which nobody can read, in {UNREADABLE_DIR}; clean-up removes "
            "files that only they name"
        )

    def apply(self, snapshot: Snapshot) -> Snapshot:
        for version in self.token_versions:
            with suppress(VersionNotFound):  # a clean-up has removed it, and saved its token
                save_token(snapshot.store, read_version(snapshot.store, snapshot.committer, version))
        if self.events:
            newest = max(self.versions)
            checkpoint_batches(snapshot.store, newest, [event for event in self.events if event.version <= newest])
        for version in self.versions:
            with suppress(VersionNotFound):  # another repair moved it
                data = snapshot.committer.read(version)
                snapshot.store.put(f"{UNREADABLE_DIR}/{version}-{uuid4().hex}.manifest", data)
                snapshot.committer.remove(version)
        return snapshot


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
            findings.append(manifest_finding(snapshot, version, error))
            lost.insert(0, f"{_operation_of(snapshot, version)} (version {version})")
        else:
            return UnreadableVersions(tuple(findings), readable, tuple(lost)) if findings else None
    return UnreadableVersions(tuple(findings), None, tuple(lost)) if findings else None


def held_versions(snapshot: Snapshot) -> dict[int, str]:
    """Return the versions of the snapshot's branch that a tag names or a branch began with, with the name of one each.

    Raises `CorruptFile` for a tag or a branch that cannot be read.
    """
    store, branch = reference_store(snapshot), branch_of(snapshot)
    branches = {
        each.parent_version: f"branch {name!r}"
        for name, each in list_branches(store).items()
        if each.parent_branch == branch
    }
    tags = {tag.version: f"tag {name!r}" for name, tag in list_tags(store).items() if tag.branch == branch}
    return branches | tags


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


def manifest_finding(snapshot: Snapshot, version: int, error: CorruptFile) -> Finding:
    path = snapshot.store.uri_of(snapshot.committer.location(version))
    return Finding(DamageKind.MANIFEST, FindingSeverity.DAMAGED, f"{error.place}: {error.reason}", version, path)


def _operation_of(snapshot: Snapshot, version: int) -> str:
    """Return the name of the operation that made an unreadable version, if its transaction is known."""
    transaction = transaction_of(snapshot, version)
    return "an unknown change" if transaction is None else transaction.operation.name


def transaction_of(snapshot: Snapshot, version: int) -> Transaction | None:
    """Return the transaction that made an unreadable version, if the name of its file is undamaged; else None."""
    with suppress(LanceOpsError):
        for name in _TRANSACTION_NAME.findall(snapshot.committer.read(version).to_pybytes()):
            return read_transaction(snapshot, name.decode())
    return None


def read_transaction(snapshot: Snapshot, name: str) -> Transaction | None:
    path = f"{TRANSACTIONS_DIR}/{name}"
    with suppress(LanceOpsError):
        return Transaction.decode(snapshot.store.get(path).to_pybytes(), path)
    return None
