"""Make a table of decoded columns, and cut a table into batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from lance_ops.core.schema import Schema
from lance_ops.file.page_reading import naming_place

__all__ = ["batches_of", "table_of"]


def table_of(projection: Schema, arrays: Sequence[Sequence[pa.Array]], num_rows: int, path: str) -> pa.Table:
    """Return a table with the projection's extension types; each field comes as arrays. Errors name `path`."""
    with naming_place(path, "schema"):
        storage, wanted = projection.to_arrow_storage(), projection.to_arrow_restored()
    columns = [
        parts[0] if len(parts) == 1 else pa.chunked_array(parts, field.arrow_type)
        for parts, field in zip(arrays, projection.fields, strict=True)
    ]
    if not columns:
        return pa.Table.from_batches([_without_columns(num_rows).replace_schema_metadata(storage.metadata)])
    if wanted is not storage:
        restored = zip(columns, wanted, strict=True)
        columns = [column if column.type == field.type else column.cast(field.type) for column, field in restored]
    return pa.Table.from_arrays(columns, schema=wanted)


def batches_of(table: pa.Table, batch_rows: int) -> Iterator[pa.RecordBatch]:
    """Yield the table's rows in batches of `batch_rows`, of which the last may have fewer."""
    if not table.num_columns:
        for first in range(0, table.num_rows, batch_rows):
            rows = min(batch_rows, table.num_rows - first)
            yield _without_columns(rows)
        return
    whole = all(column.num_chunks <= 1 for column in table.columns)
    for first in range(0, table.num_rows, batch_rows):
        part = table.slice(first, batch_rows)
        yield from (part if whole else part.combine_chunks()).to_batches()


def _without_columns(num_rows: int) -> pa.RecordBatch:
    """Return a batch of rows without columns; other ways to make one lose the number of rows."""
    return pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), num_rows, [None]))
