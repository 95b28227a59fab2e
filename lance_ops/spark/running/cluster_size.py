"""Say how many tasks a cluster can run at once, also when its executors are not there yet."""

from __future__ import annotations

from lance_ops.spark.running.cluster_settings import Settings

__all__ = ["task_slots"]

_UNLIMITED = 2**31 - 1  # what Spark takes a missing maximum for


def task_slots(present: int, settings: Settings) -> int:
    """Return how many tasks the cluster runs at once now, or once it has all executors that it may ask for.

    `present` is how many it runs at once at present. With dynamic allocation, an idle application has few executors.
    Spark asks for more only when tasks wait, so a job cut for the cores of now would never get them.
    """
    return max(present, _most_slots(settings))


def _most_slots(settings: Settings) -> int:
    """Return the tasks that all executors of dynamic allocation run at once; 0 if their number has no limit.

    An executor whose cores are not set counts as one core: Spark gives it one on YARN and Kubernetes, and all cores of
    its machine elsewhere. A local master allocates nothing.
    """
    is_dynamic = (settings("spark.dynamicAllocation.enabled") or "false").lower() == "true"
    if not is_dynamic or (settings("spark.master") or "").startswith("local"):
        return 0
    executors = int(settings("spark.dynamicAllocation.maxExecutors") or _UNLIMITED)
    if executors >= _UNLIMITED:
        return 0
    return executors * (int(settings("spark.executor.cores") or 1) // int(settings("spark.task.cpus") or 1))
