"""Find the newest older version that is whole, and what restoring it would take back."""

from __future__ import annotations

from dataclasses import dataclass

from lance_ops.core.errors import LanceOpsError
from lance_ops.maintenance.verification import (
    DamageKind,
    Finding,
    VerificationLevel,
    VerificationOptions,
    verify,
)
from lance_ops.snapshot import Snapshot, history
from lance_ops.transactions import CreateIndex, ReserveFragments, Rewrite

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
    """Return the newest of the older versions that names no damaged file and passes a verification of this level.

    At most ten versions are verified.
    """
    undone: list[str] = []
    verified = 0
    for past in history(snapshot):
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
        operation = None if past.transaction is None else past.transaction.operation
        if not isinstance(operation, _CHANGE_NO_ROW):
            what = "an unknown change" if operation is None else operation.name
            undone.append(f"{what} (version {past.version})")
    return None


def _paths_of(snapshot: Snapshot) -> set[str]:
    locations = snapshot.file_locations
    paths: set[str] = set()
    for fragment in snapshot.manifest.fragments:
        paths.update(locations.data_file(file.base_id, file.path).uri for file in fragment.files)
        if fragment.deletion_file is not None:
            paths.add(locations.deletion_file(fragment).uri)
    return paths
