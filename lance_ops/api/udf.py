"""`BatchUDF`: functions that compute new columns from record batches, under the reference's names."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike, fspath
from typing import Any

import pyarrow as pa

from lance_ops.changing.columns import Checkpoint
from lance_ops.core.errors import InvalidInput

__all__ = ["BatchUDF", "batch_udf"]


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
        self.cache = None if checkpoint_file is None else Checkpoint(fspath(checkpoint_file))

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
