"""Say how many tasks a cluster can run at once, also when its executors are not there yet."""

from __future__ import annotations

import re
import time

from pyspark.sql import SparkSession

from lance_ops.spark.running.cluster_settings import Settings, settings_of
from lance_ops.spark.running.slots_at_present import slots_at_present
from lance_ops.spark.running.spark_job import SparkJob

__all__ = ["expected_slots", "slots_if_known", "wait_for_slots"]

_UNLIMITED = 2**31 - 1  # what Spark takes a missing maximum for
_ELASTIC_SLOTS = 256
"""A cluster that may grow without a limit counts as one of so many slots. Spark's own shuffles have 200 tasks."""

_SECONDS_BETWEEN_EXECUTORS = 1.0
_LOCAL_CLUSTER = re.compile(r"local-cluster\[\s*(\d+)\s*,\s*(\d+)\s*,.*")


def wait_for_slots(session: SparkSession) -> int:
    """Return how many tasks the cluster of a session with a context runs at once, as `expected_slots` does.

    If no setting tells, and no executor has registered yet, wait for the first one, and for those that follow within a
    second of each other. Only a cluster whose executors come later than its session is in this state, such as one with
    a standalone master; with dynamic allocation the settings tell.
    """
    known = slots_if_known(session)
    if known is None:
        SparkJob(session, "lance: wait for an executor").run(session.range(1).count, lambda: None)
        known, before = slots_if_known(session), None
        while known != before:
            time.sleep(_SECONDS_BETWEEN_EXECUTORS)
            known, before = slots_if_known(session), known
    return known or 1


def slots_if_known(session: SparkSession) -> int | None:
    """Return what `wait_for_slots` does, or None where it would wait for an executor."""
    return expected_slots(slots_at_present(session), settings_of(session)) or None


def expected_slots(present: int, settings: Settings) -> int:
    """Return how many tasks the cluster runs at once now, or once it has all executors that it may ask for.

    `present` is how many it runs at once at present. With dynamic allocation, an idle application has few executors.
    Spark asks for more only when tasks wait, so a job cut for the cores of now would never get them. If their number
    has no limit, the cluster counts as one of 256 slots at least. Without dynamic allocation, executors register one
    after the other, and a session may begin its first job before any of them is there.
    """
    return max(present, _stated_slots(settings))


def _stated_slots(settings: Settings) -> int:
    """Return how many tasks all executors run at once that the settings allow; 0 if the settings do not tell.

    An executor whose cores are not set counts as one core: Spark gives it one on YARN and Kubernetes, and all cores of
    its machine elsewhere. There `spark.cores.max` tells more. A local master allocates nothing.
    """
    master, cpus = settings("spark.master") or "", int(settings("spark.task.cpus") or 1)
    if cluster := _LOCAL_CLUSTER.fullmatch(master):
        return int(cluster[1]) * (int(cluster[2]) // cpus)
    if master.startswith("local"):
        return 0
    cores_of_executor = settings("spark.executor.cores")
    by_executors = _most_executors(settings) * (int(cores_of_executor or 1) // cpus)
    by_cores = int(settings("spark.cores.max") or 0) // cpus
    if _dynamic_limit(settings) == _UNLIMITED:
        return by_cores or max(by_executors, _ELASTIC_SLOTS)
    if by_cores and not cores_of_executor:
        return by_cores
    return min(filter(None, (by_executors, by_cores)), default=0)


def _most_executors(settings: Settings) -> int:
    """Return how many executors the application asks for, at most with dynamic allocation; 0 if no setting says so.

    If dynamic allocation has no limit, return how many the application begins with.
    """
    limit = _dynamic_limit(settings)
    if limit is None or limit == _UNLIMITED:
        return int(settings("spark.executor.instances") or 0)
    return limit


def _dynamic_limit(settings: Settings) -> int | None:
    """Return how many executors the application may ask for by dynamic allocation; None without it."""
    if (settings("spark.dynamicAllocation.enabled") or "false").lower() != "true":
        return None
    return int(settings("spark.dynamicAllocation.maxExecutors") or _UNLIMITED)
