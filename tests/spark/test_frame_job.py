"""Tasks as the rows of a DataFrame, which is how they run through Spark Connect."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import MagicMock, Mock

import pyarrow as pa
import pytest

from lance_ops.core.errors import CorruptFile, StoreError
from lance_ops.runners import Job, JobProgress
from lance_ops.spark import OnSpark
from lance_ops.spark.running import FrameJob, frame_job, task_slots_by_query, worker_tasks
from lance_ops.spark.running.cluster_settings import seconds_until_workers_end
from lance_ops.spark.running.pickling import pickle_by_value
from lance_ops.spark.session_kind import lacks_context
from tests.groups import OWN_SESSIONS
from tests.spark.test_runner import ATTEMPTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]

_SECONDS_TO_START, _SECONDS_TO_WORK, _SECONDS_TO_END = 60, 400, 30
"""Together less than the time of a test, so that no process outlives it."""

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]


@pytest.fixture
def without_context(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_tasks, "lacks_context", lambda session: True)


def square_elsewhere(number: int) -> tuple[int, int]:
    return number**2, os.getpid()


def fail_on_odd(number: int) -> int:
    if number % 2:
        raise CorruptFile(f"file-{number}", "footer", "is torn")
    return number


def throttle(number: int) -> int:
    raise StoreError("503 Slow Down")


def test_a_session_of_connect_is_known_by_its_class(spark: SparkSession) -> None:
    remote = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})
    assert lacks_context(remote())
    assert not lacks_context(spark)


@pytest.mark.usefixtures("without_context")
def test_outcomes_keep_the_order_of_the_tasks_and_come_from_workers(spark: SparkSession) -> None:
    seen: list[JobProgress] = []
    outcomes = OnSpark(spark, on_progress=seen.append).map(square_elsewhere, range(20), Job.on("square", "numbers"))
    assert [number for number, _ in outcomes] == [number**2 for number in range(20)]
    assert os.getpid() not in {pid for _, pid in outcomes}
    assert {progress.num_tasks for progress in seen} == {20} and seen[-1].num_done == 20


@pytest.mark.usefixtures("without_context")
@pytest.mark.parametrize(("function", "error"), [(fail_on_odd, "file-1: footer"), (throttle, "503 Slow Down")])
def test_an_error_comes_back_and_files_of_lost_tasks_are_removed(
    spark: SparkSession, function: object, error: str
) -> None:
    tokens: list[str] = []
    job = Job.on("fail on", "numbers", remove_files=tokens.append)
    with pytest.raises((CorruptFile, StoreError), match=error) as caught:
        OnSpark(spark, tasks_per_core=1).map(function, range(4), job)  # type: ignore[arg-type]
    assert any("raised in a Spark worker by task" in note for note in caught.value.__notes__)
    assert len(tokens) == 1


def test_as_many_tasks_run_at_once_as_the_session_has_cores(spark: SparkSession) -> None:
    assert task_slots_by_query(spark) == spark.sparkContext.defaultParallelism


def sent_for(groups: list[str]) -> tuple[Any, list[pa.Table]]:
    """Return the function that a job of these groups gives Spark, and the tables."""
    session = MagicMock()
    FrameJob(session, "lance: tasks").run(iter, groups, lambda num_done, num_tasks: None)
    (function,) = (each.args[0] for each in session.mock_calls if each[0].endswith("mapInArrow"))
    return function, [each.args[0] for each in session.createDataFrame.call_args_list]


def test_no_task_gets_the_groups_of_others() -> None:
    few, many = (sent_for(["group"] * number)[0] for number in (10, 1000))
    assert len(pickle_by_value(few)) == len(pickle_by_value(many))


def test_groups_of_many_bytes_are_sent_as_several_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frame_job, "_MOST_BYTES_OF_FRAME", 3000)
    tables = sent_for(["x" * 1000] * 10)[1]
    assert [table.num_rows for table in tables] == [3, 3, 3, 1]
    assert [number for table in tables for number in table["number"].to_pylist()] == list(range(10))


@pytest.mark.parametrize(("of_rows", "counted"), [(True, (5, 14)), (False, (3, 8))])
def test_of_tasks_the_stage_that_runs_them_counts_and_of_rows_all(of_rows: bool, counted: tuple[int, int]) -> None:
    watched = frame_job._WatchedTasks(of_rows=of_rows)
    stages = [SimpleNamespace(stage_id=at, num_completed_tasks=done, num_tasks=num) for at, done, num in STAGES]
    session = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    session.registerProgressHandler = session.removeProgressHandler = Mock()
    with watched.of(session):
        for known in (stages[:1], stages):
            watched(known, 0, None, False)
    assert (watched.num_done, watched.num_tasks) == counted


STAGES = [(4, 2, 2), (7, 3, 8), (5, 0, 4)]
"""Ids of stages, how many of their tasks are done, and of how many: of one that deals rows out, one that runs tasks,
and one that Spark skips.
"""


def interrupt_the_caller(num_done: int, num_tasks: int) -> None:
    raise KeyboardInterrupt


def test_an_interrupted_caller_interrupts_the_job_by_its_tag_until_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    running, pool, tags = Future[Any](), MagicMock(), list[str]()

    def interrupt(tag: str) -> None:
        tags.append(tag)
        if len(tags) == 2:  # Spark knows of no job before it has planned it
            running.set_result([])

    pool.return_value.__enter__.return_value.submit.return_value = running
    pool.return_value.__exit__.return_value = False
    monkeypatch.setattr(frame_job, "ThreadPoolExecutor", pool)
    monkeypatch.setattr(frame_job, "_SECONDS_BETWEEN_REPORTS", 0)
    job: FrameJob = FrameJob(Mock(interruptTag=interrupt), "lance: merge (rows) into t v1, 3 tasks")
    with pytest.raises(KeyboardInterrupt):
        job.run(iter, [1], interrupt_the_caller)
    assert tags == [job.tag, job.tag]
    assert job.tag.startswith("lance: merge (rows) into t v1; 3 tasks (")


@pytest.mark.parametrize(
    ("setting", "seconds"), [(None, 5), ("2s", 5), ("500ms", 3.5), ("1min", 63), ("4", 7), (" 3S ", 6), ("soon", 5)]
)
def test_a_worker_of_a_killed_task_lives_as_long_as_spark_is_set(setting: str | None, seconds: float) -> None:
    assert seconds_until_workers_end({"spark.python.task.killTimeout": setting}.get) == seconds


@contextmanager
def connect_server(log: Path) -> Iterator[str]:
    """Start a server in a process of its own; yield its URL, and end it. A server that hangs is killed."""
    script = Path(__file__).with_name("connect_server.py")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with (
        log.open("w") as errors,
        subprocess.Popen(
            [sys.executable, script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=environment,
        ) as server,
    ):
        assert server.stdin is not None and server.stdout is not None
        limit = Timer(_SECONDS_TO_START, server.kill)
        limit.start()
        try:
            port = next((line.strip() for line in server.stdout if line.strip().isdecimal()), None)
            limit.cancel()
            assert port is not None, log.read_text()[-3000:]
            yield f"sc://localhost:{port}"
        finally:
            limit.cancel()
            server.stdin.close()
            try:
                server.wait(_SECONDS_TO_END)
            except subprocess.TimeoutExpired:
                server.kill()


@OWN_SESSIONS
@pytest.mark.timeout(600)
def test_a_table_is_changed_and_tasks_are_repeated_through_connect(tmp_path: Path) -> None:
    script = Path(__file__).with_name("over_connect.py")
    newer = Path(sys.prefix) / "connect"  # the packages of a client, which `make servers` installs
    assert newer.is_dir(), "make servers"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(newer), str(ROOT)])}
    with connect_server(tmp_path / "server.log") as url:
        done = subprocess.run(
            [sys.executable, script, tmp_path, url],
            capture_output=True,
            text=True,
            timeout=_SECONDS_TO_WORK,
            check=False,
            env=environment,
        )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    refusal = found.pop("another server")
    assert "master sc://localhost:1:" in refusal and f"the server {url}," in refusal and "secret" not in refusal
    attempts = found.pop("attempts")
    assert attempts["of_rows"] == attempts["of_task"] == ATTEMPTS
    assert found == {
        "session": "pyspark.sql.connect.session",
        "fragments": [10, 2],
        "rows": 40,
        "other processes": True,
        "doubles": 90,
        "one session": True,
        "named by the environment": True,
        "of a resource": [10, 20],
        "written": 40,
        "merged and indexed": {
            "counts": {"num_inserted_rows": 5, "num_updated_rows": 5, "num_deleted_rows": 0},
            "jobs": [
                "append to",
                "merge (keys) into",
                "merge (join) into",
                "merge (rows) into",
                "index",
                "index, merge",
            ],
            "by the index": [{"x": 44, "double": -44}],
            "plan": True,
        },
        "progress": {
            "of tasks": {"job": "look, twice at t v3", "meanwhile": True, "end": [12, 12, 24]},
            "of rows": {"job": "append to slow", "meanwhile": True, "end": [6, 6, None]},
            "tag": "lance: look; twice at t v3; 12 tasks",
        },
        "cancelled": {"interrupted": True, "written": True, "at once": 0, "later": 0},
        "streamed": [45, 1],
        "by statements": {
            "view": [[0, 0], [1, 1], [2, 2], [3, -3], [5, 50]],
            "function": 3,
            "fragments": 5,
            "changes": ["delete", "insert", "insert", "update", "update"],
        },
    }
