"""Encode the filter of the primary keys that a merge inserts, for its transaction (`transactions.inserted_keys`).

The bytes of a key are its text or binary value, or eight little-endian bytes for an integer. For a key of several
columns, a zero byte follows the bytes of each column.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lance_ops import kernels
from lance_ops.changing.merge_insert.merge_request import BoundMerge, key_column, key_columns, primary_key
from lance_ops.core.arrow import is_text, rows_at
from lance_ops.core.ndarrays import Int64Array
from lance_ops.kernels import read_only
from lance_ops.snapshot import Snapshot
from lance_ops.transactions import InsertedKeys

__all__ = ["encode_inserted_keys", "encode_keys"]


def encode_inserted_keys(snapshot: Snapshot, merge: BoundMerge, rows: Int64Array) -> bytes | None:
    """Return the encoded filter of the keys of source rows that a merge inserts; None as `encode_keys` does."""
    if not merge.request.inserts:
        return None
    return encode_keys(snapshot, [key.name for key in merge.keys], rows_at(merge.source, rows))


def encode_keys(snapshot: Snapshot, on: Collection[str], rows: pa.Table) -> bytes | None:
    """Return the encoded filter of the keys of rows; None unless the columns `on` are the declared primary key.

    Also return None for a key type that the reference does not hash, or hashes in another way.
    """
    declared = primary_key(snapshot)
    if not declared or set(declared) != set(on):
        return None
    columns = []
    for column in key_columns(rows, [key_column(rows.schema, path) for path in declared]):
        content = _bytes_of(column)
        if content is None:
            return None
        columns.append(content)
    joined_keys = columns[0]
    if len(columns) > 1:
        end = pa.scalar(b"\0", pa.large_binary())
        joined_keys = pc.binary_join_element_wise(*columns, pa.scalar(b"", pa.large_binary()), end)
    joined_keys = joined_keys.drop_null()
    hashes = np.empty(len(joined_keys), np.uint64)
    if len(joined_keys):
        _, offsets, data = joined_keys.buffers()
        ends = np.frombuffer(offsets, np.int64)[joined_keys.offset : joined_keys.offset + len(joined_keys) + 1]
        joined = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)
        kernels.xxh64(read_only(joined), read_only(ends), hashes)
    fields = tuple(snapshot.schema.field(path).id for path in declared)
    return InsertedKeys.from_hashes(fields, hashes).encode()


def _bytes_of(column: pa.Array) -> pa.Array | None:
    """Return the bytes of each value as large_binary; None for a type that is not hashed."""
    kind = column.type
    if pt.is_integer(kind) and kind.bit_width >= 32:
        words = column.cast(pa.uint64() if pt.is_unsigned_integer(kind) else pa.int64())
        plain = pa.Array.from_buffers(pa.binary(8), len(words), words.buffers(), words.null_count, words.offset)
        return plain.cast(pa.large_binary())
    if is_text(kind):
        return column.cast(pa.large_string()).cast(pa.large_binary())
    if pt.is_binary(kind) or pt.is_large_binary(kind):
        return column.cast(pa.large_binary())
    return None
