"""Tasks on Spark: the order of outcomes, errors, lost workers, repeated tasks, labels, progress and cancelling."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import Mock

import pytest
from py4j.clientserver import ClientServerConnection
from pyspark import SparkConf, TaskContext

from lance_ops.core.errors import CommitStateUnknown, CorruptFile, InvalidInput, LanceOpsError, TasksLost
from lance_ops.runners import Job, JobProgress
from lance_ops.spark import OnSpark
from lance_ops.spark.running import max_attempts, spark_job
from tests.groups import OWN_SESSIONS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@dataclass(frozen=True)
class Task:
    number: int


def square(task: Task) -> int:
    return task.number**2


def group_of(task: Task) -> int:
    context = TaskContext.get()
    assert context is not None
    return context.partitionId()


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


def properties_of_job(task: Task) -> tuple[str | None, ...]:
    context = TaskContext.get()
    assert context is not None
    return tuple(context.getLocalProperty(f"spark.{name}") for name in ("job.description", "jobGroup.id", "job.tags"))


def properties_of_thread(spark: SparkSession) -> tuple[str | None, ...]:
    context = spark.sparkContext
    return tuple(context.getLocalProperty(f"spark.{name}") for name in ("jobGroup.id", "job.description"))


def beat(file: str) -> None:
    """Write the time into a file for a minute, as a task does that works."""
    for _ in range(600):
        Path(file).write_text(str(time.time()))
        time.sleep(0.1)


def test_a_job_makes_few_calls_of_the_jvm(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call takes a tenth of a millisecond. Only a session's first job copies the settings, with hundreds of calls."""
    runner, tasks, calls = OnSpark(spark), [Task(number) for number in range(8)], []
    runner.map(square, tasks)
    send = ClientServerConnection.send_command

    def counted(connection: ClientServerConnection, command: str) -> str:
        calls.append(command)
        answer: str = send(connection, command)
        return answer

    monkeypatch.setattr(ClientServerConnection, "send_command", counted)
    assert runner.map(square, tasks) == [task.number**2 for task in tasks]
    assert 10 < len(calls) < 100


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
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()  # the tracker knows what the bus has told it
    (job_id,) = tracker.getJobIdsForGroup("grouping")
    job = tracker.getJobInfo(job_id)
    assert job is not None
    (stage_id,) = job.stageIds
    stage = tracker.getStageInfo(stage_id)
    assert stage is not None and stage.numTasks == 2 * spark.sparkContext.defaultParallelism


@pytest.mark.parametrize(
    ("job", "num_groups"),
    [
        (Job("read", "t", size_bytes=1 << 20), 2),
        (Job("read", "t").in_bytes([5 << 20] * 40), 3),  # 200 MiB
        (Job("read", "t").in_bytes([5 << 30] * 40), 6),
        (Job("read", "t", weights=(1,) * 40, unit="rows"), 6),
        (Job("read", "t"), 6),
        (None, 6),
    ],
)
def test_a_job_of_few_bytes_has_a_group_for_each_core(spark: SparkSession, job: Job | None, num_groups: int) -> None:
    runner = OnSpark(spark, least_bytes=0)
    groups = runner.map(group_of, [Task(number) for number in range(40)], job)
    assert len(set(groups)) == num_groups


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


def test_a_job_is_described_and_has_a_group_of_its_own(spark: SparkSession) -> None:
    job, before = Job.on("compact", "lake/flights.lance", 41), properties_of_thread(spark)
    ((description, group, tags),) = OnSpark(spark).map(properties_of_job, [Task(1)], job)
    assert description == "lance: compact flights v41, 1 task"
    assert group and group in (tags or "")
    assert properties_of_thread(spark) == before


def test_a_group_that_the_caller_has_set_is_kept(spark: SparkSession) -> None:
    spark.sparkContext.setJobGroup("nightly", "all of tonight")
    try:
        ((description, group, _),) = OnSpark(spark).map(properties_of_job, [Task(1)])
        assert (description, group) == ("lance: tasks, 1 task", "nightly")
        assert properties_of_thread(spark) == ("nightly", "all of tonight")
    finally:
        for name in ("spark.jobGroup.id", "spark.job.description"):
            spark.sparkContext.setLocalProperty(name, None)  # type: ignore[arg-type]  # which unsets it


def test_tasks_may_be_run_from_any_thread(spark: SparkSession) -> None:
    with ThreadPoolExecutor(2) as pool:
        futures = [pool.submit(OnSpark(spark).map, square, [Task(n)]) for n in range(2)]
    assert [future.result() for future in futures] == [[0], [1]]


