"""Make the next version's manifest out of the newest one and a transaction."""

from __future__ import annotations

from dataclasses import replace

from lance_ops.core.errors import InvalidInput
from lance_ops.core.schema import Schema
from lance_ops.table import WRITER, Fragment, Manifest, check_adds_no_violation, flags_for
from lance_ops.transactions.operation import Context
from lance_ops.transactions.transaction import Transaction

__all__ = ["NO_TABLE", "next_manifest"]

NO_TABLE = Manifest(version=0, schema=Schema(()))
"""What the first transaction of a table is applied to."""


def next_manifest(newest: Manifest, transaction: Transaction, context: Context, now_ns: int) -> Manifest:
    """Apply a transaction and set what every version says of itself.

    The time never goes back, whatever the clocks of the writers say. Raises `InvalidInput` when the result would break
    an invariant that the version before kept.
    """
    operation = transaction.operation
    if newest.version == 0 and not operation.creates_table:
        raise InvalidInput(f"{operation.name} needs a table, and there is none yet")
    made = operation.apply(newest, context)
    changed, _ = made.fragments.since(newest.fragments)
    cleared = {fragment.id: _without_dead_files(fragment) for fragment in changed if _has_dead_files(fragment)}
    fragments = made.fragments.with_changes(cleared)
    if not fragments.grew_from(newest.fragments, newest.next_fragment_id - 1):
        fragments = fragments.in_order()
    if fragments is not made.fragments:
        made = replace(made, fragments=fragments)
    reader, writer = flags_for(made, newest)
    made = replace(
        made,
        version=newest.version + 1,
        reader_feature_flags=reader,
        writer_feature_flags=writer,
        timestamp_ns=max(now_ns, newest.timestamp_ns or 0),
        tag=transaction.tag,
        transaction_file=transaction.file_name,
        writer_version=WRITER,
    )
    check_adds_no_violation(newest if newest.version else None, made)
    return made


def _has_dead_files(fragment: Fragment) -> bool:
    """Whether a file's fields all moved to others."""
    return not all(file.live_fields for file in fragment.files)


def _without_dead_files(fragment: Fragment) -> Fragment:
    return replace(fragment, files=tuple(file for file in fragment.files if file.live_fields))
