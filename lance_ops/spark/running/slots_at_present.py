"""Ask Spark how many tasks the executors run at once that have registered so far.

`defaultParallelism` does not say so: a setting of the user's replaces it, and it is 2 while no executor has registered.
The scheduler counts for its own checks. That method is a private part of Spark, so it stands alone here. Gain: on a
cluster of 400 cores, the first job of a session is cut for 400 cores, not for 2.
"""

from __future__ import annotations

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

__all__ = ["slots_at_present"]


def slots_at_present(session: SparkSession) -> int:
    """Return how many tasks run at once at present, 0 while no executor has registered; needs a session with a context.

    If this Spark does not have the method, return `defaultParallelism`.
    """
    context = session.sparkContext._jsc.sc()
    try:
        return int(context.maxNumConcurrentTasks(context.resourceProfileManager().defaultResourceProfile()))
    except Py4JError:
        return session.sparkContext.defaultParallelism
