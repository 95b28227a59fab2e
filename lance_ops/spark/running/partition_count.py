"""Ask Spark how many partitions a DataFrame had when its rows were collected.

Only the plan knows: adaptive execution joins small partitions while it runs. Spark keeps the plan that it ran, and
makes an RDD of it without running a task. Plans are private parts of PySpark, so this stands alone. A client of Spark
Connect reaches none.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from lance_ops.spark.session_kind import lacks_context

__all__ = ["num_partitions"]


def num_partitions(collected: DataFrame) -> int | None:
    """Return the number of partitions; None through Spark Connect."""
    if lacks_context(collected.sparkSession):
        return None
    return int(collected._jdf.queryExecution().executedPlan().execute().getNumPartitions())
