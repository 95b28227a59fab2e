from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dagster as dg
import pyarrow as pa
import pytest

from lance_ops.api import dataset
from lance_ops.core.errors import SchemaMismatch
from lance_ops.dagster import LanceDatasetResource, LanceIOManager
from lance_ops.dagster.attempts import Attempt
from lance_ops.dagster.declaration import DatasetConfig
from lance_ops.dagster.definitions import build_definitions
from lance_ops.dagster.in_process import CodeLocation
from lance_ops.dagster.io.loading import load_as
from lance_ops.dagster.io.partition_rows import PartitionRows
from lance_ops.dagster.io.stored_dataset import StoredDataset
from lance_ops.dagster.ops import launch
from lance_ops.dagster.ops.questions import Count, Duplicates
from lance_ops.dagster.runners import spark_runner
from lance_ops.dagster.runners.runner import RUNNER_KEY
from lance_ops.dagster.runners.spark_runner import SparkRunner
from lance_ops.spark import OnSpark
from lance_ops.verbs import Compact, DeleteRows, Reindex
from tests.dagster.deployment import Deploy, Deployment
from tests.spark.recorded_jobs import RecordedJobs, record_jobs, use_small_sizes
from tests.verbs.examples import EXAMPLES, Example

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.dagster, pytest.mark.spark]

WITHOUT_TASKS = {"drop_index", "restore", "tag", "branch"}
"""Verbs that need no task."""

OF_VERBS = {example.make("").name: example for example in reversed(EXAMPLES)}
"""The first example of each verb, by the verb's name."""


@pytest.fixture
def on_spark(deploy: Deploy, spark: SparkSession) -> Deployment:
    """The same deployment with tasks on Spark. The resource finds the tests' shared session."""
    deployment = deploy({"isolated": True})
    resources = dg.Definitions(resources={RUNNER_KEY: SparkRunner()})
    config: DatasetConfig = deployment.config
    definitions = dg.Definitions.merge(build_definitions(config), resources)
    return Deployment(config, CodeLocation(definitions, deployment.instance), deployment.landing)


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> RecordedJobs:
    """The jobs of Spark's tasks in this test, in which small work of the resource's runner runs in tasks, too."""
    use_small_sizes(monkeypatch)
    monkeypatch.setattr(spark_runner, "OnSpark", partial(OnSpark, least_bytes=0))
    return record_jobs(monkeypatch)


def test_a_backlog_is_one_spark_run_and_one_commit_and_the_verbs_run_there_too(
    on_spark: Deployment, jobs: RecordedJobs
) -> None:
    for day in range(6):
        on_spark.land(f"d{day}", range(day * 10, day * 10 + 10))
    assert len(on_spark.tick().runs) == 1
    assert on_spark.data.version == 1
    assert any(each.startswith("ingest into") for each in jobs.take())
    index = Reindex(create={"id_idx": "id"}, indices=("id_idx",))
    for verb, begun in ((DeleteRows("id < 10", "r"), "delete"), (index, "index"), (Compact(), "compact")):
        on_spark.run(verb.name, launch(verb, dry_run=False))
        assert any(each.startswith(begun) for each in jobs.take()), verb
    assert sorted(on_spark.data.to_table()["id"].to_pylist()) == list(range(10, 60))
    assert on_spark.head_versions() == list(range(1, on_spark.data.version + 1))


@pytest.mark.parametrize(
    "example", [each for name, each in OF_VERBS.items() if name not in WITHOUT_TASKS], ids=lambda example: example.title
)
def test_a_verb_runs_its_tasks_on_the_workers(
    example: Example, on_spark: Deployment, jobs: RecordedJobs, tmp_path: Path
) -> None:
    version, verb = example.begin(on_spark.config.uri, tmp_path).version, example.make(str(tmp_path))
    on_spark.run(verb.name, launch(verb, dry_run=False))
    assert jobs.descriptions, "no task ran on Spark"
    assert (on_spark.data.version, on_spark.data.count_rows()) == (version + example.num_commits, example.num_rows)


@pytest.mark.parametrize(
    ("what", "asked"),
    [("count", Count(predicate="id < 5")), ("statistics", None), ("duplicates", Duplicates(on=["id"]))],
)
def test_a_question_is_answered_by_tasks_on_the_workers(
    what: str, asked: dg.Config | None, on_spark: Deployment, jobs: RecordedJobs
) -> None:
    on_spark.fill(2)
    on_spark.run(what, asked)
    assert jobs.descriptions, "no task ran on Spark"


