"""The rows of new batches, staged as a dataset in the order of their arrival, read by the keys of one bucket.

A row's bucket follows from the hash of its key. A task reads the keys of all staged rows and holds those of its bucket,
so memory is bounded, and rows with one key are in one task.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from lance_ops.blobs import schema_to_write
from lance_ops.changing import key_hashes
from lance_ops.changing.merge_insert.by_tasks import SourceRows
from lance_ops.core.arrow import rows_at
from lance_ops.core.ndarrays import Uint64Array
from lance_ops.core.records import dataclass
from lance_ops.snapshot import Snapshot, SnapshotReference

__all__ = ["Bucket", "bucket_rows", "buckets_of", "bytes_of_buckets", "columns_of"]

_ROWS_PER_BUCKET = 1 << 20


@dataclass(frozen=True)
class Bucket:
    """One of several shares of the staged rows."""

    stage: SnapshotReference
    keys: tuple[str, ...]
    number: int
    count: int


def buckets_of(stage: Snapshot, keys: Sequence[str]) -> tuple[Bucket, ...]:
    """Share the staged rows; none if there are none."""
    num_rows = sum(fragment.physical_rows for fragment in stage.fragments)
    count = -(-num_rows // _ROWS_PER_BUCKET)
    reference = SnapshotReference.of(stage)
    return tuple(Bucket(reference, tuple(keys), number, count) for number in range(count))


def bytes_of_buckets(stage: Snapshot, buckets: Sequence[Bucket]) -> tuple[int, ...]:
    """Return about how many bytes of the staged rows each bucket has."""
    size_bytes = sum(file.file_size_bytes for fragment in stage.fragments for file in fragment.files)
    return (size_bytes // max(len(buckets), 1),) * len(buckets)


def bucket_rows(bucket: Bucket, names: Iterable[str]) -> tuple[pa.Table, Uint64Array]:
    """Return columns of a bucket's rows in the order of arrival, and their addresses."""
    stage = bucket.stage.open()
    wanted = frozenset((*names, *bucket.keys))
    schema = pa.schema([field for field in schema_to_write(stage.schema) if field.name in wanted])
    tables, addresses = [schema.empty_table()], [np.empty(0, np.uint64)]
    for rows in SourceRows.of(stage).scan(wanted, schema):
        hashes, _ = key_hashes(columns_of(rows.table, bucket.keys))
        ours = np.flatnonzero((hashes >> np.uint64(32)) % np.uint64(bucket.count) == bucket.number)
        tables.append(rows_at(rows.table, ours))
        addresses.append(rows.addresses(ours))
    return pa.concat_tables(tables), np.concatenate(addresses)


def columns_of(table: pa.Table, names: Iterable[str]) -> list[pa.Array]:
    """Return columns, each as one array."""
    return [_one_array(table.column(name)) for name in names]


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.nulls(0, column.type)])
