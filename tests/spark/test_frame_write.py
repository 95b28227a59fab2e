"""`write`: Spark's workers write a DataFrame's rows, and this process commits them as one version."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from lance_ops.api import dataset, write_dataset
from lance_ops.core.errors import DatasetAlreadyExists, InvalidInput, SchemaMismatch, StoreError, TasksLost, WrongType
from lance_ops.core.tricks import Trick
from lance_ops.spark import sql, use_namespace, write
from lance_ops.spark.data_source import WritePlan
from lance_ops.spark.running import SparkJob
from tests.groups import OWN_SESSIONS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]

REPOSITORY = Path(__file__).parents[2]


def numbers(spark: SparkSession, *values: int, partitions: int = 2) -> DataFrame:
    return spark.createDataFrame([(value,) for value in values], "x bigint").repartition(partitions)


def held(uri: str) -> list[int]:
    return sorted(dataset(uri).to_table()["x"].to_pylist())


def files(uri: str) -> set[str]:
    return {path.name for path in Path(uri, "data").iterdir()}


def test_each_write_is_one_version_and_returns_it(spark: SparkSession, dataset_uri: str) -> None:
    assert write(numbers(spark, 1, 2, 3), dataset_uri).version == 1
    assert write(numbers(spark, 4), dataset_uri, "append").version == 2
    assert held(dataset_uri) == [1, 2, 3, 4]
    replaced = write(numbers(spark, 20, 30), dataset_uri, "overwrite", replace_where="x > 2")
    assert (replaced.version, held(dataset_uri)) == (3, [1, 2, 20, 30])
    assert write(numbers(spark, 9), dataset_uri, "overwrite").version == 4
    assert held(dataset_uri) == [9]


def test_options_are_those_of_the_format(spark: SparkSession, dataset_uri: str) -> None:
    frame = spark.sql("SELECT x, array(1f, 2f) AS v FROM VALUES (1L), (2L), (3L) AS t(x)").coalesce(1)
    hint: dict[str, Any] = {"v.arrow.fixed-size-list.size": 2}
    made = write(frame, dataset_uri, max_rows_per_file=2, enable_stable_row_ids=True, batch="day", **hint)
    assert made.schema.field("v").type == pa.list_(pa.float32(), 2)
    assert made.has_stable_row_ids
    assert len(made.get_fragments()) == 2
    assert write(frame, dataset_uri, batch="day").version == 1  # a replay
    wider = frame.selectExpr("x", "v", "'new' AS name")
    with pytest.raises(SchemaMismatch, match="'name' is not in the table"):
        write(wider, dataset_uri)
    grown = write(wider, dataset_uri, schema_mode="add").to_table(columns=["name"])["name"].to_pylist()
    assert grown == [None, None, None, "new", "new", "new"]
    with pytest.raises(InvalidInput, match="no option 'rows'"):
        write(frame, dataset_uri, rows=3)
    for name in ("path", "Path"):
        elsewhere: dict[str, Any] = {name: "/elsewhere"}
        with pytest.raises(InvalidInput, match="'path': the table is named already"):
            write(frame, dataset_uri, **elsewhere)
    with pytest.raises(InvalidInput, match="'query' is for a stream"):
        write(frame, dataset_uri, query="day")
    with pytest.raises(WrongType, match="'batch' is a text"):
        write(frame, dataset_uri, batch=1.5)  # type: ignore[arg-type]  # a caller without a type checker
    with pytest.raises(InvalidInput, match="mode 'ignore': a write is one of append, overwrite, create"):
        write(frame, dataset_uri, "ignore")  # type: ignore[arg-type]


def test_create_refuses_a_table_that_is_there_or_appears_meanwhile(
    spark: SparkSession, dataset_uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert write(numbers(spark, 1), dataset_uri, "create").version == 1
    with pytest.raises(DatasetAlreadyExists, match="mode 'append' adds rows"):
        write(numbers(spark, 2), dataset_uri, "create")
    meanwhile = dataset_uri + "2"
    commit = WritePlan.commit

    def after_another(self: WritePlan, *given: object) -> int | None:
        write_dataset(pa.table({"x": [5]}), meanwhile)
        return commit(self, *given)  # type: ignore[arg-type]  # what the writer gives

    monkeypatch.setattr(WritePlan, "commit", after_another)
    with pytest.raises(DatasetAlreadyExists):
        write(numbers(spark, 2), meanwhile, "create")
    assert held(meanwhile) == [5]
    assert len(files(meanwhile)) == 1


def test_a_relative_path_is_one_of_the_driver_s_folder(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # the workers' folder is the one in which the session started
    made = write(numbers(spark, 1, 2), "t.lance")
    assert (made.uri, held(str(tmp_path / "t.lance"))) == (str(tmp_path / "t.lance"), [1, 2])
    sql(spark, "INSERT INTO lance.`t.lance` VALUES (3)")
    assert held(str(tmp_path / "t.lance")) == [1, 2, 3]


def test_the_session_s_case_rule_gives_way_to_the_caller_s(spark: SparkSession, dataset_uri: str) -> None:
    write(numbers(spark, 1), dataset_uri)
    options: dict[str, Any] = {"CASE_SENSITIVE": True}
    with pytest.raises(SchemaMismatch, match="'X' is not in the table"):
        write(numbers(spark, 2).toDF("X"), dataset_uri, **options)


def test_a_created_batch_is_replayed_as_any_other(spark: SparkSession, dataset_uri: str) -> None:
    for _ in range(2):
        assert write(numbers(spark, 1), dataset_uri, "create", batch="day").version == 1
    assert held(dataset_uri) == [1]


def test_an_interrupted_write_leaves_no_file(
    spark: SparkSession, dataset_uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(numbers(spark, 1), dataset_uri)
    before = files(dataset_uri)
    run: Any = SparkJob.run

    def interrupted(self: SparkJob, *given: Any) -> object:
        run(self, *given)
        assert files(dataset_uri) > before
        raise KeyboardInterrupt

    monkeypatch.setattr(SparkJob, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write(numbers(spark, 2), dataset_uri)
    assert (files(dataset_uri), held(dataset_uri)) == (before, [1])


@pytest.mark.parametrize(("kept", "lost"), [(slice(1, None), 1), (slice(-1), 3), (slice(0), 1)])
def test_a_partition_that_reported_nothing_is_never_left_out(
    spark: SparkSession, dataset_uri: str, monkeypatch: pytest.MonkeyPatch, kept: slice, lost: int
) -> None:
    write(numbers(spark, 1), dataset_uri)
    before = files(dataset_uri)
    run: Any = SparkJob.run

    def without_some(self: SparkJob, *given: Any) -> object:
        return run(self, *given)[kept]

    monkeypatch.setattr(SparkJob, "run", without_some)
    with pytest.raises(TasksLost, match=f"task {lost} of 3 reported nothing"):
        write(numbers(spark, 2, 3, 4, partitions=3), dataset_uri, "overwrite")
    assert (files(dataset_uri), held(dataset_uri)) == (before, [1])


def test_a_frame_without_rows_makes_a_table_and_then_no_version(spark: SparkSession, dataset_uri: str) -> None:
    empty = spark.createDataFrame([], "x bigint")
    assert write(empty, dataset_uri).version == 1
    assert write(empty, dataset_uri).version == 1
    assert dataset(dataset_uri).count_rows() == 0


def test_names_and_types_travel_as_they_are(spark: SparkSession, dataset_uri: str) -> None:
    zone = spark.conf.get("spark.sql.session.timeZone")
    assert zone is not None
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    spark.conf.set("spark.sql.execution.arrow.useLargeVarTypes", "true")
    try:
        frame = spark.sql("SELECT 1L AS `a b`, 'é' AS name, TIMESTAMP '2026-01-31 12:00:00Z' AS at, array('x') AS l")
        made = write(frame, dataset_uri).to_table()
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
        spark.conf.unset("spark.sql.execution.arrow.useLargeVarTypes")
    assert made.schema.types == [
        pa.int64(),
        pa.string(),
        pa.timestamp("us", "UTC"),
        pa.list_(pa.field("element", pa.string())),
    ]
    shown = made.to_pylist()[0]
    assert (shown["a b"], shown["name"], shown["at"].isoformat()) == (1, "é", "2026-01-31T12:00:00+00:00")


@pytest.mark.parametrize("way", ["write", "df.write", "writeStream"])
def test_moments_within_lists_structs_and_maps_are_in_the_sessions_zone(
    spark: SparkSession, dataset_uri: str, tmp_path: Path, way: str
) -> None:
    moment = pa.timestamp("us", "UTC")
    clock = pa.struct([("at", pa.list_(pa.timestamp("us"))), ("n", pa.int32())])
    columns = {"l": pa.list_(moment), "s": pa.struct([("At", moment)]), "m": pa.map_(pa.string(), moment), "c": clock}
    write_dataset(pa.schema(list(columns.items())).empty_table(), dataset_uri)
    values = [
        "array(DATE '2026-01-31', NULL) AS l",
        "named_struct('at', TIMESTAMP_NTZ '2026-01-31 00:00:00') AS s",
        "map('k', TIMESTAMP_NTZ '2026-01-31 00:00:00') AS m",
        "named_struct('n', 7, 'at', array(TIMESTAMP '2026-01-31 00:00:00')) AS c",
    ]
    zone = spark.conf.get("spark.sql.session.timeZone")
    assert zone is not None
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        if way == "writeStream":
            source = write_dataset(pa.table({"x": [1]}), tmp_path / "source.lance").uri
            stream = spark.readStream.format("lance").load(source).selectExpr(*values)
            writer = stream.writeStream.format("lance").option("checkpointLocation", str(tmp_path / "checkpoint"))
            writer.trigger(availableNow=True).start(dataset_uri).awaitTermination()
        elif way == "df.write":
            spark.range(1).selectExpr(*values).write.format("lance").mode("append").save(dataset_uri)
        else:
            write(spark.range(1).selectExpr(*values), dataset_uri)
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    (row,) = dataset(dataset_uri).to_table().to_pylist()
    midnight = datetime(2026, 1, 31, 5, tzinfo=UTC)
    assert row == {
        "l": [midnight, None],
        "s": {"At": midnight},
        "m": [("k", midnight)],
        "c": {"at": [datetime(2026, 1, 31)], "n": 7},
    }


def test_an_error_of_a_task_is_the_librarys_and_leaves_no_file(spark: SparkSession, dataset_uri: str) -> None:
    write(numbers(spark, 1, 2), dataset_uri)
    before = files(dataset_uri)
    with pytest.raises(InvalidInput, match="'replace_where': 1 rows to write do not match 'x > 1'") as caught:
        write(numbers(spark, 2, 3, 4, 0), dataset_uri, "overwrite", replace_where="x > 1")
    assert any("of 2 of 'overwrite" in note for note in caught.value.__notes__)
    assert (files(dataset_uri), held(dataset_uri)) == (before, [1, 2])


def test_an_error_of_the_frame_is_sparks_and_leaves_no_file(spark: SparkSession, dataset_uri: str) -> None:
    write(numbers(spark, 1), dataset_uri)
    before = files(dataset_uri)
    frame = spark.range(40_000, numPartitions=2).selectExpr("IF(id = 39999, raise_error('a bad row'), id) AS x")
    with pytest.raises(PySparkException, match="a bad row"):
        write(frame, dataset_uri)
    assert (files(dataset_uri), held(dataset_uri)) == (before, [1])


def test_a_commit_that_certainly_failed_leaves_no_file(
    spark: SparkSession, dataset_uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(numbers(spark, 1), dataset_uri)
    before = files(dataset_uri)

    def refuse(*given: object) -> WritePlan:
        raise StoreError("the disk is full")

    monkeypatch.setattr(WritePlan, "_open", refuse)
    with pytest.raises(StoreError, match="the disk is full"):
        write(numbers(spark, 2), dataset_uri)
    assert files(dataset_uri) == before


def test_a_write_is_a_job_with_a_description_and_no_plan_shows_its_options(spark: SparkSession, tmp_path: Path) -> None:
    uri = str(tmp_path / "flights.lance")
    marker = tmp_path / "described"

    def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        marker.write_text(f"{context.getLocalProperty('spark.job.description')}")
        yield from batches

    write(numbers(spark, 1), uri)
    write(numbers(spark, 2).mapInArrow(look, "x bigint"), uri, storage_options={"password": "hunter2"})
    assert marker.read_text() == "lance: append to flights v1"
    store = spark._jsparkSession.sharedState().statusStore()
    plans = [store.executionsList().apply(at).physicalPlanDescription() for at in range(store.executionsList().size())]
    assert any("lance: append to flights v1" in plan for plan in plans)
    assert not any("hunter2" in plan or "password" in plan for plan in plans)


def test_sql_writes_through_this_door(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: DataFrame) -> None:
        raise AssertionError("a write by Spark's own writer")

    monkeypatch.setattr(type(spark.range(1)), "write", property(refuse))
    use_namespace(spark, str(tmp_path))
    try:
        sql(spark, "CREATE TABLE t USING lance AS SELECT id AS x FROM range(3)")
        sql(spark, "INSERT INTO t VALUES (7)")
        sql(spark, "INSERT OVERWRITE t SELECT id FROM range(2)")
    finally:
        use_namespace(spark, None)
    assert held(str(tmp_path / "t.lance")) == [0, 1]


_COLD = """
import sys
sys.modules["pandas"] = None  # an import of it fails
from datetime import UTC, datetime
from pathlib import Path
from pyspark.sql import SparkSession
from lance_ops.spark import table, write
from lance_ops.spark.java import use_java
from lance_ops.spark.session import DAEMON_MODULE, SETTINGS
from tests.spark.python_processes import daemons

