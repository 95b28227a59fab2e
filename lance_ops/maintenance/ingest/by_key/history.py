"""Work changes into the histories of their keys: which rows to add, and which to end.

    id  price  valid_from  valid_to    current
    7   1.00   2026-01-01  2026-02-01  false
    7   1.20   2026-02-01  null        true

A change may come late: it then ends where the next row of its key begins. A change at the moment of a row takes its
place. A change that repeats the values before it adds nothing, so a replay changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lance_ops.blobs import schema_to_write
from lance_ops.changing import SourceKeys
from lance_ops.changing.merge_insert.by_tasks import SourceRows
from lance_ops.committers import open_root
from lance_ops.core.arrow import rows_at
from lance_ops.core.ndarrays import BoolArray, Int64Array
from lance_ops.core.records import dataclass
from lance_ops.core.versions import FileVersion
from lance_ops.maintenance.ingest.by_key.history_columns import HistoryColumns
from lance_ops.maintenance.ingest.by_key.staged_rows import Bucket, bucket_rows, columns_of
from lance_ops.snapshot import SnapshotReference
from lance_ops.table import Fragment
from lance_ops.writing import FragmentLimits, FragmentWriter

__all__ = ["HistoryTask", "history_rows", "write_history"]


@dataclass(frozen=True)
class HistoryTask:
    """A share of the changes, and where to write the rows that follow from it. `label` is no value of a row."""

    bucket: Bucket
    target: SnapshotReference
    columns: HistoryColumns
    label: str | None
    uri: str
    file_version: FileVersion
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)


def write_history(task: HistoryTask) -> tuple[Fragment, ...]:
    """Write the rows to add and to end, in the target's columns."""
    target = task.target.open()
    wanted = schema_to_write(target.schema)
    changes, _ = bucket_rows(task.bucket, (name for name in wanted.names if name not in task.columns.derived))
    keys = SourceKeys(columns_of(changes, task.bucket.keys), task.bucket.keys)
    tables = [wanted.empty_table()]
    ids = tuple(sorted(fragment.id for fragment in target.fragments))
    for rows in SourceRows.of(target).scan(wanted.names, wanted, ids) if len(changes) else ():
        positions, _ = keys.hits(columns_of(rows.table, task.bucket.keys))
        tables.append(rows_at(rows.table, positions))
    found = history_rows(pa.concat_tables(tables), changes, task.bucket.keys, task.columns, task.label)
    store = open_root(task.uri, task.storage_options).store
    with FragmentWriter(store, target.schema, task.file_version, FragmentLimits()) as writer:
        for batch in found.select(wanted.names).to_batches():
            writer.write(batch)
        return tuple(writer.finish())


def history_rows(
    known: pa.Table, changes: pa.Table, keys: tuple[str, ...], columns: HistoryColumns, label: str | None = None
) -> pa.Table:
    """Return the changes that say something new, with their end, and the known rows that end earlier now.

    `known` has all rows of the keys of `changes`, and the columns of `changes` besides `valid_to` and `current`. Of two
    changes of one key at one moment the later one counts. `label` is a column that is not compared.
    """
    if not len(changes):
        return known.slice(0, 0)
    is_change = np.arange(len(known) + len(changes)) >= len(known)
    rows = pa.concat_tables([known.select(changes.schema.names), changes.cast(_types(known, changes))])
    codes = SourceKeys(columns_of(rows, keys), keys).codes
    (moments,) = columns_of(rows, [columns.valid_from])
    ranks = _ranks(moments)
    chain = np.lexsort((np.arange(len(rows)), ranks, codes))
    at_once = _equals_next(codes[chain]) & _equals_next(ranks[chain])
    twice = at_once & is_change[chain] & np.append(is_change[chain][1:], False)
    chain = chain[~twice]

    values = [name for name in changes.schema.names if name not in (*keys, columns.valid_from, label)]
    repeats = is_change[chain] & _equals_before(codes[chain]) & _values_equal_before(rows_at(rows, chain), values)
    chain = chain[~repeats]
    replaced = _equals_next(codes[chain]) & _equals_next(ranks[chain])
    chain = chain[~replaced]

    has_next = _equals_next(codes[chain])
    following = np.append(chain[1:], 0)
    ends = pc.if_else(pa.array(has_next), moments.take(pa.array(following)), pa.scalar(None, moments.type))
    open_ended = pa.concat_arrays([columns_of(known, [columns.valid_to])[0], pa.nulls(len(changes), moments.type)])
    stored_ends = open_ended.take(pa.array(chain))
    ends_earlier = pc.fill_null(pc.less(ends, stored_ends), pc.and_(pc.is_null(stored_ends), pc.is_valid(ends)))
    shortened = has_next & is_change[following] & ends_earlier.to_numpy(zero_copy_only=False)
    written = np.flatnonzero(is_change[chain] | shortened)
    ends = ends.take(pa.array(written))
    found = rows_at(rows, chain[written])
    return found.append_column(columns.valid_to, ends).append_column(columns.current, pc.is_null(ends))


def _types(known: pa.Table, changes: pa.Table) -> pa.Schema:
    return pa.schema([known.schema.field(name) for name in changes.schema.names])


def _ranks(moments: pa.Array) -> Int64Array:
    """Return numbers in the order of the moments, equal ones for equal moments; a null comes last."""
    distinct = pc.unique(moments)
    in_order = distinct.take(pc.sort_indices(distinct))
    ranks: Int64Array = pc.index_in(moments, value_set=in_order).to_numpy(zero_copy_only=False).astype(np.int64)
    return ranks


def _equals_next(values: Int64Array) -> BoolArray:
    """Return for each value whether the next one is equal; False for the last."""
    return np.append(values[:-1] == values[1:], False)


def _equals_before(values: Int64Array) -> BoolArray:
    """Return for each value whether the one before is equal; False for the first."""
    return np.insert(values[:-1] == values[1:], 0, False)


def _values_equal_before(rows: pa.Table, names: list[str]) -> BoolArray:
    """Return for each row whether the row before has the same values in all these columns; a null equals a null."""
    equal = np.ones(len(rows), np.bool_)
    equal[:1] = False
    for values in columns_of(rows, names):
        before, after = values.slice(0, len(values) - 1), values.slice(1)
        if pt.is_nested(values.type) or pt.is_dictionary(values.type):
            same = np.array([left == right for left, right in zip(before.to_pylist(), after.to_pylist(), strict=True)])
        else:
            both_null = pc.and_(pc.is_null(before), pc.is_null(after))
            same = pc.fill_null(pc.equal(before, after), False).to_numpy(zero_copy_only=False)
            same = same | both_null.to_numpy(zero_copy_only=False)
        equal[1:] &= same.astype(np.bool_)
    return equal