def test_progress_counts_the_tasks_that_are_done(spark: SparkSession) -> None:
    seen: list[JobProgress] = []
    job = Job.on("verify", "lake/flights.lance", 1, weights=tuple(range(1, 21)), unit="bytes")
    OnSpark(spark, on_progress=seen.append).map(square, [Task(n) for n in range(20)], job)
    counts = [progress.num_done for progress in seen]
    assert counts == sorted(counts) and counts[-1] == 20
    assert seen[-1].done_weight == 210
    assert {(progress.job, progress.num_tasks) for progress in seen} == {(job, 20)}


def test_an_interrupt_stops_the_tasks_on_the_workers(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_job, "_SECONDS_UNTIL_SPARK_TELLS", 120.0)  # on a loaded machine, too

    def interrupt_once_tasks_run(progress: JobProgress) -> None:
        if any(tmp_path.iterdir()):
            raise KeyboardInterrupt

    files = [str(tmp_path / str(n)) for n in range(spark.sparkContext.defaultParallelism)]
    with pytest.raises(KeyboardInterrupt):
        OnSpark(spark, on_progress=interrupt_once_tasks_run).map(beat, files)
    last = {path: path.read_text() for path in tmp_path.iterdir()}
    assert last
    time.sleep(0.5)  # five beats of a worker that still lived
    assert {path: path.read_text() for path in tmp_path.iterdir()} == last
    assert OnSpark(spark).map(square, [Task(3)]) == [9]


def test_a_failed_job_waits_for_its_workers_as_long_as_spark_lets_them_live(monkeypatch: pytest.MonkeyPatch) -> None:
    failed, now, sleeps = Future[None](), 0.0, list[float]()

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds
        sleeps.append(seconds)

    failed.set_exception(ValueError("a task failed"))
    monkeypatch.setattr(spark_job, "time", Mock(monotonic=lambda: now, sleep=sleep))
    monkeypatch.setattr(spark_job.SparkJob, "_start", Mock(return_value=failed))
    monkeypatch.setattr(spark_job.SparkJob, "_num_running_tasks", Mock(return_value=1))
    session = Mock()
    session.sparkContext.getConf.return_value.getAll.return_value = [("spark.python.task.killTimeout", "1min")]
    with pytest.raises(ValueError, match="a task failed"):
        spark_job.SparkJob(session, "lance: tasks").run(Mock(), Mock())
    assert 63 <= sum(sleeps) <= 70


def test_the_outcomes_of_the_tasks_before_an_error_are_discarded(spark: SparkSession) -> None:
    discarded: list[int] = []
    with pytest.raises(CorruptFile, match="file-1"):
        OnSpark(spark, tasks_per_core=1).map(fail_on_odd, [Task(n) for n in (0, 1, 2)], discard=discarded.append)
    assert discarded and set(discarded) <= {0, 2}


@pytest.mark.parametrize(
    ("master", "setting", "attempts"),
    [
        ("local", None, 1),
        ("local[2]", "9", 1),
        ("local[*]", None, 1),
        ("local[2,4]", None, 4),
        ("local[*, 3]", None, 3),
        ("local-cluster[2,1,1024]", None, 4),
        ("spark://host:7077", "9", 9),
    ],
)
def test_spark_says_how_often_it_tries_a_task(master: str, setting: str | None, attempts: int) -> None:
    conf = SparkConf(loadDefaults=False).setMaster(master)
    if setting is not None:
        conf.set("spark.task.maxFailures", setting)
    assert max_attempts(conf.get) == attempts


def test_a_task_is_tried_once_where_no_master_is_told() -> None:
    assert max_attempts({"spark.task.maxFailures": "9"}.get) == 1


ATTEMPTS = {
    "a store that is too busy at first": {"outcome": "done", "attempts": 3},
    "a store that stays too busy": {"outcome": "StoreError: 503 Slow Down", "attempts": 4},
    "a worker that dies at first": {"outcome": "done", "attempts": 3},
    "a file that is damaged": {"outcome": "CorruptFile: file-1: footer: is torn", "attempts": 1},
}
"""What comes of `repeated_tasks.TASKS` where Spark tries each task four times."""


@OWN_SESSIONS
def test_spark_repeats_what_was_lost_or_may_pass_and_nothing_else(tmp_path: Path) -> None:
    script = Path(__file__).with_name("repeated_tasks.py")
    done = subprocess.run([sys.executable, script, tmp_path], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["of_rows"] == found["of_task"] == ATTEMPTS


def test_less_than_one_task_per_core_is_refused(spark: SparkSession) -> None:
    with pytest.raises(InvalidInput, match="tasks_per_core"):
        OnSpark(spark, tasks_per_core=0)
