"""Run tasks, or a function of a frame's rows, on the workers of a Spark session, and bring the outcomes back.

A job has a label, so that it can be watched and interrupted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.spark.running.attempts import Attempts, Reported, max_attempts, outcomes_or_raise, remove_files
    from lance_ops.spark.running.cluster_settings import settings_of
    from lance_ops.spark.running.cluster_size import expected_slots, slots_if_known, wait_for_slots
    from lance_ops.spark.running.frame_job import FrameJob, task_slots_by_query
    from lance_ops.spark.running.row_job import map_rows
    from lance_ops.spark.running.spark_job import SparkJob
    from lance_ops.spark.running.worker_tasks import WorkerTasks

__all__ = [
    "Attempts",
    "FrameJob",
    "Reported",
    "SparkJob",
    "WorkerTasks",
    "expected_slots",
    "map_rows",
    "max_attempts",
    "outcomes_or_raise",
    "remove_files",
    "settings_of",
    "slots_if_known",
    "task_slots_by_query",
    "wait_for_slots",
]

_MODULES = {
    "Attempts": "attempts",
    "FrameJob": "frame_job",
    "Reported": "attempts",
    "SparkJob": "spark_job",
    "WorkerTasks": "worker_tasks",
    "expected_slots": "cluster_size",
    "map_rows": "row_job",
    "max_attempts": "attempts",
    "outcomes_or_raise": "attempts",
    "remove_files": "attempts",
    "settings_of": "cluster_settings",
    "slots_if_known": "cluster_size",
    "task_slots_by_query": "frame_job",
    "wait_for_slots": "cluster_size",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
