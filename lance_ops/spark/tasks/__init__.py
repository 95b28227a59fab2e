"""Run a plan's tasks on the workers of a Spark session, and start such workers quickly."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.spark.tasks.worker_tasks import WorkerTasks

__all__ = ["WorkerTasks"]

_MODULES = {"WorkerTasks": "worker_tasks"}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
