"""Let small work run in tasks of Spark, and record what the jobs of these tasks are described as."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from lance_ops.maintenance.cleanup import CleanupTasks
from lance_ops.maintenance.indexing import TaskSizes
from lance_ops.maintenance.indexing.segment_builder import SegmentBuilder
from lance_ops.runners import Runner
from lance_ops.snapshot import Snapshot
from lance_ops.spark.running import SparkJob, worker_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["RecordedJobs", "record_jobs", "use_small_sizes"]


@dataclass
class RecordedJobs:
    """Descriptions of Spark's jobs in their order, without `lance: ` before them."""

    descriptions: list[str] = field(default_factory=list)
    num_taken: int = 0

    def take(self) -> list[str]:
        """Return the descriptions since the last call."""
        taken = self.descriptions[self.num_taken :]
        self.num_taken += len(taken)
        return taken


def record_jobs(monkeypatch: pytest.MonkeyPatch, of: ModuleType = worker_tasks) -> RecordedJobs:
    """Record the jobs that a module starts, by default those of tasks, from now on to the end of the test."""
    found = RecordedJobs()

    def recorded(session: SparkSession, description: str) -> SparkJob:
        found.descriptions.append(description.removeprefix("lance: "))
        return SparkJob(session, description)

    monkeypatch.setattr(of, "SparkJob", recorded)
    return found


def use_small_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let tasks build indices and clean up however little there is to do, unless the test gives sizes of its own."""
    begin = SegmentBuilder.__init__

    def in_small_tasks(builder: SegmentBuilder, snapshot: Snapshot, runner: Runner | None, sizes: TaskSizes) -> None:
        is_default = sizes == TaskSizes()
        begin(builder, snapshot, runner, TaskSizes(least_bytes=0, least_remap_bytes=0) if is_default else sizes)

    monkeypatch.setattr(SegmentBuilder, "__init__", in_small_tasks)
    monkeypatch.setattr(CleanupTasks, "of", lambda given: None if given is None else CleanupTasks(given, 1, 1, 1))
