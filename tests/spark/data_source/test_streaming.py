"""Streams into and out of tables: each micro-batch is one version, however often Spark repeats it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lance_ops.api import dataset
from tests.spark.data_source.frames import frame_of, save

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def run_stream(spark: SparkSession, tmp_path: Path) -> Callable[..., None]:
    landing = tmp_path / "landing"
    landing.mkdir()

    def run(uri: str, files: dict[str, list[int]], checkpoint: str = "checkpoint", **options: str) -> None:
        for name, rows in files.items():
            (landing / name).write_text("\n".join(json.dumps({"x": x}) for x in rows))
        stream = spark.readStream.schema("x bigint").option("maxFilesPerTrigger", 1).json(str(landing))
        query = (
            stream.writeStream.format("lance")
            .option("checkpointLocation", str(tmp_path / checkpoint))
            .options(**options)
            .trigger(availableNow=True)
            .start(uri)
        )
        assert query.awaitTermination(250)

    return run


def test_each_micro_batch_is_a_version_and_a_restart_adds_only_what_is_new(
    run_stream: Callable[..., None], dataset_uri: str
) -> None:
    run_stream(dataset_uri, {"a.json": [1, 2], "b.json": [3]}, query="numbers")
    assert dataset(dataset_uri).version == 2
    run_stream(dataset_uri, {"c.json": [4]}, query="numbers")
    opened = dataset(dataset_uri)
    assert sorted(opened.to_table().column("x").to_pylist()) == [1, 2, 3, 4]


def test_a_micro_batch_that_spark_repeats_is_not_written_again(
    run_stream: Callable[..., None], dataset_uri: str
) -> None:
    run_stream(dataset_uri, {"a.json": [1, 2]}, query="numbers")
    # A lost checkpoint makes Spark start over, micro-batch 0 first.
    run_stream(dataset_uri, {}, checkpoint="another", query="numbers")
    assert dataset(dataset_uri).to_table().column("x").to_pylist() == [1, 2]


def test_a_stream_needs_no_name_since_spark_gives_it_an_id(
    run_stream: Callable[..., None], dataset_uri: str, tmp_path: Path
) -> None:
    run_stream(dataset_uri, {"a.json": [1, 2]})
    # Spark forgets that the micro-batch was committed, as after a crash, and repeats it.
    for name in ("0", ".0.crc"):
        (tmp_path / "checkpoint" / "commits" / name).unlink()
    run_stream(dataset_uri, {"b.json": [3]})
    assert dataset(dataset_uri).to_table().column("x").to_pylist() == [1, 2, 3]
    transaction = dataset(dataset_uri).read_transaction(1)
    query = json.loads((tmp_path / "checkpoint" / "metadata").read_text())["id"]
    assert transaction is not None and f"lance_ops.batch.{query}/0" in transaction.transaction_properties


def test_a_table_is_streamed_into_another_by_its_appended_rows(
    spark: SparkSession, numbers: str, tmp_path: Path
) -> None:
    copy = str(tmp_path / "copy.lance")

    def run() -> int:
        stream = spark.readStream.format("lance").option("max_rows_per_trigger", 9).load(numbers)
        writer = stream.writeStream.format("lance").option("checkpointLocation", str(tmp_path / "checkpoint"))
        assert writer.trigger(availableNow=True).start(copy).awaitTermination(250)
        return dataset(copy).version

    assert run() == 2
    save(frame_of(spark, 3, start=12), numbers)
    assert run() == 3
    assert dataset(copy).to_table().column("x").to_pylist() == [*range(15)]
