"""Turn whatever a caller passes as data into a stream of Arrow batches."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, time, timedelta
from numbers import Number
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from lance_ops.api.scanning import LanceScanner
from lance_ops.core.arrow import pads
from lance_ops.core.errors import InvalidInput, SchemaMismatch, WrongType
from lance_ops.core.frameworks import (
    check_is_one_dataset,
    hugging_face_schema,
    hugging_face_tables,
    is_hugging_face_dataset,
    rows_of_models,
    table_of_models,
)

__all__ = ["keys_with_names", "reader_of"]

_VALUES = (Number, np.generic, bytes, date, time, timedelta, type(None))
"""What an item of a list is, other than a text, that is the value of one column."""


def reader_of(data: Any, schema: pa.Schema | None) -> pa.RecordBatchReader:
    """Return the data as a stream of batches, cast to `schema` if one is given.

    The data is a table, a batch, a reader, a dataset or a scanner of this library, the reference or pyarrow, a data
    frame of pandas or Polars (also lazy), a dataset of Hugging Face, a dictionary of columns, a list of rows as
    dictionaries or as models of pydantic, anything with `__arrow_c_stream__` or `__arrow_c_array__`, or an iterable of
    batches together with a schema.

    Raises `SchemaMismatch` for values that do not fit one Arrow type or the schema, `WrongType` for anything else, and
    `InvalidInput` for an iterable without a schema. Batches that arrive later are cast when they are read.
    """
    with _conversion(data):
        table = _table_in_memory(data, schema)
        if table is not None:
            return table.to_reader()
        stream = _stream(data)
    if stream is not None and schema is None:
        return stream
    if stream is None and is_hugging_face_dataset(data):
        schema = hugging_face_schema(data) if schema is None else schema
        return pa.RecordBatchReader.from_batches(schema, _cast_batches(hugging_face_tables(data), schema))
    if stream is None and (not isinstance(data, Iterable) or isinstance(data, str | bytes | Mapping)):
        raise WrongType(
            f"a value of type {type(data).__name__} is no data: pass Arrow data, a data frame, a list of dictionaries, "
            "or batches together with a schema"
        )
    if schema is None:
        raise InvalidInput(f"the columns of a {type(data).__name__} are not known before it is read: pass schema=…")
    return pa.RecordBatchReader.from_batches(schema, _cast_batches(data if stream is None else stream, schema))


def keys_with_names(keys: Any, on: Sequence[str]) -> Any:
    """Return values of one key column as a table with that column, and other data as it is.

    Values are a list, tuple, set or range of them, or an array of Arrow, numpy, pandas or Polars. Texts in a list or a
    tuple are none: they name raw files. Raises `InvalidInput` for rows or batches whose columns have no names, and for
    values where `on` names several columns, and `SchemaMismatch` for values of several types.
    """
    needed = f"pass a table, or a list of dictionaries, with the columns {', '.join(on)}"
    listed = list(keys) if isinstance(keys, list | tuple | set | frozenset | range) else None
    if (listed and isinstance(listed[0], list | tuple)) or (
        isinstance(keys, Iterator) and not hasattr(keys, "__arrow_c_stream__")
    ):
        raise InvalidInput(f"keys whose columns have no names, in a {type(keys).__name__}: {needed}")
    kinds = _VALUES if isinstance(keys, list | tuple) else (*_VALUES, str)
    if (listed is None or (listed and not isinstance(listed[0], kinds))) and not _is_column(keys):
        return keys
    if len(on) != 1:
        raise InvalidInput(f"values of one column, in a {type(keys).__name__}, for keys of several: {needed}")
    with _conversion(keys):
        values = (
            pa.chunked_array(keys)
            if hasattr(keys, "__arrow_c_stream__")
            else pa.array(keys if listed is None else listed)
        )
        return pa.table({on[0]: values})


def _is_column(data: Any) -> bool:
    """Return whether the data is an array of values, and not of structs, which are rows."""
    if isinstance(data, pa.Array | pa.ChunkedArray):
        return not pt.is_struct(data.type)
    pandas, polars = (sys.modules.get(name) for name in ("pandas", "polars"))
    return (
        isinstance(data, np.ndarray)
        or (pandas is not None and isinstance(data, pandas.Series | pandas.Index))
        or (polars is not None and isinstance(data, polars.Series))
    )


def _table_in_memory(data: Any, schema: pa.Schema | None) -> pa.Table | None:
    """Return data that is in memory as a table of the schema, or None for a stream."""
    pandas, polars, pydantic = (sys.modules.get(name) for name in ("pandas", "polars", "pydantic"))
    if pandas is not None and isinstance(data, pandas.DataFrame):
        return pa.Table.from_pandas(data, schema=schema, preserve_index=_index_to_keep(data.index, pandas))
    if isinstance(data, dict):
        check_is_one_dataset(data)
        return pa.Table.from_pydict(data, schema=schema)
    if isinstance(data, list) and data and isinstance(data[0], Mapping):
        return _table_of_rows(data, schema)
    if pydantic is not None and isinstance(data, list) and data and isinstance(data[0], pydantic.BaseModel):
        model = type(data[0])
        return table_of_models(model, data) if schema is None else _table_of_rows(rows_of_models(model, data), schema)
    if polars is not None and isinstance(data, polars.DataFrame):
        return _cast(data.to_arrow(), schema)
    if isinstance(data, pa.Table):
        return _cast(data, schema)
    if isinstance(data, pa.RecordBatch):
        return _cast(pa.Table.from_batches([data]), schema)
    if hasattr(data, "__arrow_c_array__") and not hasattr(data, "__arrow_c_stream__"):
        return _cast(pa.Table.from_batches([pa.record_batch(data)]), schema)
    return None


def _stream(data: Any) -> pa.RecordBatchReader | None:
    """Return data that states its schema as a stream, or None."""
    if isinstance(data, pa.RecordBatchReader):
        return data
    if isinstance(data, pads.Dataset):
        return data.scanner().to_reader()
    if isinstance(data, pads.Scanner | LanceScanner):  # an exported stream loses types that are not registered
        return data.to_reader()
    polars = sys.modules.get("polars")
    if polars is not None and isinstance(data, polars.LazyFrame):
        return _stream_of_lazy_frame(data)
    if hasattr(data, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(data)
    return None


def _stream_of_lazy_frame(data: Any) -> pa.RecordBatchReader:
    """Return the rows of a query of Polars, which computes them while they are read."""
    schema = data.collect_schema().to_frame().to_arrow().schema
    batches = (batch for frame in data.collect_batches() for batch in frame.to_arrow().cast(schema).to_batches())
    return pa.RecordBatchReader.from_batches(schema, batches)


def _index_to_keep(index: Any, pandas: Any) -> bool | None:
    """Return the `preserve_index` that makes columns of an index with names, and metadata of a range of row numbers.

    Any other index is left out, because a filter or a sort of a data frame leaves one behind.
    """
    if any(name is not None for name in index.names):
        return True
    return None if isinstance(index, pandas.RangeIndex) else False


def _table_of_rows(rows: list[Any], schema: pa.Schema | None) -> pa.Table:
    """Return a table with the columns of all rows. A row without a column's key has a null there."""
    for position, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise WrongType(f"row {position} of a list of dictionaries is a {type(row).__name__}")
    found = dict.fromkeys(name for row in rows for name in row)
    if schema is None:
        return pa.Table.from_pydict({name: [row.get(name) for row in rows] for name in found})
    unknown = next((name for name in found if name not in schema.names), None)
    if unknown is not None:
        raise SchemaMismatch(f"a row has the key {unknown!r}, and the schema has only {', '.join(schema.names)}")
    return pa.Table.from_pylist(rows, schema=schema)


