"""`BatchUDF`: functions that compute new columns from record batches, under the reference's names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike, fspath
from typing import Any

import pyarrow as pa

from lance_ops.api.schemas import shown_array, shown_field
from lance_ops.changing import columns as column_changes
from lance_ops.core.errors import InvalidInput
from lance_ops.core.records import dataclass
from lance_ops.core.schema import Schema
from lance_ops.reading import ROW_COLUMNS

__all__ = ["BatchUDF", "batch_udf", "batch_udf_factory", "source_of"]


class BatchUDF:
    """A function of a record batch, for `LanceDataset.add_columns`; made by `batch_udf`."""

    def __init__(
        self,
        func: Callable[[pa.RecordBatch], Any],
        output_schema: pa.Schema | None = None,
        checkpoint_file: str | PathLike[str] | None = None,
    ) -> None:
        self.func = func
        self.output_schema = output_schema
        self.cache = None if checkpoint_file is None else column_changes.Checkpoint(fspath(checkpoint_file))

    def __call__(self, batch: pa.RecordBatch) -> Any:
        """Call the function directly, for example to test it."""
        return self.func(batch)


def batch_udf(
    output_schema: pa.Schema | None = None, checkpoint_file: str | PathLike[str] | None = None
) -> Callable[[Callable[[pa.RecordBatch], Any]], BatchUDF]:
    """Return a decorator that makes a function a `BatchUDF`.

    Without `output_schema`, the function is called once with the first row to learn its schema. `checkpoint_file` keeps
    results until the columns are committed, so that a second attempt continues where the first stopped.
    """
    if callable(output_schema):
        raise InvalidInput("write @batch_udf() with brackets")
    return lambda func: BatchUDF(func, output_schema, checkpoint_file)


def batch_udf_factory(
    output_schema: pa.Schema | None = None, checkpoint_file: str | PathLike[str] | None = None
) -> Callable[[Callable[[], Callable[[pa.RecordBatch], Any]]], BatchUDF]:
    """Return a decorator that makes a `BatchUDF` of a function without arguments that returns the function to call.

    It is called once in each process that runs tasks, before the first batch there: load a model in it. The process
    lets go of the function when it makes another one. The other arguments are those of `batch_udf`.
    """
    if callable(output_schema):
        raise InvalidInput("write @batch_udf_factory() with brackets")
    return lambda factory: BatchUDF(column_changes.MadeFunction(factory), output_schema, checkpoint_file)


def source_of(udf: BatchUDF, columns: Sequence[str], schema: Schema) -> column_changes.FunctionColumns:
    """Return the source that calls a function with these columns of a table, which have the types that users see."""
    read = schema.project(path for path in columns if path not in ROW_COLUMNS)
    fields = [field for field in read.fields if field.names_extensions and not field.holds_blobs_v2]
    shown = {field.name: shown_field(field) for field in fields}
    return column_changes.FunctionColumns(
        _OfShownTypes(udf.func, shown) if shown else udf.func, tuple(columns), udf.cache
    )


@dataclass(frozen=True)
class _OfShownTypes:
    """Calls a function with a batch whose columns have the types of `fields`, given their storage."""

    function: Callable[[pa.RecordBatch], Any]
    fields: Mapping[str, pa.Field]

    def __call__(self, batch: pa.RecordBatch) -> Any:
        fields = [self.fields.get(field.name, field) for field in batch.schema]
        columns = [shown_array(column, field.type) for column, field in zip(batch.columns, fields, strict=True)]
        return self.function(pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields, batch.schema.metadata)))
