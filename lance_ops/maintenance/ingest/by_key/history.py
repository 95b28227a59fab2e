"""Work changes into the histories of their keys: which rows to add, and which to end.

    id  price  valid_from  valid_to    current
    7   1.00   2026-01-01  2026-02-01  false
    7   1.20   2026-02-01  null        true

A change may come late: it then ends where the next row of its key begins. A change at the moment of a row takes its
place. A change adds nothing if its values are those of the row before it, and still true: so a replay changes nothing.
If that row has ended, the change is a new row: the key came back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

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
from lance_ops.snapshot import Snapshot, SnapshotReference
from lance_ops.table import Fragment
from lance_ops.writing import FragmentLimits, FragmentWriter

__all__ = ["HistoryTask", "history_rows", "write_history"]


@dataclass(frozen=True)
class HistoryTask:
    """A share of the changes, and where to write the rows that follow from it. `batch_column` is no value of a row."""

    bucket: Bucket
    target: SnapshotReference
    columns: HistoryColumns
    batch_column: str | None
    uri: str
    file_version: FileVersion
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)


def write_history(task: HistoryTask) -> tuple[Fragment, ...]:
    """Write the rows to add and to end, in the target's columns."""
    target = task.target.open()
    wanted = schema_to_write(target.schema)
    changes, _ = bucket_rows(task.bucket, (name for name in wanted.names if name not in task.columns.derived))
    known = _known_rows(target, wanted, changes, task.bucket.keys)
    found = history_rows(known, changes, task.bucket.keys, task.columns, task.batch_column)
    store = open_root(task.uri, task.storage_options).store
    with FragmentWriter(store, target.schema, task.file_version, FragmentLimits()) as writer:
        for batch in found.select(wanted.names).to_batches():
            writer.write(batch)
        return tuple(writer.finish())


def _known_rows(target: Snapshot, wanted: pa.Schema, changes: pa.Table, names: tuple[str, ...]) -> pa.Table:
    """Return the target's rows with the keys of the changes. Of all other rows, only the keys are read."""
    if not len(changes):
        return wanted.empty_table()
    rows, keys = SourceRows.of(target), SourceKeys(columns_of(changes, names), names)
    found = [np.empty(0, np.uint64)]
    for scanned in rows.scan(names, wanted):
        positions, _ = keys.hits(columns_of(scanned.table, names))
        found.append(scanned.addresses(positions))
    addresses = np.concatenate(found)
    return rows.take(wanted.names, wanted, addresses) if len(addresses) else wanted.empty_table()


def history_rows(
    known: pa.Table,
    changes: pa.Table,
    keys: tuple[str, ...],
    columns: HistoryColumns,
    batch_column: str | None = None,
) -> pa.Table:
    """Return the changes that say something new, with their end, and the known rows that end earlier now.

    `known` has all rows of the keys of `changes`, and the columns of `changes` besides `valid_to` and `current`. Of two
    changes of one key at one moment the later one counts. `batch_column` is not compared. In the others a
    null equals a null, and NaN equals NaN.
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

    values = [name for name in changes.schema.names if name not in (*keys, columns.valid_from, batch_column)]
    repeated = is_change[chain] & _equals_before(codes[chain])
    at = np.flatnonzero(repeated)
    repeated[at] = _have_equal_values(rows_at(rows, chain[at - 1]), rows_at(rows, chain[at]), values)
    known_ends = pa.concat_arrays([columns_of(known, [columns.valid_to])[0], pa.nulls(len(changes), moments.type)])
    chain = chain[~_adds_nothing(repeated, moments.take(pa.array(chain)), known_ends.take(pa.array(chain)))]
    replaced = _equals_next(codes[chain]) & _equals_next(ranks[chain])
    chain = chain[~replaced]

    has_next = _equals_next(codes[chain])
    following = np.append(chain[1:], 0)
    ends = pc.if_else(pa.array(has_next), moments.take(pa.array(following)), pa.scalar(None, moments.type))
    stored_ends = known_ends.take(pa.array(chain))
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


def _adds_nothing(repeated: BoolArray, moments: pa.Array, ends: pa.Array) -> BoolArray:
    """Return which changes say what is true at their moments; `repeated` are changes with the values of the row before.

    Such changes and the row before them are a run. `ends` are the ends of known rows. After the end of the row that
    begins a run, the first change counts, and is true for the rest of the run.
    """
    numbers = np.arange(len(repeated))
    first = np.maximum.accumulate(np.where(repeated, 0, numbers))
    is_over = pc.greater_equal(moments, ends.take(pa.array(first))).fill_null(False).to_numpy(zero_copy_only=False)
    comes_back: BoolArray = repeated & is_over
    comes_back[1:] &= ~comes_back[:-1]
    return repeated & ~comes_back


def _have_equal_values(left: pa.Table, right: pa.Table, names: list[str]) -> BoolArray:
    """Return for each row whether all these columns are equal; a null equals a null, and NaN equals NaN."""
    equal = np.ones(len(left), np.bool_)
    for before, after in zip(columns_of(left, names), columns_of(right, names), strict=True):
        equal &= _equal(before, after)
    return equal


def _equal(left: pa.Array, right: pa.Array) -> BoolArray:
    kind = left.type
    if isinstance(kind, pa.BaseExtensionType):
        return _equal(left.storage, right.storage)
    if pt.is_dictionary(kind):
        return _equal(left.dictionary_decode(), right.dictionary_decode())
    if pt.is_nested(kind):
        return np.array(list(map(_same, left.to_pylist(), right.to_pylist())), np.bool_)
    if pt.is_null(kind):
        return np.ones(len(left), np.bool_)
    if pt.is_float16(kind):  # which Arrow does not compare
        return _equal(left.cast(pa.float32()), right.cast(pa.float32()))
    same = pc.or_(pc.fill_null(pc.equal(left, right), False), pc.and_(pc.is_null(left), pc.is_null(right)))
    if pt.is_floating(kind):
        same = pc.or_(same, pc.fill_null(pc.and_(pc.is_nan(left), pc.is_nan(right)), False))
    found: BoolArray = same.to_numpy(zero_copy_only=False).astype(np.bool_)
    return found


def _same(left: Any, right: Any) -> bool:
    """Compare values of Python that an array's `to_pylist` gave."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(value, right[name]) for name, value in left.items())
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(_same, left, right))
    return bool(left == right or (left != left and right != right))
