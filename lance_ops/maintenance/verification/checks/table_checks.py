"""Check what belongs to a version as a whole: its manifest, its transaction's file, and the uniqueness of row ids."""

from __future__ import annotations

import numpy as np

from lance_ops.core.errors import LanceOpsError
from lance_ops.core.file_names import TRANSACTIONS_DIR
from lance_ops.core.ndarrays import Int64Array, Uint64Array
from lance_ops.maintenance.verification.checks.checksum_checks import agrees_with_checksums
from lance_ops.maintenance.verification.findings import DamageKind, FindingCollector
from lance_ops.snapshot import Snapshot
from lance_ops.table import inline_transaction, manifest_checksum_report, violations
from lance_ops.table.manifest import ObjectLocation
from lance_ops.table.rows import offsets_in
from lance_ops.transactions import Transaction

__all__ = ["check_table"]

_SHOWN = 5

_OF_INDICES = ("indexed_fields_exist",)
"""The invariants that the check of an index reports, with the name of the index."""


def check_table(snapshot: Snapshot, found: FindingCollector) -> None:
    """Record broken invariants of the manifest, a missing transaction file, and rows that share a row id."""
    with found.errors_as(DamageKind.MANIFEST, snapshot.manifest_uri):
        for violation in violations(snapshot.manifest):
            if violation.invariant not in _OF_INDICES:
                found.damaged(DamageKind.MANIFEST, str(violation), snapshot.manifest_uri)
    _check_transaction(snapshot, found)
    if snapshot.manifest.uses_stable_row_ids:
        with found.errors_as(DamageKind.ROW_IDS, snapshot.manifest_uri):
            _check_row_ids(snapshot, found)


def _check_transaction(snapshot: Snapshot, found: FindingCollector) -> None:
    """Check the transaction in the manifest, and its file if the manifest names one."""
    with found.errors_as(DamageKind.MANIFEST, snapshot.manifest_uri):
        data = snapshot.committer.read(snapshot.version)
        agrees_with_checksums(manifest_checksum_report(data), snapshot.manifest_uri, data.size, found)
        inline = inline_transaction(data, snapshot.manifest_uri)
        if inline is not None:
            Transaction.decode(inline, snapshot.manifest_uri)
    name = snapshot.manifest.transaction_file
    if name:
        location = ObjectLocation(snapshot.store, f"{TRANSACTIONS_DIR}/{name}")
        with found.errors_as(DamageKind.TRANSACTION_FILE, location.uri):
            if found.is_there(location, 0):
                Transaction.decode(location.store.get(location.path).to_pybytes(), location.uri)


def _check_row_ids(snapshot: Snapshot, found: FindingCollector) -> None:
    """Record each fragment in which a live row has the id of another live row.

    Takes the memory of the index of row ids, which every read by row id builds: a few numbers for each run of ids.
    """
    starts, ends, owners = _live_runs(snapshot)
    order = np.argsort(starts, kind="stable")
    starts, ends, owners = starts[order], ends[order], owners[order]
    furthest = np.maximum.accumulate(ends) if len(ends) else ends
    holders = np.maximum.accumulate(np.where(ends == furthest, np.arange(len(ends)), 0)) if len(ends) else order
    twice = np.flatnonzero(starts[1:] < furthest[:-1]) + 1
    pairs = {
        tuple(sorted(pair)): at for pair, at in zip(_owners(owners, holders[twice - 1], twice), twice, strict=True)
    }
    for (first, second), at in sorted(pairs.items())[:_SHOWN]:
        detail = f"live rows of fragments {first} and {second} share the row id {starts[at]}"
        found.damaged(DamageKind.ROW_IDS, detail, snapshot.manifest_uri, fragment_id=second)


def _owners(owners: Int64Array, first: Int64Array, second: Int64Array) -> list[tuple[int, int]]:
    return list(zip(owners[first].tolist(), owners[second].tolist(), strict=True))


def _live_runs(snapshot: Snapshot) -> tuple[Uint64Array, Uint64Array, Int64Array]:
    """Return the first and the last id (exclusive) of each run of live rows, and the run's fragment."""
    starts, ends, owners = [np.empty(0, np.uint64)], [np.empty(0, np.uint64)], [np.empty(0, np.int64)]
    for fragment in snapshot.fragments:
        try:
            ids, deleted = snapshot.lineage(fragment).row_ids, snapshot.deletion_vector(fragment)
        except LanceOpsError:
            continue  # the check of this fragment records it
        live = ids.without(offsets_in(deleted)) if deleted else ids
        starts.append(live.starts)
        ends.append(live.starts + live.lengths)
        owners.append(np.full(len(live.starts), fragment.id, np.int64))
    return np.concatenate(starts), np.concatenate(ends), np.concatenate(owners)
