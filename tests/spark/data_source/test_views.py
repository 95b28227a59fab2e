"""Views and table functions show tables to Spark's SQL, and private formats keep secrets out of its plans."""

from __future__ import annotations

import contextlib
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException

from lance_ops.api import LanceDataset, dataset
from lance_ops.core.errors import InvalidInput, ReferenceNotFound, VersionNotFound
from lance_ops.spark import create_view, private_format, register_functions
from tests.spark.data_source.frames import values

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def moment_of(table: LanceDataset, version: int = 1) -> datetime:
    """When a version was committed."""
    moment = table.snapshot.at(version).manifest.timestamp
    assert moment is not None
    return moment.astimezone(UTC)


def test_a_view_reads_a_version_and_accepts_inserts(spark: SparkSession, numbers: str) -> None:
    create_view(spark, "numbers", numbers)
    create_view(spark, "numbers_at_1", numbers, version=1)
    spark.sql("INSERT INTO numbers VALUES (12, 'it''s', array(1.0F, 2.0F))")
    create_view(spark, "numbers", numbers)
    added = spark.sql("SELECT x, name FROM numbers EXCEPT SELECT x, name FROM numbers_at_1").collect()
    assert [tuple(row) for row in added] == [(12, "it's")]
    spark.sql("INSERT OVERWRITE numbers SELECT * FROM numbers_at_1 WHERE x < 2")
    create_view(spark, "numbers", numbers, filter="name = 'n1'")
    assert values(spark.table("numbers")) == [1]
    spark.catalog.dropTempView("numbers")


def test_a_view_shows_a_branch_or_a_moment_and_takes_no_rows(spark: SparkSession, numbers: str) -> None:
    table = dataset(numbers)
    first = moment_of(table)
    trial = table.create_branch("trial")
    trial.delete("x > 2")
    trial.delete("x > 0")
    table.delete("x = 0")
    everything = values(spark.read.format("lance").option("version", 1).load(numbers))
    for asked, shown in (
        ({"branch": "trial"}, [0]),
        ({"branch": "trial", "version": trial.version - 1}, [0, 1, 2]),
        ({"branch": "trial", "timestamp": moment_of(trial, trial.version - 1)}, [0, 1, 2]),
        ({"timestamp": first}, everything),
        ({"timestamp": first.replace(tzinfo=None).isoformat()}, everything),
        ({}, everything[1:]),
    ):
        create_view(spark, "shown", numbers, **asked)
        assert values(spark.table("shown")) == shown, asked
    create_view(spark, "shown", numbers, branch="trial")
    with pytest.raises(PySparkException, match="give the branch's own path"):
        spark.sql("INSERT INTO shown VALUES (12, 'x', array(1.0F, 2.0F))")
    spark.catalog.dropTempView("shown")
    for wrong, error, message in (
        ({"branch": "nope"}, ReferenceNotFound, "nope"),
        ({"branch": "trial", "tag": "x"}, InvalidInput, "'branch' and 'tag'|'tag' and 'branch'"),
        ({"timestamp": "yesterday"}, InvalidInput, "'timestamp' is a moment like"),
        ({"timestamp": first - timedelta(days=1)}, VersionNotFound, "no retained version is as old"),
    ):
        with pytest.raises(error, match=message):
            create_view(spark, "shown", numbers, **wrong)
    assert not spark.catalog.tableExists("shown")


def test_a_private_format_has_its_storage_options_in_no_plan(
    spark: SparkSession, numbers: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # A manifest store is an option without which nobody finds the rows: reads and writes show that it arrives.
    rows = f"sqlite:///{tmp_path}/hunter2.db"
    lake = private_format(spark, {"manifest_store": rows})
    assert lake == private_format(spark, {"manifest_store": rows}) != private_format(spark, {"manifest_store": "x"})
    assert "hunter2" not in lake and private_format(spark, None) == private_format(spark, {}) == "lance"
    moved = str(tmp_path / "moved.lance")
    spark.range(3).selectExpr("id AS x").write.format(lake).mode("append").save(moved)
    spark.range(2).selectExpr("id AS x").write.format(lake).mode("append").save(moved)
    assert dataset(moved, storage_options={"manifest_store": rows}).version == 2
    assert spark.read.format(lake).option("version", 1).load(moved).count() == 3
    create_view(spark, "moved", moved, storage_options={"manifest_store": rows})
    spark.sql("INSERT INTO moved VALUES (7)")
    create_view(spark, "moved", moved, storage_options={"manifest_store": rows})
    assert sorted(values(spark.table("moved"))) == [0, 0, 1, 1, 2, 7]
    with contextlib.closing(sqlite3.connect(tmp_path / "hunter2.db")) as connection:
        assert connection.execute("SELECT version FROM lance_manifests ORDER BY version").fetchall() == [
            (1,),
            (2,),
            (3,),
        ]
    capsys.readouterr()
    for mode in ("extended", "formatted", "codegen", "cost"):
        spark.table("moved").explain(mode=mode)
    shown = capsys.readouterr().out
    assert "hunter2" not in shown and lake in shown
    assert "hunter2" not in str(spark.sql("DESCRIBE EXTENDED moved").collect())


def test_a_view_of_a_relative_path_is_one_of_the_driver_s_folder(
    spark: SparkSession, numbers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(numbers).parent)  # Spark's processes have the folder in which the session started
    create_view(spark, "near", Path(numbers).name)
    spark.sql("INSERT INTO near SELECT * FROM near")
    assert dataset(numbers).count_rows() == 2 * spark.table("near").count()


def test_a_uri_with_a_secret_reaches_no_statement(spark: SparkSession) -> None:
    with pytest.raises(InvalidInput, match="storage_options") as caught:
        create_view(spark, "numbers", "s3://key:hunter2@bucket/x")
    assert "hunter2" not in str(caught.value)


def test_versions_are_a_table_function(spark: SparkSession, numbers: str) -> None:
    dataset(numbers).delete("x = 0")
    register_functions(spark)
    rows = spark.sql(f"SELECT version, operation, num_rows FROM lance_versions('{numbers}')").collect()
    assert [tuple(row)[::2] for row in rows] == [(1, 12), (2, 11)]
    assert rows[1]["operation"].lower() == "delete"
