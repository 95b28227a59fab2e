"""Load a version of a dataset as the type that a downstream asset asks for.

pandas, Polars, DuckDB and Spark are imported when a type of theirs is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lance_ops.api import LanceDataset, LanceScanner
from lance_ops.core.errors import InvalidInput
from lance_ops.core.optional_packages import import_optional
from lance_ops.dagster.io.stored_dataset import is_spark, spark_frames

__all__ = ["load_as"]


def load_as(wanted: Any, source: LanceDataset, condition: pc.Expression | None) -> Any:
    """Return the rows of `source` that match `condition`, as the type `wanted`; a `pa.Table` if it is no type.

    A scanner, a reader and a frame of Spark read when they are consumed; so do a LazyFrame and a DuckDB relation of an
    asset without partitions. A dataset is the whole version, because it cannot carry a condition. Raises `InvalidInput`
    for another type.
    """
    if not isinstance(wanted, type) or wanted is object:
        wanted = pa.Table
    if issubclass(LanceDataset, wanted):
        return source
    if is_spark(wanted):
        return spark_frames().load(source, condition)
    load = _LOADERS.get((wanted.__module__.partition(".")[0], wanted.__name__))
    if load is None:
        known = ", ".join(f"{package}.{name}" for package, name in _LOADERS)
        raise InvalidInput(
            f"{source.uri}: cannot be loaded as {wanted.__module__}.{wanted.__name__}: annotate the input with "
            f"LanceDataset, {known} or a DataFrame of Spark"
        )
    return load(source, condition)


def _scanner(source: LanceDataset, condition: pc.Expression | None) -> LanceScanner:
    return source.scanner(filter=condition)


def _table(source: LanceDataset, condition: pc.Expression | None) -> pa.Table:
    return source.to_table(filter=condition)


def _reader(source: LanceDataset, condition: pc.Expression | None) -> pa.RecordBatchReader:
    return _scanner(source, condition).to_reader()


def _pandas(source: LanceDataset, condition: pc.Expression | None) -> Any:
    return _table(source, condition).to_pandas()


def _polars(source: LanceDataset, condition: pc.Expression | None) -> Any:
    return import_optional("polars", "an input of type polars.DataFrame", None).from_arrow(_table(source, condition))


def _lazy_polars(source: LanceDataset, condition: pc.Expression | None) -> Any:
    if condition is not None:
        return _polars(source, condition).lazy()
    return import_optional("polars", "an input of type polars.LazyFrame", None).scan_pyarrow_dataset(source)


def _duckdb(source: LanceDataset, condition: pc.Expression | None) -> Any:
    # A connection of its own, because assets may run in threads of one process.
    connection = import_optional("duckdb", "an input of type duckdb.DuckDBPyRelation", None).connect()
    return connection.from_arrow(source if condition is None else _table(source, condition))


_LOADERS: dict[tuple[str, str], Callable[[LanceDataset, pc.Expression | None], Any]] = {
    ("pyarrow", "Table"): _table,
    ("pyarrow", "RecordBatchReader"): _reader,
    ("lance_ops", "LanceScanner"): _scanner,
    ("pandas", "DataFrame"): _pandas,
    ("polars", "DataFrame"): _polars,
    ("polars", "LazyFrame"): _lazy_polars,
    ("duckdb", "DuckDBPyRelation"): _duckdb,
}