use_java()
settings = {**SETTINGS, "spark.python.daemon.module": DAEMON_MODULE, "spark.ui.enabled": "false"}
session = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
folder = Path(sys.argv[1])
write(session.range(0, 1000, 1, 2), folder / "t.lance")
print(*daemons())
table(session, folder / "t.lance").load().write.format("noop").mode("overwrite").save()
print(*daemons())
"""


@OWN_SESSIONS
def test_a_cold_write_and_a_cold_read_start_one_daemon_and_need_no_pandas(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "LANCE_OPS_DISABLE": Trick.SMALL_READS.value}
    environment["PYSPARK_PYTHON"] = sys.executable
    command = [sys.executable, "-W", "ignore", "-c", _COLD, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    after_write, after_read = done.stdout.splitlines()[-2:]
    assert after_write == after_read
    assert len(after_write.split()) == 1


_STOPPED = """
import sys
from lance_ops.errors import InvalidInput
from lance_ops.spark import OnSpark, create_view, get_or_create, sql, table, write

session = get_or_create("local[1]")
frame = session.range(3)
dataset = write(frame, sys.argv[1])
session.stop()
for call in (
    lambda: table(session, dataset.uri),
    lambda: write(frame, dataset.uri),
    lambda: sql(session, "SELECT 1"),
    lambda: create_view(session, "v", dataset.uri),
    lambda: dataset.count_rows("id > 0", runner=OnSpark(session, least_bytes=0)),
):
    try:
        call()
    except InvalidInput as error:
        print(error)
