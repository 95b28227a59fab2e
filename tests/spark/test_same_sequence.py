"""One sequence of work through Python, SQL and the command line: the same versions and the same rows.

Load, index, merge 1%, delete 0.1%, backfill, refresh the index, compact, vacuum, and find a row by the index.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import lance
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lance_ops.api import dataset
from lance_ops.spark import OnSpark, sql, use_namespace
from tests.cli.test_cli import answer, text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.interop]

ROWS = 20_000
FILES = 4


def items(start: int, stop: int, price: float) -> pa.Table:
    ids = range(start, stop)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "price": pa.array([price + row % 10 for row in ids], pa.float64()),
            "quantity": pa.array([row % 7 for row in ids], pa.float64()),
            "note": [f"item {row}" for row in ids],
        }
    )


@pytest.fixture
def landing(tmp_path: Path) -> Path:
    """Four files of rows, and one of changes: 180 rows that exist and 20 that do not."""
    folder = tmp_path / "landing"
    folder.mkdir()
    for number in range(FILES):
        rows = items(number * ROWS // FILES, (number + 1) * ROWS // FILES, 1.0)
        pq.write_table(rows, folder / f"{number}.parquet")
    (tmp_path / "changes").mkdir()
    pq.write_table(items(ROWS - 180, ROWS + 20, 100.0), tmp_path / "changes" / "0.parquet")
    return folder


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Iterator[Path]:
    """The folder whose datasets SQL knows by name."""
    folder = tmp_path / "lake"
    folder.mkdir()
    use_namespace(spark, folder)
    yield folder
    use_namespace(spark, None)


def by_python(spark: SparkSession, uri: str, landing: Path) -> list[dict[str, Any]]:
    on_spark = OnSpark(spark)
    changes = spark.read.parquet(str(landing.parent / "changes"))
    spark.read.parquet(str(landing)).write.format("lance").mode("append").save(uri)
    items = dataset(uri)
    items.create_scalar_index("id", "BTREE", runner=on_spark)
    items.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(changes, runner=on_spark)
    items.delete("id >= 300 AND id < 320", runner=on_spark)
    items.add_columns({"total": "price * quantity"}, runner=on_spark)
    items.optimize.optimize_indices(runner=on_spark)
    items.optimize.compact_files(runner=on_spark)
    items.cleanup_old_versions(retain_versions=1)
    found = items.to_table(filter="id = 19999")
    assert "ScalarIndexQuery" in items.scanner(filter="id = 19999").explain_plan(verbose=True)
    rows: list[dict[str, Any]] = found.to_pylist()
    return rows


def by_sql(spark: SparkSession, uri: str, landing: Path) -> list[dict[str, Any]]:
    name = Path(uri).stem
    sql(spark, f"CREATE TABLE {name} USING lance AS SELECT * FROM parquet.`{landing}`")
    sql(spark, f"CREATE INDEX id_idx ON {name} (id) USING BTREE")
    sql(
        spark,
        f"MERGE INTO {name} t USING (SELECT * FROM parquet.`{landing.parent / 'changes'}`) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
    )
    sql(spark, f"DELETE FROM {name} WHERE id >= 300 AND id < 320")
    sql(spark, f"ALTER TABLE {name} ADD COLUMN total AS (price * quantity)")
    sql(spark, f"REFRESH INDEX id_idx ON {name}")
    sql(spark, f"OPTIMIZE {name}")
    sql(spark, f"VACUUM {name} RETAIN 0 HOURS")
    return [row.asDict() for row in sql(spark, f"SELECT * FROM {name} WHERE id = 19999").collect()]


def by_command_line(spark: SparkSession, uri: str, landing: Path) -> list[dict[str, Any]]:
    tasks = ("--spark", str(spark.sparkContext.master))
    answer("ingest", uri, *sorted(map(str, landing.iterdir())), *tasks)
    answer("reindex", uri, "--create", "id", *tasks)
    answer("merge", uri, str(landing.parent / "changes" / "0.parquet"), "--on", "id", *tasks)
    answer("delete", uri, "id >= 300 AND id < 320", *tasks)
    answer("add-columns", uri, "total=price * quantity", *tasks)
    answer("reindex", uri, *tasks)
    answer("compact", uri, *tasks)
    answer("cleanup", uri, "--retain-versions", "1")
    assert "ScalarIndexQuery" in text("query", uri, "--where", "id = 19999", "--explain")
    row: dict[str, Any] = answer("query", uri, "--where", "id = 19999", "--json")
    return [row]


def test_python_sql_and_the_command_line_make_the_same_versions(spark: SparkSession, lake: Path, landing: Path) -> None:
    doors = {"python": by_python, "sql": by_sql, "cli": by_command_line}
    found = {name: door(spark, str(lake / f"{name}.lance"), landing) for name, door in doors.items()}
    assert found["python"] == found["sql"] == found["cli"]
    assert found["python"] == [
        {"id": 19_999, "price": 109.0, "quantity": 0.0, "note": "item 19999", "total": 0.0},
    ]
    tables = {name: lance.dataset(str(lake / f"{name}.lance")) for name in doors}
    versions = {name: table.version for name, table in tables.items()}
    rows = {name: table.to_table().sort_by("id").to_pylist() for name, table in tables.items()}
    assert len(set(versions.values())) == 1, versions
    assert rows["python"] == rows["sql"] == rows["cli"]
    assert [row["id"] for row in rows["python"]] == [*range(300), *range(320, ROWS + 20)]
    assert all(row["total"] == row["price"] * row["quantity"] for row in rows["python"])
