"""Check what belongs to a version as a whole: its manifest and its transaction's file."""

from __future__ import annotations

from lance_ops.core.file_names import TRANSACTIONS_DIR
from lance_ops.maintenance.verification.checks.checksum_checks import record_checksum_report
from lance_ops.maintenance.verification.findings import DamageKind, FindingCollector
from lance_ops.snapshot import Snapshot
from lance_ops.table import inline_transaction, manifest_checksum_report, violations
from lance_ops.table.manifest import ObjectLocation
from lance_ops.transactions import Transaction

__all__ = ["check_table"]

_OF_INDICES = ("indexed_fields_exist",)
"""The invariants that the check of an index reports, with the name of the index."""


def check_table(snapshot: Snapshot, found: FindingCollector, *, is_old: bool = False) -> None:
    """Record broken invariants and changed bytes of the manifest, and a missing or unreadable transaction file.

    An old version whose manifest holds its transaction needs no file of it: the reference's clean-up removes that of a
    version which a branch keeps.
    """
    with found.errors_as(DamageKind.MANIFEST, snapshot.manifest_uri):
        for violation in violations(snapshot.manifest):
            if violation.invariant not in _OF_INDICES:
                found.damaged(DamageKind.MANIFEST, str(violation), snapshot.manifest_uri)
    _check_transaction(snapshot, found, is_old=is_old)


def _check_transaction(snapshot: Snapshot, found: FindingCollector, *, is_old: bool) -> None:
    """Check the transaction in the manifest, and its file if the manifest names one."""
    inline = None
    with found.errors_as(DamageKind.MANIFEST, snapshot.manifest_uri):
        data = snapshot.committer.read(snapshot.version)
        record_checksum_report(manifest_checksum_report(data), snapshot.manifest_uri, data.size, found)
        inline = inline_transaction(data, snapshot.manifest_uri)
        if inline is not None:
            Transaction.decode(inline, snapshot.manifest_uri)
    name = snapshot.manifest.transaction_file
    if name:
        location = ObjectLocation(snapshot.store, f"{TRANSACTIONS_DIR}/{name}")
        with found.errors_as(DamageKind.TRANSACTION_FILE, location.uri):
            if is_old and inline is not None and not location.store.exists(location.path):
                return
            if found.is_there(location, 0):
                Transaction.decode(location.store.get(location.path).to_pybytes(), location.uri)
