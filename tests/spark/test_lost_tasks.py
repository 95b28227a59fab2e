"""Files of tasks that ended without an outcome."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from lance_ops.api import dataset, write_dataset
from lance_ops.core.errors import TasksLost
from lance_ops.core.file_names import data_file_name, is_file_of_job
from lance_ops.maintenance.compaction.compaction_plan import CompactionOptions, RewriteTask, plan_compaction
from lance_ops.maintenance.compaction.rewriting import RewriteOutcome, execute_rewrite
from lance_ops.spark import OnSpark
from lance_ops.transactions import remove_files_of_job

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def rewrite_or_die(task: RewriteTask) -> RewriteOutcome:
    outcome = execute_rewrite(task)
    if task.fragment_ids[0]:
        os._exit(3)
    return outcome


def test_files_of_lost_tasks_are_removed_at_once_and_no_others(spark: SparkSession, dataset_uri: str) -> None:
    write_dataset(pa.table({"x": pa.array(range(40), pa.int64())}), dataset_uri, max_rows_per_file=4)
    snapshot = dataset(dataset_uri).snapshot
    data = Path(dataset_uri) / "data"
    (data / data_file_name()).touch()  # another writer's, which no version names yet
    before = set(data.iterdir())
    plan = plan_compaction(snapshot, CompactionOptions(target_rows_per_fragment=20))
    seen: list[set[str]] = []

    def remove(token: str) -> None:
        seen.append({path.name for path in data.iterdir() if is_file_of_job(f"data/{path.name}", token)})
        remove_files_of_job(snapshot.store, token)

    with pytest.raises(TasksLost):
        OnSpark(spark, tasks_per_core=1).map(rewrite_or_die, plan.tasks, replace(plan.job, remove_files=remove))
    assert len(seen) == 1 and seen[0]
    assert set(data.iterdir()) == before
    assert dataset(dataset_uri).count_rows() == 40
