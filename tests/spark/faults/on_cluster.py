"""Run faults on a small cluster, `local-cluster[2,1,1024]`; print what came of each as one line of JSON.

A session has one master, so this needs a process of its own, and its last fault is the death of that process. Each
fault strikes an ingestion of raw files by tasks, into a table of its own beneath the folder that is the argument. Some
strike other verbs, too (`struck_verbs.py`).
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

import lance_ops
from lance_ops.core.errors import StoreError
from lance_ops.maintenance.ingest import IngestBatch, IngestOptions, RawFile, ingest
from lance_ops.maintenance.ingest.planning import plan_ingest
from lance_ops.maintenance.ingest.running import commit_ingest, execute
from lance_ops.runners import Job, JobProgress
from lance_ops.spark import OnSpark, get_or_create, write
from tests.spark.faults.struck_verbs import (
    ALL_FAULTS_OF_VERBS,
    DEATHS,
    FAULTS_OF_VERBS,
    die_around_commit,
    strike_verb,
)

T = TypeVar("T")
R = TypeVar("R")

FILES, ROWS_OF_FILE, ROWS_BEFORE = 4, 10, 5
_LONG_SECONDS = 120.0


@dataclass(frozen=True)
class Struck(Generic[T, R]):
    """A task function that a fault strikes at the task with raw file `1.parquet`, at its first attempts."""

    function: Callable[[T], R]
    fault: str
    folder: str
    attempts: int = 1

    def __call__(self, task: T) -> R:
        if "/1.parquet" not in repr(task):
            return self.function(task)
        marks = len(os.listdir(self.folder))
        Path(self.folder, str(marks)).touch()
        if marks >= self.attempts:
            return self.function(task)
        outcome: R = FAULTS[self.fault](self.function, task)
        return outcome


def kill_executor(function: Callable[[T], R], task: T) -> R:
    """Kill the executor when the task's files are written and its outcome is not reported yet."""
    function(task)
    daemon = os.getppid()
    executor = int(Path(f"/proc/{daemon}/stat").read_text().rpartition(") ")[2].split()[1])
    os.kill(executor, signal.SIGKILL)
    time.sleep(_LONG_SECONDS)  # Spark ends this worker, whose executor is gone
    raise AssertionError("the worker outlived its executor")


def fill_disk(function: Callable[[T], R], task: T) -> R:
    """Let every file end after 100 bytes, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        return function(task)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def throttle(function: Callable[[T], R], task: T) -> R:
    raise StoreError("503 Slow Down")


def run_twice(function: Callable[[T], R], task: T) -> R:
    """Do the task's work twice and report one outcome, as Spark does with a speculative attempt.

    Spark itself starts such an attempt on another host only, and the workers of this cluster share one.
    `test_speculation` has a cluster of two.
    """
    function(task)
    return function(task)


def run_on(function: Callable[[T], R], task: T) -> R:
    """Write the task's files, and never report."""
    function(task)
    time.sleep(_LONG_SECONDS)
    raise AssertionError("nobody cancelled the job")


FAULTS: dict[str, Callable[[Callable[[Any], Any], Any], Any]] = {
    "an executor is killed": kill_executor,
    "a disk is full at first": fill_disk,
    "a disk stays full": fill_disk,
    "the store throttles at first": throttle,
    "the store goes on throttling": throttle,
    "a task runs twice": run_twice,
    "the job is cancelled": run_on,
}
_FOR_EVER = {"a disk stays full", "the store goes on throttling"}


@dataclass(frozen=True)
class StrikingRunner:
    """`OnSpark` with a fault in one of its tasks."""

    runner: OnSpark
    fault: str
    folder: str

    def map(
        self,
        function: Callable[[T], R],
        tasks: Sequence[T],
        job: Job | None = None,
        discard: Callable[[R], None] | None = None,
    ) -> list[R]:
        attempts = 99 if self.fault in _FOR_EVER else 1
        return self.runner.map(Struck(function, self.fault, self.folder, attempts), tasks, job, discard)


@dataclass(frozen=True)
class Table:
    """A table of one version, and raw files to ingest."""

    folder: Path

    @classmethod
    def make(cls, folder: Path) -> Table:
        (folder / "raw").mkdir(parents=True)
        (folder / "marks").mkdir()
        for number in range(FILES):
            first = ROWS_BEFORE + number * ROWS_OF_FILE
            pq.write_table(pa.table({"x": range(first, first + ROWS_OF_FILE)}), folder / "raw" / f"{number}.parquet")
        lance_ops.write_dataset(pa.table({"x": range(ROWS_BEFORE)}), str(folder / "t.lance"))
        return cls(folder)

    @property
    def uri(self) -> str:
        return str(self.folder / "t.lance")

    @property
    def batches(self) -> list[IngestBatch]:
        paths = sorted((self.folder / "raw").iterdir())
        return [IngestBatch(path.name, (RawFile(str(path), path.stat().st_size, path.name),)) for path in paths]

    def look(self) -> dict[str, Any]:
        """Say what the table holds, how often its task was tried, and whether clean-up finds each left-over file."""
        dataset = lance_ops.dataset(self.uri)
        named = {file.path for fragment in dataset.get_fragments() for file in fragment.metadata.files}
        left_over = {path.name for path in Path(self.uri, "data").iterdir()} - named
        stats = dataset.cleanup_old_versions(retain_versions=99, delete_unverified=True)
        after = {path.name for path in Path(self.uri, "data").iterdir()}
        rows = sorted(dataset.to_table()["x"].to_pylist())
        return {
            "version": dataset.version,
            "rows": "before" if rows == list(range(ROWS_BEFORE)) else "all" if rows == _all_rows() else str(rows),
            "left over": len(left_over),
            "removed": stats.data_files_removed if after == named else f"{len(after - named)} stayed",
            "attempts": len(os.listdir(self.folder / "marks")),
        }


