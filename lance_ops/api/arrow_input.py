"""Turn whatever a caller passes as data into a stream of Arrow batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from lance_ops.core.errors import InvalidInput

__all__ = ["reader_of"]


def reader_of(data: Any, schema: pa.Schema | None) -> pa.RecordBatchReader:
    """Return the data as a stream of batches, cast to `schema` if one is given.

    The data is a table, a batch, a reader, a dataset, a pandas data frame, anything with `__arrow_c_stream__`, or an
    iterable of batches together with a schema. Raises `InvalidInput` for anything else.
    """
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if isinstance(data, pa.Table):
        return data.to_reader() if schema is None else data.cast(schema).to_reader()
    if isinstance(data, pa.RecordBatchReader):
        return data if schema is None else data.cast(schema)
    if type(data).__module__.partition(".")[0] == "pandas":
        return pa.Table.from_pandas(data, schema=schema, preserve_index=False).to_reader()
    if hasattr(data, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(data, schema=schema)
    if isinstance(data, Iterable) and schema is not None:
        return pa.RecordBatchReader.from_batches(schema, _batches(data))
    raise InvalidInput(
        f"cannot write a {type(data).__name__}: pass Arrow data, a pandas data frame, or batches together with a schema"
    )


def _batches(data: Iterable[Any]) -> Iterator[pa.RecordBatch]:
    for item in data:
        if isinstance(item, pa.Table):
            yield from item.to_batches()
        else:
            yield item
