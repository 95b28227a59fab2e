"""Change a table through Spark Connect; print what came of it as one line of JSON.

The arguments are a folder and the URL of a server, which `connect_server.py` starts.

A process has sessions of one kind, so this needs a process of its own.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark import TaskContext

import lance_ops
from lance_ops.core.file_names import data_file_name
from lance_ops.dagster.runners import SparkRunner
from lance_ops.errors import InvalidInput
from lance_ops.maintenance.indexing import TaskSizes, create_scalar_index
from lance_ops.runners import Job, JobProgress
from lance_ops.spark import (
    OnSpark,
    create_view,
    get_or_create,
    map_fragments,
    register_functions,
    sql,
    table,
    use_namespace,
    write,
)
from lance_ops.transactions import remove_files_of_job
from tests.spark.repeated_tasks import came_of_each_task

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def process_of(task: int) -> int:
    return os.getpid()


def double(task: int) -> int:
    return 2 * task


def tag_of_job(task: int) -> str:
    """Return the tag that this library gave the job, among those of the server."""
    time.sleep(0.4)
    context = TaskContext.get()
    assert context is not None
    return next(tag for tag in (context.getLocalProperty("spark.job.tags") or "").split(",") if "lance: " in tag)


def slowly(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        time.sleep(0.7)
        yield batch


def write_late(task: tuple[str, str]) -> None:
    """Write a data file after the caller was interrupted, as a task does that is at work then."""
    data, marks = task
    Path(marks, "begun").touch()
    time.sleep(1.5)
    Path(data, data_file_name()).touch()
    Path(marks, "written").touch()


def told(seen: list[JobProgress]) -> dict[str, object]:
    """Say what a progress was of, whether it was told meanwhile, and how it ended."""
    last = seen[-1]
    return {
        "job": str(last.job),
        "meanwhile": any(0 < each.num_done < last.num_tasks for each in seen),
        "end": [last.num_done, last.num_tasks, last.done_weight],
    }


def progress_of_jobs(session: SparkSession, scratch: Path) -> dict[str, object]:
    """Watch tasks, and a write of rows; return what the tag of the tasks' job begins with, too."""
    of_tasks, of_rows = list[JobProgress](), list[JobProgress]()
    job = Job.on("look, twice at", "lake/t.lance", 3, weights=(2,) * 12)
    tags = OnSpark(session, on_progress=of_tasks.append).map(tag_of_job, range(12), job)
    rows = session.range(0, 40, 1, 6).mapInArrow(slowly, "id long")
    write(rows, scratch / "slow.lance", on_progress=of_rows.append)
    return {
        "of tasks": told(of_tasks),
        "of rows": told(of_rows),
        "tag": tags[0][tags[0].index("lance: ") :].rpartition(" (")[0],
    }


def cancelled(session: SparkSession, scratch: Path) -> dict[str, object]:
    """Be interrupted while tasks are at work; say which of their files stay, at once and when all have ended."""
    made = lance_ops.write_dataset(pa.table({"x": range(4)}), str(scratch / "cancelled.lance"))
    data, marks = Path(made.uri, "data"), scratch / "marks of the cancelled"
    marks.mkdir()
    before = set(data.iterdir())

    def interrupt(progress: JobProgress) -> None:
        if (marks / "begun").exists():
            raise KeyboardInterrupt

    job = Job.on("write", made.uri, 1, remove_files=partial(remove_files_of_job, made.snapshot.store))
    interrupted = False
    try:
        OnSpark(session, on_progress=interrupt).map(write_late, [(str(data), str(marks))] * 2, job)
    except KeyboardInterrupt:
        interrupted = True
    at_once = len(set(data.iterdir()) - before)
    time.sleep(3)
    return {
        "interrupted": interrupted,
        "written": (marks / "written").exists(),
        "at once": at_once,
        "later": len(set(data.iterdir()) - before),
    }


def refusal_of(url: str) -> str:
    """Return why no session of this server is given; an empty text if one is."""
    try:
        get_or_create(master=url)
    except InvalidInput as error:
        return str(error)
    return ""


def merged_and_indexed(session: SparkSession, uri: str) -> dict[str, object]:
    """Merge a data frame and build an index, however small, by tasks of the server."""
    verbs: dict[str, None] = {}

    def note(progress: JobProgress) -> None:
        verbs[progress.job.verb if progress.job is not None else ""] = None

    runner = OnSpark(session, on_progress=note, least_bytes=0)
    data = lance_ops.dataset(uri)
    merge = data.merge_insert("x").when_matched_update_all().when_not_matched_insert_all()
    counts = merge.execute(session.sql("SELECT id AS x, -id AS double FROM range(35, 45)"), runner=runner)
    indexed = create_scalar_index(data.snapshot, "x", "BTREE", runner=runner, sizes=TaskSizes(1, task_bytes=100))
    found = lance_ops.LanceDataset.of(indexed)
    return {
        "counts": counts,
        "jobs": list(verbs),
        "by the index": found.to_table(filter="x = 44").to_pylist(),
        "plan": "ScalarIndexQuery: query=[x = 44]" in found.scanner(filter="x = 44").explain_plan(verbose=True),
    }


