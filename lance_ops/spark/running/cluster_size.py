"""Say how many tasks a cluster can run at once, also when its executors are not there yet."""

from __future__ import annotations

from pyspark import SparkConf, SparkContext

__all__ = ["task_slots"]

_UNLIMITED = 2**31 - 1  # what Spark takes a missing maximum for


def task_slots(context: SparkContext) -> int:
    """Return how many tasks the cluster runs at once now, or once it has all executors that it may ask for.

    With dynamic allocation, an idle application has few executors. Spark asks for more only when tasks wait, so a job
    cut for the cores of now would never get them.
    """
    return max(context.defaultParallelism, _most_slots(context.getConf()))


def _most_slots(conf: SparkConf) -> int:
    """Return the tasks that all executors of dynamic allocation run at once; 0 if their number has no limit.

    An executor whose cores are not set counts as one core: Spark gives it one on YARN and Kubernetes, and all cores of
    its machine elsewhere. A local master allocates nothing.
    """
    is_dynamic = conf.get("spark.dynamicAllocation.enabled", "false").lower() == "true"
    if not is_dynamic or conf.get("spark.master", "").startswith("local"):
        return 0
    executors = int(conf.get("spark.dynamicAllocation.maxExecutors", str(_UNLIMITED)))
    if executors >= _UNLIMITED:
        return 0
    return executors * (int(conf.get("spark.executor.cores", "1")) // int(conf.get("spark.task.cpus", "1")))
