"""Make the next version's manifest out of the newest one and a transaction."""

from __future__ import annotations

from dataclasses import replace

from lance_ops.core.errors import InvalidInput
from lance_ops.core.schema import Schema
from lance_ops.table import WRITER, DataFile, Fragment, Manifest, flags_for
from lance_ops.transactions.operation import ApplyContext
from lance_ops.transactions.transaction import Transaction

__all__ = ["NO_TABLE", "next_manifest"]

NO_TABLE = Manifest(version=0, schema=Schema(()))
"""What the first transaction of a table is applied to."""


def next_manifest(newest: Manifest, transaction: Transaction, context: ApplyContext, now_ns: int) -> Manifest:
    """Apply a transaction and set what every version says of itself; whether the result is sound is not looked at.

    The time never goes back, whatever the clocks of the writers say.
    """
    operation = transaction.operation
    if newest.version == 0 and not operation.creates_table:
        raise InvalidInput(f"{operation.name} needs a table, and there is none yet")
    made = operation.apply(newest, context)
    since = made.fragments.changes_since(newest.fragments)
    # Columns may have been dropped since: what was written for them alone is as if it had been dropped with them.
    known = {node.id for node in made.schema.walk()} if newest.version > transaction.read_version else None
    cleared: dict[int, Fragment] = {}
    for fragment in since.new:
        files = _live_files(fragment, known)
        if len(files) < len(fragment.files):
            cleared[fragment.id] = replace(fragment, files=files)
    fragments = made.fragments.with_changes(cleared)
    if not since.ids_ascend_above(newest.next_fragment_id - 1):
        fragments = fragments.in_order()
    if fragments is not made.fragments:
        made = replace(made, fragments=fragments)
    reader, writer = flags_for(made, newest)
    return replace(
        made,
        version=newest.version + 1,
        reader_feature_flags=reader,
        writer_feature_flags=writer,
        timestamp_ns=max(now_ns, newest.timestamp_ns or 0),
        tag=transaction.tag,
        transaction_file=transaction.file_name,
        writer_version=WRITER,
    )


def _live_files(fragment: Fragment, known: set[int] | None) -> tuple[DataFile, ...]:
    """Return the files but those whose fields all moved to others, or are none of the `known` ones."""
    live = tuple(file for file in fragment.files if file.live_fields)
    if known is None:
        return live
    return tuple(file for file in live if not known.isdisjoint(file.live_fields)) or live
