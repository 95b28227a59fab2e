"""Find the newest older version that is whole, and what restoring it would take back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from lance_ops.core.errors import CorruptFile, LanceOpsError, UnsupportedFeature, VersionNotFound
from lance_ops.core.records import dataclass
from lance_ops.maintenance.verification import (
    DamageKind,
    Finding,
    VerificationLevel,
    VerificationOptions,
    verify,
)
from lance_ops.snapshot import Snapshot
from lance_ops.transactions import CommittedVersion, CreateIndex, ReserveFragments, Rewrite, read_version

__all__ = ["WholeVersion", "concerns_rows", "find_whole_version"]

_MOST_VERIFIED = 10
_CHANGE_NO_ROW = (CreateIndex, ReserveFragments, Rewrite)
_BESIDE_ROWS = frozenset({DamageKind.TAG, DamageKind.BRANCH, DamageKind.VERSION_HINT, DamageKind.TRANSACTION_FILE})


@dataclass(frozen=True)
class WholeVersion:
    """A version without damaged rows; `undone` are the operations since then that changed rows, oldest first."""

    version: int
    undone: tuple[str, ...]


def concerns_rows(finding: Finding) -> bool:
    """Return whether a damage is one of a version's rows, and not of an index, a reference or a transaction's file."""
    is_transaction = finding.kind is DamageKind.MISSING_FILE and finding.fragment_id is None
    return finding.is_damage and not (finding.index_name or finding.kind in _BESIDE_ROWS or is_transaction)


def find_whole_version(
    snapshot: Snapshot, damaged_paths: frozenset[str], level: VerificationLevel
) -> WholeVersion | None:
    """Return the newest of the older versions that names no damaged file and has whole rows.

    A verification of this `level` decides; damaged indices do not count. At most ten versions are verified. A version
    whose manifest is gone or cannot be read counts as an unknown change.
    """
    undone: list[str] = []
    verified = 0
    accounted = snapshot.version + 1  # what this version and later ones changed is in `undone`
    for past in _readable_versions(snapshot):
        undone += _unknown_changes(past.version + 1, accounted)
        accounted = past.version + 1
        if past.version != snapshot.version and verified < _MOST_VERIFIED:
            older = snapshot.with_manifest(past.manifest)
            try:
                if not damaged_paths.intersection(_paths_of(older)):
                    verified += 1
                    report = verify(older, VerificationOptions(level))
                    if not any(map(concerns_rows, report.damages)):
                        return WholeVersion(past.version, tuple(reversed(undone)))
            except LanceOpsError:
                pass  # it cannot be read, so it cannot be restored
        if past.stored_transaction is not None:
            accounted = past.version
            if not issubclass(past.stored_transaction.operation_type, _CHANGE_NO_ROW):
                undone.append(f"{past.stored_transaction.operation_type.__name__} (version {past.version})")
    return None


def _readable_versions(snapshot: Snapshot) -> Iterator[CommittedVersion]:
    """Yield the versions up to the snapshot's that can be read, newest first."""
    for version in reversed(snapshot.committer.versions()):
        if version <= snapshot.version:
            with suppress(CorruptFile, UnsupportedFeature, VersionNotFound):  # a concurrent clean-up may remove it
                yield read_version(snapshot.store, snapshot.committer, version)


def _unknown_changes(start: int, stop: int) -> list[str]:
    """Name what the versions `start` to `stop` (exclusive) may have changed."""
    if start == stop:
        return []
    one = stop - start == 1
    return [f"an unknown change (version {start})" if one else f"unknown changes (versions {start} to {stop - 1})"]


def _paths_of(snapshot: Snapshot) -> set[str]:
    locations = snapshot.file_locations
    paths: set[str] = set()
    for fragment in snapshot.manifest.fragments:
        paths.update(locations.data_file(file.base_id, file.path).uri for file in fragment.files)
        if fragment.deletion_file is not None:
            paths.add(locations.deletion_file(fragment).uri)
    return paths
