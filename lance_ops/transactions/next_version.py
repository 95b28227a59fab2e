"""Build the manifest of the next version from the newest manifest and a transaction."""

from __future__ import annotations

from dataclasses import replace

from lance_ops.core.errors import InvalidInput
from lance_ops.core.schema import Schema
from lance_ops.table import WRITER, DataFile, Fragment, Manifest, change_manifest, flags_for
from lance_ops.transactions.operation import ApplyContext
from lance_ops.transactions.transaction import Transaction

__all__ = ["MOST_CLOCK_SKEW_SECONDS", "NO_TABLE", "next_manifest", "next_timestamp"]

NO_TABLE = Manifest(version=0, schema=Schema(()))
"""The manifest that the first transaction of a table is applied to."""

MOST_CLOCK_SKEW_SECONDS = 3600
"""How far the clocks of two processes may differ before one of them counts as wrong."""


def next_manifest(newest: Manifest, transaction: Transaction, context: ApplyContext, now_ns: int) -> Manifest:
    """Apply a transaction, and set the version, flags, timestamp, tag and writer; the caller checks the invariants."""
    operation = transaction.operation
    if newest.version == 0 and not operation.creates_table:
        raise InvalidInput(f"{operation.name} needs a table, and there is none yet")
    made = operation.apply(newest, context)
    changes = made.fragments.changes_since(newest.fragments)
    # A concurrent transaction may have dropped columns: files that hold values of these alone are dropped too.
    kept = {node.id for node in made.schema.walk()} if newest.version > transaction.read_version else None
    cleared: dict[int, Fragment] = {}
    for fragment in changes.new:
        files = _live_files(fragment, kept)
        if len(files) < len(fragment.files):
            cleared[fragment.id] = replace(fragment, files=files)
    fragments = made.fragments.with_changes(cleared)
    if not changes.ids_ascend_above(newest.next_fragment_id - 1):
        fragments = fragments.in_order()
    if fragments is not made.fragments:
        made = change_manifest(made, fragments=fragments)
    reader, writer = flags_for(made, newest)
    return change_manifest(
        made,
        version=newest.version + 1,
        reader_feature_flags=reader,
        writer_feature_flags=writer,
        timestamp_ns=next_timestamp(newest, now_ns),
        tag=transaction.tag,
        transaction_file=transaction.file_name,
        writer_version=WRITER,
    )


def next_timestamp(before: Manifest, now_ns: int) -> int:
    """Return the timestamp of a version that is made from `before` now.

    It is not earlier than that of `before` if the writers' clocks differ by up to `MOST_CLOCK_SKEW_SECONDS`. A
    timestamp further in the future is that of a wrong clock: later versions do not take it over.
    """
    earliest = before.timestamp_ns or 0
    return earliest if now_ns < earliest <= now_ns + MOST_CLOCK_SKEW_SECONDS * 10**9 else now_ns


def _live_files(fragment: Fragment, fields: set[int] | None) -> tuple[DataFile, ...]:
    """Return the files with a live field in `fields`; if there is none, or `fields` is None, all with a live field."""
    live = tuple(file for file in fragment.files if file.live_fields)
    if fields is None:
        return live
    return tuple(file for file in live if not fields.isdisjoint(file.live_fields)) or live
