"""Read a small table in this process, and hand its Arrow batches to Spark: no Python worker starts.

Spark makes an Arrow table a relation of rows, or an RDD of batches if it is larger than a setting. Rows cost
microseconds each and batches a task each, so the setting is lowered here to where both cost the same. Spark does not
know how large an RDD is, so its size is told: Spark then chooses joins as for a table of its own. That takes private
parts of PySpark, so they stand alone here.

Gain: one column of two million rows takes 0.67 of the processor time in a warm session, 0.22 in a cold one (ADR 19).
Switch off with `LANCE_OPS_DISABLE=small-reads`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock

import pyarrow as pa
import pyarrow.types as pt
from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from lance_ops.core.tricks import Trick
from lance_ops.spark.data_source import LanceReader
from lance_ops.spark.on_spark import OnSpark
from lance_ops.spark.partitioning import FragmentGroup
from lance_ops.spark.session_kind import is_switched_on

__all__ = ["small_frame"]

MOST_BYTES = OnSpark.least_bytes
"""A step of a verb that reads less than this stays in the driver, too."""

_MOST_DECODED_BYTES = 2 * MOST_BYTES
_BYTES_PER_PARTITION = 4 << 20  # of an RDD: less is not worth a task
_BYTES_OF_NUMBER = 8
_MOST_BYTES_AS_ROWS = 256 << 10
_AS_ROWS_UP_TO = "spark.sql.execution.arrow.localRelationThreshold"
_LARGE_OFFSETS = "spark.sql.execution.arrow.useLargeVarTypes"
_SETTING = Lock()
_LACKS_A_PART = (AttributeError, Py4JError, TypeError, ValueError)
"""What private parts of Spark raise where they differ: py4j calls a class that is missing a package (`TypeError`)."""


def small_frame(
    session: SparkSession, reader: LanceReader, parts: Sequence[FragmentGroup], size_bytes: int, schema: StructType
) -> DataFrame | None:
    """Read the parts in this process, and return a DataFrame that holds their rows.

    Returns None if the parts have `MOST_BYTES` or more in the files, if the decoded rows have more than
    `2 * MOST_BYTES`, if Spark cannot take them as a table, or if `small-reads` is switched off: tasks then read them.
    Raises what `LanceReader.read` raises, so the caller gets the errors of damaged files here. The session is not one
    of Spark Connect.
    """
    if size_bytes >= MOST_BYTES or not Trick.SMALL_READS.is_on():
        return None
    table = _read(reader, parts)
    if table is None or any(_has_null_struct(chunk) for column in table.columns for chunk in column.chunks):
        return None
    if not table.num_rows:
        return session.createDataFrame([], schema)
    num_partitions = min(session.sparkContext.defaultParallelism, max(-(-table.nbytes // _BYTES_PER_PARTITION), 1))
    rows_per_batch = -(-table.num_rows // num_partitions)
    with _only_few_bytes_as_rows(session):
        large = is_switched_on(session, _LARGE_OFFSETS)
        made = session._create_from_arrow_table(table, schema, "UTC", False, large, rows_per_batch)
    return _with_size(session, made, table.nbytes)


def _read(reader: LanceReader, parts: Iterable[FragmentGroup]) -> pa.Table | None:
    """Return the rows as one chunk a column, or None if they are too many."""
    batches: list[pa.RecordBatch] = []
    size = 0
    for part in parts:
        for batch in reader.read(part):
            batches.append(batch)
            size += batch.nbytes
            if size > _MOST_DECODED_BYTES:
                return None
    return pa.Table.from_batches(batches, reader.shape).combine_chunks()


def _has_null_struct(array: pa.Array) -> bool:
    """Return whether a struct is null, at any depth, that has a field which is not nullable.

    Spark casts a table to its own types even if they are the same, and Arrow refuses such a struct in a cast.
    """
    kind = array.type
    if pt.is_struct(kind):
        is_refused = array.null_count > 0 and not all(field.nullable for field in kind)
        return is_refused or any(map(_has_null_struct, array.flatten()))
    if pt.is_map(kind):
        return _has_null_struct(array.keys) or _has_null_struct(array.items)
    return pt.is_nested(kind) and _has_null_struct(array.flatten())


@contextmanager
def _only_few_bytes_as_rows(session: SparkSession) -> Iterator[None]:
    """Set how large an Arrow table Spark takes apart into rows, and give the session its own value back."""
    with _SETTING:
        before = session.conf.get(_AS_ROWS_UP_TO)
        assert before is not None  # Spark has a default
        session.conf.set(_AS_ROWS_UP_TO, _MOST_BYTES_AS_ROWS)
        try:
            yield
        finally:
            session.conf.set(_AS_ROWS_UP_TO, before)


def _with_size(session: SparkSession, frame: DataFrame, size_bytes: int) -> DataFrame:
    """Return the frame with its size if it is an RDD; Spark knows the size of rows.

    Returns the frame without its size if this Spark has other private parts: its rows are right in any case.
    """
    try:
        return _sized(session, frame, size_bytes)
    except _LACKS_A_PART:
        return frame


def _sized(session: SparkSession, frame: DataFrame, size_bytes: int) -> DataFrame:
    """Return the frame with the size of a range of numbers that has as many bytes.

    Python cannot make Spark's statistics itself.
    """
    jvm, logical = session._jvm, frame._jdf.queryExecution().logical()
    assert jvm is not None
    if logical.nodeName() != "LogicalRDD":
        return frame
    of_size = session.range(max(size_bytes // _BYTES_OF_NUMBER, 1))._jdf.queryExecution().logical().stats()
    fields = [logical.productElement(position) for position in range(logical.productArity())]
    others = logical.otherCopyArgs()  # the session, the size, and what differs between Spark's versions
    session_of, _, *more = (others.apply(position) for position in range(others.length()))
    sized = logical.copy(*fields, session_of, jvm.scala.Option.apply(of_size), *more)
    return DataFrame(jvm.org.apache.spark.sql.classic.Dataset.ofRows(session_of, sized), session)