def test_an_error_in_a_spark_task_reaches_the_run_unchanged(on_spark: Deployment) -> None:
    path = on_spark.land("a", range(3))
    path.write_bytes(b"PAR1 not at all PAR1")
    on_spark.instance.add_dynamic_partitions(on_spark.names.of("batches"), ["a"])
    with pytest.raises(dg.Failure, match=r"a\.parquet"):
        on_spark.ingest("a")


def test_frames_are_stored_merged_and_loaded_by_spark(spark: SparkSession, tmp_path: Path) -> None:
    frames = type(spark.range(1))
    stored = StoredDataset(str(tmp_path / "a.lance"))
    partitions = PartitionRows(dg.AssetKey("a"), dg.StaticPartitionsDefinition(["x", "y"]), ("x",), "city")
    stored.replace(spark.createDataFrame([(1, "x"), (2, "x")], "id long, city string"), partitions)
    stored.write(spark.createDataFrame([(3, "y")], "id long, city string"), "append")
    stored.replace(spark.createDataFrame([(4, "x")], "id long, city string"), partitions)
    dev = LanceDatasetResource(uri=stored.uri, branch="dev")
    made = dev.write(spark.createDataFrame([(4, "y"), (5, "x")], "id long, city string"), "upsert", ["id"])
    assert sorted(made.to_table()["id"].to_pylist()) == [3, 4, 5]
    loaded = load_as(frames, made, partitions.condition(made.schema))
    assert isinstance(loaded, frames)
    assert [tuple(row) for row in loaded.collect()] == [(5, "x")]
    assert sorted(dataset(stored.uri).to_table()["id"].to_pylist()) == [3, 4]


def test_a_frame_of_spark_is_appended_once_in_all_attempts_of_a_step(spark: SparkSession, tmp_path: Path) -> None:
    stored, frame = StoredDataset(str(tmp_path / "a.lance")), spark.range(2)
    for token, is_repeated in (("one", False), ("one", True), ("two", True), ("three", False)):
        written = stored.write(frame, "append", attempt=Attempt(token, is_repeated))
        assert written.num_rows is None
    assert sorted(dataset(stored.uri).to_table()["id"].to_pylist()) == [0, 0, 0, 1, 1, 1]


def test_a_frame_of_spark_is_stored_as_the_library_writes_it(spark: SparkSession, tmp_path: Path) -> None:
    """Moments are in the session's time zone, and an error is one of this library."""
    stored = StoredDataset(str(tmp_path / "moments.lance"))
    stored.write(pa.table({"at": pa.array([0], pa.timestamp("us", "UTC"))}), "overwrite", [])
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        stored.write(spark.sql("SELECT TIMESTAMP_NTZ '1970-01-01 09:00:01' AS at"), "append", [])
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert dataset(stored.uri).to_table()["at"].cast(pa.int64()).to_pylist() == [0, 1_000_000]
    with pytest.raises(SchemaMismatch, match="'other'"):
        stored.write(spark.sql("SELECT 1 AS other"), "append", [])


def test_a_frame_of_spark_gives_data_versions_and_column_lineage(spark: SparkSession, tmp_path: Path) -> None:
    frames = type(spark.range(1))

    @dg.asset
    def trips() -> pa.Table:
        return pa.table({"id": [1, 2], "city": ["a", "b"]})

    def downstream(trips: Any) -> Any:
        return trips.selectExpr("city", "id * 2 AS twice")

    downstream.__annotations__["trips"] = frames
    manager = {"io_manager": LanceIOManager(base_uri=str(tmp_path))}
    with dg.DagsterInstance.ephemeral() as instance:
        run = dg.materialize([trips, dg.asset(downstream)], resources=manager, instance=instance)
        (event,) = run.asset_materializations_for_node("downstream")
    lineage = event.metadata["dagster/column_lineage"].value
    assert isinstance(lineage, dg.TableColumnLineage)
    assert lineage.deps_by_column == {"city": [dg.TableColumnDep(trips.key, "city")]}
    assert event.tags is not None
    assert (event.tags["dagster/data_version"], event.tags["dagster/input_data_version/trips"]) == ("1", "1")
