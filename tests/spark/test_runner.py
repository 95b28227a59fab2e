"""Tasks on Spark: the order of outcomes, unchanged errors, and the error of a lost worker."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lance_ops.core.errors import CommitStateUnknown, CorruptFile, InvalidInput, LanceOpsError, TasksLost
from lance_ops.spark import OnSpark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@dataclass(frozen=True)
class Task:
    number: int


def square(task: Task) -> int:
    return task.number**2


def worker_of(task: Task) -> int:
    return os.getpid()


def fail_on_odd(task: Task) -> int:
    if task.number % 2:
        raise CorruptFile(f"file-{task.number}", "footer", "is torn")
    return task.number


def fail_unpicklably(task: Task) -> int:
    class Homemade(Exception):
        def __init__(self, a: str, b: str) -> None:
            super().__init__(a + b)

    raise Homemade("does not ", "come back")


def end_the_worker(task: Task) -> int:
    os._exit(3)


def leave_a_mark(task: tuple[str, int]) -> int:
    folder, number = task
    if number == 0:
        raise InvalidInput("the first fails at once")
    time.sleep(0.5)
    Path(folder, str(number)).touch()
    return number


def test_outcomes_keep_the_order_of_the_tasks(spark: SparkSession) -> None:
    assert OnSpark(spark).map(square, [Task(n) for n in range(50)]) == [n**2 for n in range(50)]


def test_no_tasks_need_no_job(spark: SparkSession) -> None:
    assert OnSpark(spark).map(square, []) == []


def test_a_local_function_is_sent_to_workers(spark: SparkSession) -> None:
    base = 10
    assert OnSpark(spark).map(lambda n: n + base, [1, 2, 3]) == [11, 12, 13]


def test_tasks_are_sent_in_a_few_groups_per_core(spark: SparkSession) -> None:
    tracker = spark.sparkContext.statusTracker()
    spark.sparkContext.setJobGroup("grouping", "counts Spark tasks")
    try:
        OnSpark(spark, tasks_per_core=2).map(square, [Task(n) for n in range(100)])
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]  # which unsets it
    (job_id,) = tracker.getJobIdsForGroup("grouping")
    job = tracker.getJobInfo(job_id)
    assert job is not None
    (stage_id,) = job.stageIds
    stage = tracker.getStageInfo(stage_id)
    assert stage is not None and stage.numTasks == 2 * spark.sparkContext.defaultParallelism


def test_tasks_run_in_other_processes(spark: SparkSession) -> None:
    assert os.getpid() not in OnSpark(spark).map(worker_of, [Task(1), Task(2)])


def test_the_first_error_in_task_order_is_raised_unchanged(spark: SparkSession) -> None:
    with pytest.raises(CorruptFile, match="file-1: footer: is torn") as caught:
        OnSpark(spark).map(fail_on_odd, [Task(n) for n in range(6)])
    assert caught.value.place == "footer"
    assert any("fail_on_odd" in note for note in caught.value.__notes__)


def test_an_unknown_commit_state_keeps_its_fields(spark: SparkSession) -> None:
    def commit(version: int) -> None:
        raise CommitStateUnknown("some-uuid", version, "connection reset")

    with pytest.raises(CommitStateUnknown) as caught:
        OnSpark(spark).map(commit, [7])
    assert (caught.value.uuid, caught.value.version) == ("some-uuid", 7)


def test_an_error_that_does_not_survive_pickling_arrives_as_text(spark: SparkSession) -> None:
    with pytest.raises(LanceOpsError, match="Homemade: does not come back"):
        OnSpark(spark).map(fail_unpicklably, [Task(1)])


def test_an_error_is_raised_only_when_the_other_groups_have_ended(spark: SparkSession, tmp_path: Path) -> None:
    cores = spark.sparkContext.defaultParallelism
    with pytest.raises(InvalidInput, match="at once"):
        OnSpark(spark, tasks_per_core=1).map(leave_a_mark, [(str(tmp_path), n) for n in range(cores)])
    assert sorted(path.name for path in tmp_path.iterdir()) == [str(n) for n in range(1, cores)]


def test_a_worker_that_dies_is_a_typed_error_of_one_line(spark: SparkSession) -> None:
    with pytest.raises(TasksLost, match="worker exited unexpectedly") as caught:
        OnSpark(spark).map(end_the_worker, [Task(1)])
    assert "\n" not in str(caught.value)
    assert OnSpark(spark).map(square, [Task(3)]) == [9]


def test_less_than_one_task_per_core_is_refused(spark: SparkSession) -> None:
    with pytest.raises(InvalidInput, match="tasks_per_core"):
        OnSpark(spark, tasks_per_core=0)