def _cast_batches(batches: Iterable[Any], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if isinstance(batch, pa.RecordBatch):
            batch = pa.Table.from_batches([batch])
        if not isinstance(batch, pa.Table):
            raise WrongType(f"an iterable of data must yield record batches or tables, not a {type(batch).__name__}")
        yield from _cast(batch, schema).to_batches()


def _cast(table: pa.Table, schema: pa.Schema | None) -> pa.Table:
    """Return the table with the schema's columns, types and metadata, in its order."""
    if schema is None or table.schema.equals(schema, check_metadata=True):
        return table
    if sorted(table.schema.names) != sorted(schema.names):
        raise SchemaMismatch(
            f"the data has the columns {', '.join(table.schema.names)}, and the schema has {', '.join(schema.names)}"
        )
    columns = []
    for field in schema:
        column = table.select([field.name])
        try:
            columns.append(column.cast(pa.schema([field])).column(0))
        except (pa.ArrowException, ValueError) as error:
            given = column.schema.field(0).type
            raise SchemaMismatch(f"column {field.name!r} is {given} in the data, not {field.type}: {error}") from error
    return pa.Table.from_arrays(columns, schema=schema)


@contextmanager
def _conversion(data: Any) -> Iterator[None]:
    """Raise `SchemaMismatch` for what pyarrow raises for values that do not fit their type."""
    try:
        yield
    except InvalidInput:
        raise
    except (pa.ArrowException, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise SchemaMismatch(f"the {type(data).__name__} does not become Arrow data: {error}") from error