def _all_rows() -> list[int]:
    return list(range(ROWS_BEFORE + FILES * ROWS_OF_FILE))


ONE_FILE_A_TASK = IngestOptions(max_files_per_task=1)


def strike(runner: OnSpark, fault: str, folder: Path) -> dict[str, Any]:
    """Ingest under a fault, and say what came of it."""
    table, marks = Table.make(folder), folder / "marks"

    def interrupt(progress: JobProgress) -> None:
        written = [path for path in Path(table.uri, "data").iterdir() if path.suffix == ".lance"]
        if len(written) == 1 + FILES:  # each task has written its file, and the struck one does not report
            raise KeyboardInterrupt

    if fault == "the job is cancelled":
        runner = OnSpark(runner.session, on_progress=interrupt)
    try:
        ingest(table.uri, table.batches, options=ONE_FILE_A_TASK, runner=StrikingRunner(runner, fault, str(marks)))
        error = None
    except (Exception, KeyboardInterrupt) as raised:  # noqa: BLE001 - it is what the test compares
        error = "\n".join([f"{type(raised).__name__}: {raised}", *getattr(raised, "__notes__", [])])
    return {"error": error, **table.look()}


def write_frame(runner: OnSpark, folder: Path, save: Callable[[DataFrame, str], object]) -> dict[str, Any]:
    """Write a DataFrame while an executor is killed; the rows come from a Python function that does so."""
    table, marks = Table.make(folder), str(folder / "marks")

    def pass_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if 40 in batch["x"].to_pylist() and not os.listdir(marks):
                Path(marks, "0").touch()
                kill_executor(lambda task: task, None)
            yield batch

    frame = runner.session.range(ROWS_BEFORE, len(_all_rows()), 1, 4).withColumnRenamed("id", "x")
    save(frame.mapInArrow(pass_on, "x long"), table.uri)
    return {"error": None, **table.look()}


def die_after_commit(runner: OnSpark, folder: Path) -> dict[str, Any]:
    """Die when the version is committed and nobody knows; the next run ingests nothing twice."""
    table = Table.make(folder)
    plan = plan_ingest(table.uri, table.batches, options=ONE_FILE_A_TASK)
    outcomes = runner.map(execute, plan.tasks, plan.job)
    child = os.fork()
    if not child:
        commit_ingest(plan, outcomes)
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    again = ingest(table.uri, table.batches, options=ONE_FILE_A_TASK, runner=runner)
    return {"error": None, "again": again.version, **table.look()}


def strike_verbs(runner: OnSpark, struck: Sequence[tuple[str, str]], scratch: Path) -> dict[str, Any]:
    """Run verbs under faults, and say of each what came of it."""
    found = {}
    for verb, fault in struck:
        place = scratch / f"{verb}-{fault}".replace(" ", "-")
        found[f"{verb}: {fault}"] = strike_verb(runner, verb, FAULTS[fault], place, stays=fault in _FOR_EVER)
    return found


def main(scratch: Path, *, all_verbs: bool) -> None:
    """Run every fault; the last one ends this process before it commits. Or run all verbs under all of their faults."""
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parents[3]), str(Path(__file__).parent)])
    config = {
        "spark.driver.memory": "1g",
        "spark.local.dir": str(scratch / "local"),
        "spark.sql.shuffle.partitions": "2",
    }
    session = get_or_create("faults", master="local-cluster[2,1,1024]", config=config)
    session.sparkContext.setLogLevel("OFF")
    runner = OnSpark(session)
    if all_verbs:
        print(json.dumps(strike_verbs(runner, ALL_FAULTS_OF_VERBS, scratch)), flush=True)
        return
    found = {fault: strike(runner, fault, scratch / fault.replace(" ", "-")) for fault in FAULTS}
    found |= strike_verbs(runner, FAULTS_OF_VERBS, scratch)
    found["an executor is killed under df.write"] = write_frame(
        runner, scratch / "frame", lambda frame, uri: frame.write.format("lance").mode("append").save(uri)
    )
    found["an executor is killed under write"] = write_frame(runner, scratch / "frame-by-write", write)
    found["the driver dies after the commit"] = die_after_commit(runner, scratch / "after")
    for verb, moment in DEATHS:
        found[f"{verb}: {moment}"] = die_around_commit(runner, verb, moment, scratch / f"{verb}-dies-{moment}")
    print(json.dumps(found), flush=True)
    table = Table.make(scratch / "before")
    plan = plan_ingest(table.uri, table.batches, options=ONE_FILE_A_TASK)
    runner.map(execute, plan.tasks, plan.job)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main(Path(sys.argv[1]), all_verbs=sys.argv[2:] == ["all-verbs"])
