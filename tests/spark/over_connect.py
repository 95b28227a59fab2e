"""Change a table through Spark Connect; print what came of it as one line of JSON.

The arguments are a folder and the URL of a server, which `connect_server.py` starts.

A process has sessions of one kind, so this needs a process of its own.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

import lance_ops
from lance_ops.dagster.runners import SparkRunner
from lance_ops.errors import InvalidInput
from lance_ops.maintenance.indexing import TaskSizes, create_scalar_index
from lance_ops.runners import JobProgress
from lance_ops.spark import OnSpark, get_or_create, sql, table, write
from tests.spark.repeated_tasks import came_of_each_task

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def process_of(task: int) -> int:
    return os.getpid()


def double(task: int) -> int:
    return 2 * task


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
        "streamed": streamed(session, made.uri, scratch),
    }
    os.environ["SPARK_REMOTE"] = f"{url}/"
    found["named by the environment"] = get_or_create() is get_or_create(master=url) is session
    session.stop()
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
