"""Pass a DataFrame's rows through a function of Arrow batches, in a driver without pandas, too.

The method of DataFrames for such functions refuses to work without pandas, although nothing of it is used, and plans
show no name that the caller chose. The parts of PySpark beneath that method do not need pandas. They are private, so
they stand alone here. A session of Spark Connect has the public method alone, and its client needs pandas anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType
from pyspark.sql.udf import UserDefinedFunction
from pyspark.util import PythonEvalType

from lance_ops.spark.session_kind import lacks_context

__all__ = ["map_in_arrow"]

_ArrowFunction = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def map_in_arrow(frame: DataFrame, function: _ArrowFunction, schema: StructType | str, name: str) -> DataFrame:
    """Return what the function gives for the batches of each partition; plans of Spark show `name`.

    No name of a column may have a dot, which Spark would take for a path.
    """
    session = frame.sparkSession
    if lacks_context(session):
        return frame.mapInArrow(function, schema)
    mapped = UserDefinedFunction(function, schema, name, PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
    columns = [frame[column] for column in frame.columns]
    return DataFrame(frame._jdf.mapInArrow(mapped(*columns)._jc, False, None), session)
