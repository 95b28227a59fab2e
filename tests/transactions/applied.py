"""Apply operations to a table of three fragments, and read the parts of the next version that tests compare."""

from __future__ import annotations

from dataclasses import replace

from lance_ops.table import FeatureFlag, Fragment, Manifest, check_adds_no_violation, violations
from lance_ops.table.rows.row_sequences import decode_row_ids, decode_versions
from lance_ops.transactions import ApplyContext, Operation, Transaction, next_manifest
from tests.table.samples import fragment, index, manifest

__all__ = ["LATER", "TABLE", "after", "coverage", "ids", "row_ids", "stable", "versions"]

TABLE = manifest(fragment(0), fragment(1), fragment(2), version=4, indices=(index(1, covers=(0, 1)),))
LATER = (TABLE.timestamp_ns or 0) + 1_000_000


def after(operation: Operation, table: Manifest = TABLE, context: ApplyContext | None = None) -> Manifest:
    """Return the version after `table`; assert that it breaks no invariant."""
    made = next_manifest(table, Transaction(table.version, operation), context or ApplyContext(), LATER)
    check_adds_no_violation(table if table.version else None, made)
    assert violations(made) == []
    return made


def ids(table: Manifest) -> list[int]:
    return [each.id for each in table.fragments]


def coverage(table: Manifest) -> dict[str, list[int]]:
    return {str(each.uuid.int): list(each.fragment_bitmap or ()) for each in table.indices}


def stable(*fragments: Fragment, next_row_id: int) -> Manifest:
    """Return a table of stable row ids."""
    both = FeatureFlag.STABLE_ROW_IDS
    return replace(
        manifest(*fragments, version=4),
        reader_feature_flags=int(both),
        writer_feature_flags=int(both),
        next_row_id=next_row_id,
    )


def row_ids(each: Fragment) -> list[int]:
    assert isinstance(each.row_ids, bytes)
    return [int(row_id) for row_id in decode_row_ids(each.row_ids, each.physical_rows, "f").expand()[0]]


def versions(each: Fragment, which: str) -> list[int]:
    data = getattr(each, f"{which}_versions")
    assert isinstance(data, bytes)
    return [int(version) for version in decode_versions(data, each.physical_rows, "f").expand()]
