"""Run one Spark job with a label, so that it can be watched and interrupted, and bring its tasks' outcomes back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.spark.jobs.arrow_function import lacks_context, map_in_arrow
    from lance_ops.spark.jobs.attempts import Attempts, Reported, max_attempts, remove_files, settle
    from lance_ops.spark.jobs.frame_job import FrameJob
    from lance_ops.spark.jobs.row_job import map_rows
    from lance_ops.spark.jobs.spark_job import SparkJob

__all__ = [
    "Attempts",
    "FrameJob",
    "Reported",
    "SparkJob",
    "lacks_context",
    "map_in_arrow",
    "map_rows",
    "max_attempts",
    "remove_files",
    "settle",
]

_MODULES = {
    "Attempts": "attempts",
    "FrameJob": "frame_job",
    "Reported": "attempts",
    "SparkJob": "spark_job",
    "lacks_context": "arrow_function",
    "map_in_arrow": "arrow_function",
    "map_rows": "row_job",
    "max_attempts": "attempts",
    "remove_files": "attempts",
    "settle": "attempts",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