def num_rows(batches: pa.RecordBatchReader) -> int:
    return sum(batch.num_rows for batch in batches)


def by_statements(session: SparkSession, scratch: Path) -> dict[str, object]:
    """Change and read a table by doors that name it: statements, views, functions of tables, a stream of changes."""
    rows = pa.table({"x": range(4), "y": range(4)})
    uri = lance_ops.write_dataset(rows, str(scratch / "named.lance"), enable_stable_row_ids=True).uri
    (scratch / "more.csv").write_text("x,y\n4,4\n")
    use_namespace(session, scratch)
    runner, source = OnSpark(session, least_bytes=0), "(SELECT id FROM range(4, 6)) AS s ON t.x = s.id"
    insert = "WHEN NOT MATCHED THEN INSERT (x, y) VALUES (s.id, 50)"
    for text in (
        f"COPY INTO named FROM '{scratch}/more.csv'",
        "UPDATE named SET y = -abs(y) WHERE abs(x) >= 3",
        f"MERGE INTO named AS t USING {source} WHEN MATCHED THEN DELETE {insert}",
    ):
        sql(session, text, runner=runner).collect()
    create_view(session, "seen", uri)
    register_functions(session)
    changes = session.readStream.format("lance").option("read_change_feed", "true").option("starting_version", 2)
    told = changes.load(uri).select("_change_type").writeStream.format("lance")
    told = told.option("checkpointLocation", str(scratch / "checkpoint of changes")).trigger(availableNow=True)
    told.start(str(scratch / "changes.lance")).awaitTermination()
    return {
        "view": [list(row) for row in session.sql("SELECT x, y FROM seen ORDER BY x").collect()],
        "function": session.sql(f"SELECT count(*) FROM lance_scan('{uri}', filter => 'x < 3')").collect()[0][0],
        "fragments": sum(map_fragments(lance_ops.dataset(uri), num_rows, runner=runner).values()),
        "changes": sorted(lance_ops.dataset(str(scratch / "changes.lance")).to_table()["_change_type"].to_pylist()),
    }


def streamed(session: SparkSession, uri: str, scratch: Path) -> list[int | None]:
    """Let a stream copy what is available of a table, twice; return the rows and the version of the copy."""
    copy = str(scratch / "copy.lance")
    for _ in range(2):
        read = session.readStream.format("lance").load(uri).select("x")
        begun = read.writeStream.format("lance").option("checkpointLocation", str(scratch / "checkpoint"))
        begun.trigger(availableNow=True).start(copy).awaitTermination()
    return [lance_ops.dataset(copy).count_rows(), lance_ops.dataset(copy).version]


def main(scratch: Path, url: str) -> None:
    """Be a client of the server."""
    session = get_or_create(master=url)
    made = lance_ops.write_dataset(pa.table({"x": range(40)}), str(scratch / "t.lance"), max_rows_per_file=4)
    runner = OnSpark(session)
    metrics = made.optimize.compact_files(target_rows_per_fragment=20, runner=runner)
    values = table(session, made.uri).select("_rowaddr", "x").load().selectExpr("_rowaddr", "x * 2 AS double")
    made.add_columns(values.where("double < 20"), runner=runner)
    found = {
        "session": type(session).__module__,
        "fragments": [metrics.fragments_removed, metrics.fragments_added],
        "rows": lance_ops.dataset(made.uri).count_rows(),
        "other processes": os.getpid() not in runner.map(process_of, [1, 2]),
        "doubles": sql(session, f"SELECT sum(double) FROM lance.`{made.uri}`").collect()[0][0],
        "one session": get_or_create() is get_or_create(master=url) is session,
        "another server": refusal_of("sc://localhost:1/;token=secret"),
        "of a resource": SparkRunner(master=url).runner().map(double, [5, 10]),
        "attempts": came_of_each_task(session, scratch),
        "written": write(values.select("double"), scratch / "w.lance").count_rows(),
        "merged and indexed": merged_and_indexed(session, made.uri),
        "progress": progress_of_jobs(session, scratch),
        "cancelled": cancelled(session, scratch),
        "streamed": streamed(session, made.uri, scratch),
        "by statements": by_statements(session, scratch),
    }
    os.environ["SPARK_REMOTE"] = f"{url}/"
    found["named by the environment"] = get_or_create() is get_or_create(master=url) is session
    session.stop()
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
