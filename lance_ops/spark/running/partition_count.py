"""Ask Spark how many partitions a DataFrame had when its rows were collected.

Only the plan knows: adaptive execution joins small partitions while it runs. Spark keeps the plan that it ran, and
makes an RDD of it without running a task. A recursion is left out, because versions of Spark run its steps for that.
Plans are private parts of PySpark, so this stands alone. A client of Spark Connect reaches none.
"""

from __future__ import annotations

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from lance_ops.spark.session_kind import lacks_context

__all__ = ["num_partitions"]

_RECURSION = "UnionLoop"
"""How a plan shows `WITH RECURSIVE`. A column of that name costs the count alone."""


def num_partitions(collected: DataFrame) -> int | None:
    """Return how many partitions `collected` had in its `collect`, which must have ended.

    For another frame this would run its shuffles. None through Spark Connect, for a frame with a recursion, and where
    Spark does not tell: the count only serves a check.
    """
    if lacks_context(collected.sparkSession):
        return None
    try:
        plan = collected._jdf.queryExecution().executedPlan()
        return None if _RECURSION in plan.toString() else int(plan.execute().getNumPartitions())
    except (PySparkException, Py4JError):
        return None
