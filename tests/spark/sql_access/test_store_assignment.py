"""What a write stores in a column of another type: what Spark's own tables store, or nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException

from lance_ops.api import LanceDataset
from lance_ops.core.errors import SchemaMismatch
from lance_ops.spark import OnSpark, write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

_MOMENTS = ["'2026-01-01 02:00:00'", "'2026-07-01 23:30:00.25'", "'1890-01-01 00:00:00'"]

ASSIGNED: list[tuple[str, str, list[str]]] = [
    ("DECIMAL(12,3)", "DECIMAL(10,2)", ["1.555", "-1.555", "1.554", "99999999.994"]),
    ("DECIMAL(38,10)", "DECIMAL(38,2)", ["0.0050000000", "1234567890123456789012345678.9949999999"]),
    ("DECIMAL(12,3)", "INT", ["1.7", "-1.7", "0.999"]),
    ("DECIMAL(12,3)", "DOUBLE", ["1.555", "-0.001"]),
    ("DECIMAL(38,10)", "FLOAT", ["0.1", "123456789.0000000001"]),
    ("DOUBLE", "INT", ["1.7", "-1.7", "2147483647.9"]),
    ("DOUBLE", "BIGINT", ["1.7E15", "-9.2E18"]),
    ("DOUBLE", "FLOAT", ["0.1", "1E300", "'NaN'"]),
    ("DOUBLE", "DECIMAL(10,2)", ["1.005", "-1.005", "2.675", "1E-300", "1E7", "0.0049999", "99999999.99"]),
    ("DOUBLE", "DECIMAL(38,20)", ["0.1", "1.0E-21", "5E-21", "123456.789"]),
    ("FLOAT", "DECIMAL(10,5)", ["0.1", "3.4"]),
    ("FLOAT", "SMALLINT", ["-3.9", "32767.5"]),
    ("BIGINT", "DOUBLE", ["9007199254740993", "-1"]),
    ("INT", "FLOAT", ["16777217", "2147483647"]),
    ("BIGINT", "DECIMAL(19,0)", ["9223372036854775807"]),
    ("BIGINT", "INT", ["2147483647"]),
    ("DATE", "TIMESTAMP", ["'2026-01-01'", "'2026-03-08'"]),
    ("DATE", "TIMESTAMP_NTZ", ["'2026-01-01'"]),
    ("TIMESTAMP", "DATE", _MOMENTS),
    ("TIMESTAMP_NTZ", "DATE", _MOMENTS),
    ("TIMESTAMP", "TIMESTAMP_NTZ", _MOMENTS),
    ("TIMESTAMP_NTZ", "TIMESTAMP", _MOMENTS),
    ("TINYINT", "STRING", ["-7"]),
    ("BIGINT", "STRING", ["9223372036854775807"]),
    ("BOOLEAN", "STRING", ["true", "false"]),
    ("FLOAT", "STRING", ["0.1", "1E10", "1.0", "'-Infinity'", "'NaN'"]),
    ("DOUBLE", "STRING", ["0.1", "1E10", "1.0", "1E-7", "'Infinity'", "'-0.0'"]),
    ("DECIMAL(12,3)", "STRING", ["1.5", "0"]),
    ("DECIMAL(20,10)", "STRING", ["0.0000000001", "0", "1.5"]),
    ("DATE", "STRING", ["'2026-01-01'", "'0001-01-01'", "'+12921-08-18'"]),
    ("TIMESTAMP", "STRING", _MOMENTS),
    ("TIMESTAMP_NTZ", "STRING", _MOMENTS),
    ("INTERVAL DAY TO SECOND", "STRING", ["INTERVAL '1 02:03:04.5' DAY TO SECOND"]),
    ("INTERVAL HOUR TO MINUTE", "STRING", ["INTERVAL '02:03' HOUR TO MINUTE"]),
    ("ARRAY<DECIMAL(12,3)>", "ARRAY<DECIMAL(10,2)>", ["array(1.555, NULL)"]),
    ("ARRAY<DOUBLE>", "ARRAY<STRING>", ["array(1E10, NULL)"]),
    ("STRUCT<a: TIMESTAMP, b: DOUBLE>", "STRUCT<a: STRING, b: INT>", ["struct(TIMESTAMP '2026-01-01', 1.7D)"]),
    ("MAP<STRING, TIMESTAMP>", "MAP<STRING, DATE>", ["map('k', TIMESTAMP '2026-07-01 23:30:00')"]),
]
"""Types of a value and of a column to which Spark assigns it, and values."""

REFUSED: list[tuple[str, str, str]] = [
    ("BIGINT", "TIMESTAMP", "CAST.* AS TIMESTAMP.*seconds"),
    ("BIGINT", "TIMESTAMP_NTZ", "CAST.* AS TIMESTAMP.*seconds"),
    ("INT", "TIMESTAMP", "seconds"),
    ("TIMESTAMP", "BIGINT", "CAST.* AS BIGINT.*seconds"),
    ("TIMESTAMP_NTZ", "BIGINT", "seconds"),
    ("INT", "DATE", "date_from_unix_date"),
    ("DATE", "INT", "unix_date"),
    ("DATE", "BIGINT", "unix_date"),
    ("BIGINT", "INTERVAL DAY TO SECOND", "assigns no numbers to a column of intervals"),
    ("INTERVAL DAY TO SECOND", "BIGINT", "assigns no intervals to a column of numbers"),
    ("BINARY", "INT", "assigns no bytes to a column of numbers"),
    ("INT", "BINARY", "assigns no numbers to a column of bytes"),
    ("ARRAY<BIGINT>", "ARRAY<TIMESTAMP>", "seconds"),
    ("STRUCT<a: BIGINT>", "STRUCT<a: DATE>", "date_from_unix_date"),
    ("MAP<STRING, DATE>", "MAP<STRING, INT>", "unix_date"),
]
"""Types of a value and of a column to which Spark assigns none, and what the error says."""


@pytest.fixture
def in_new_york(spark: SparkSession) -> Iterator[None]:
    zone = spark.conf.get("spark.sql.session.timeZone")
    assert zone is not None
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    yield
    spark.conf.set("spark.sql.session.timeZone", zone)


def rows_of(spark: SparkSession, pairs: list[tuple[str, str, list[str]]]) -> DataFrame:
    """A column for each pair, with its values and a null, in rows with their numbers."""
    texts = []
    for row in range(1 + max(len(values) for _, _, values in pairs)):
        columns = [
            f"CAST({values[row] if row < len(values) else 'NULL'} AS {kind}) AS c{at}"
            for at, (kind, _, values) in enumerate(pairs)
        ]
        texts.append(f"SELECT {row} AS row, {', '.join(columns)}")
    return spark.sql(" UNION ALL ".join(texts)).coalesce(1)


def shown(frame: DataFrame) -> list[str]:
    return [repr(row) for row in frame.orderBy("row").collect()]


def test_a_write_stores_what_spark_assigns(
    spark: SparkSession, lake: Path, run: Any, tmp_path: Path, in_new_york: None
) -> None:
    wanted = ", ".join(f"c{at} {kind}" for at, (_, kind, _) in enumerate(ASSIGNED))
    frame = rows_of(spark, ASSIGNED)
    frame.createOrReplaceTempView("given_rows")
    spark.sql(f"CREATE TABLE assigned_by_spark (row INT, {wanted}) USING parquet LOCATION '{tmp_path / 'parquet'}'")
    try:
        spark.sql("INSERT INTO assigned_by_spark SELECT * FROM given_rows")
        expected = shown(spark.table("assigned_by_spark"))
    finally:
        spark.sql("DROP TABLE assigned_by_spark")
    load = spark.read.format("lance").load
    for name in ("inserted", "written"):
        run(f"CREATE TABLE {name} (row INT, {wanted}) USING lance")
    run("INSERT INTO inserted SELECT * FROM given_rows")
    assert shown(load(str(lake / "inserted.lance"))) == expected
    write(frame, lake / "written.lance")
    assert shown(load(str(lake / "written.lance"))) == expected


def test_the_writer_of_a_data_frame_stores_what_spark_assigns_or_nothing(
    spark: SparkSession, lake: Path, run: Any, in_new_york: None
) -> None:
    pairs = [pair for pair in ASSIGNED if "STRING" not in pair[1] or "MAP" in pair[1]]
    wanted = ", ".join(f"c{at} {kind}" for at, (_, kind, _) in enumerate(pairs))
    for name in ("planned", "sourced"):
        run(f"CREATE TABLE {name} (row INT, {wanted}) USING lance")
    frame = rows_of(spark, pairs)
    write(frame, lake / "planned.lance")
    frame.write.format("lance").mode("append").save(str(lake / "sourced.lance"))
    load = spark.read.format("lance").load
    assert shown(load(str(lake / "sourced.lance"))) == shown(load(str(lake / "planned.lance")))
    for value, message in (("1E10D", "CAST.* AS STRING"), ("current_timestamp()", "CAST.* AS STRING")):
        with pytest.raises(AnalysisException, match=f"column 's' .*{message}"):
            spark.sql(f"SELECT {value} AS s").write.format("lance").mode("append").save(str(lake / "numbers.lance"))


@pytest.mark.parametrize(("given", "wanted", "message"), REFUSED)
def test_a_pair_of_types_that_spark_does_not_assign_is_refused(
    spark: SparkSession, lake: Path, run: Any, tmp_path: Path, given: str, wanted: str, message: str
) -> None:
    spark.sql(f"CREATE TABLE refused_by_spark (x {wanted}) USING parquet LOCATION '{tmp_path / 'parquet'}'")
    try:
        with pytest.raises(AnalysisException, match="CANNOT_SAFELY_CAST"):
            spark.sql(f"INSERT INTO refused_by_spark SELECT CAST(NULL AS {given})")
    finally:
        spark.sql("DROP TABLE refused_by_spark")
    run(f"CREATE TABLE refused (x {wanted}) USING lance")
    with pytest.raises(SchemaMismatch, match=f"column 'x.*{message}"):
        run(f"INSERT INTO refused SELECT CAST(NULL AS {given})")
    with pytest.raises(SchemaMismatch, match=f"column 'x.*{message}"):
        write(spark.sql(f"SELECT CAST(NULL AS {given}) AS x"), lake / "refused.lance")
    if "<" not in given:
        with pytest.raises(SchemaMismatch, match=f"column 'x.*{message}"):
            run(f"UPDATE refused SET x = CAST(NULL AS {given})")
        with pytest.raises(SchemaMismatch, match=f"column 'x.*{message}"):
            run(
                f"MERGE INTO refused USING (SELECT CAST(NULL AS {given}) AS x) s ON true WHEN MATCHED THEN UPDATE SET *"
            )
    assert LanceDataset(lake / "refused.lance").version == 1


def test_a_key_of_a_data_frame_is_not_rounded(spark: SparkSession, lake: Path) -> None:
    numbers = LanceDataset(lake / "numbers.lance")
    for key in ("1.7D", "1.7BD"):
        with pytest.raises(SchemaMismatch, match="'id'.*does not fit int64"):
            numbers.delete_by_keys(spark.sql(f"SELECT {key} AS id"), "id", runner=OnSpark(spark))
    assert numbers.count_rows() == 10