"""


@OWN_SESSIONS
def test_a_stopped_session_is_refused_by_every_door(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "ignore", "-c", _STOPPED, str(tmp_path / "t.lance")]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    said = "the Spark session was stopped: start another one, as lance_ops.spark.get_or_create() does"
    assert done.stdout.splitlines() == [said] * 5


def test_workers_find_the_rows_to_replace_and_write_a_widened_column(
    spark: SparkSession, dataset_uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_dataset(pa.table({"x": pa.array([1, 2, 3], pa.int32())}), dataset_uri, max_rows_per_file=2)
    jobs: list[str] = []
    monkeypatch.setattr(SparkJob, "run", _recorded(SparkJob.run, jobs))
    write(numbers(spark, 2**40), dataset_uri, schema_mode="add")
    assert jobs == ["lance: append to data v1", "lance: alter columns of data v1, 2 tasks"]
    assert dataset(dataset_uri).schema.field("x").type == pa.int64()
    jobs.clear()
    write(numbers(spark, 20), dataset_uri, "overwrite", replace_where="x > 2")
    assert [text.rpartition(",")[0] for text in jobs[1:]] == ["lance: delete data v3"]
    assert held(dataset_uri) == [1, 2, 20]


def _recorded(run: Callable[..., Any], texts: list[str]) -> Callable[..., Any]:
    def recorded(job: SparkJob, *arguments: Any) -> Any:
        texts.append(job.description)
        return run(job, *arguments)

    return recorded
